"""Spark applications without Spark: its pods and ConfigMaps, and what its drivers do.

Follows KubernetesClientApplication and ExecutorPodsAllocator: the ConfigMap comes after the pod of
the driver, and executors come in batches once that runs. An application ends when all of its
executors run: as Spark's driver does, it deletes them and succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..harness import rig as rigs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..harness.rig import Rig

MEMORY = "1408Mi"  # what Spark asks for by default: 1024 MiB and the least overhead


@dataclass(slots=True)
class App:
    """One application, and how many executors its driver has made so far."""

    name: str
    namespace: str
    scheduler: str
    pool: str
    executors: int
    batch: int
    more: Mapping[str, str] = field(default_factory=dict)  # properties
    created: int = 0
    is_finished: bool = False

    @property
    def id(self) -> str:
        """What Spark calls it, on all of its pods."""
        return f"spark-{self.name}"

    @property
    def properties(self) -> dict[str, str]:
        """What is said to spark-submit."""
        return {
            "spark.app.name": self.name,
            "spark.executor.instances": str(self.executors),
            "spark.kubernetes.allocation.batch.size": str(self.batch),
            "spark.kubernetes.node.selector.pool": self.pool,
            "spark.kubernetes.scheduler.name": self.scheduler,
            **self.more,
        }

    def driver(self) -> dict[str, Any]:
        """The driver's pod."""
        items = [{"key": "spark.properties", "path": "spark.properties", "mode": 420}]
        source = {"name": f"{self.name}-conf-map", "items": items}
        made = self._pod(f"{self.name}-driver", "driver")
        made["spec"]["volumes"] = [{"name": "spark-conf-volume-driver", "configMap": source}]
        made["metadata"]["labels"] |= {"spark-version": "4.1.1", "spark-app-name": self.name}
        return made

    def config_map(self) -> dict[str, Any]:
        """What the driver mounts."""
        text = "".join(f"{name}={value}\n" for name, value in self.properties.items())
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{self.name}-conf-map", "namespace": self.namespace},
            "data": {"spark.properties": text},
        }

    def executor(self, number: int, driver: dict[str, Any]) -> dict[str, Any]:
        """One executor's pod."""
        made = self._pod(f"{self.name}-exec-{number}", "executor")
        made["metadata"]["labels"]["spark-exec-id"] = str(number)
        about = {name: driver["metadata"][name] for name in ("name", "uid")}
        owner = {"apiVersion": "v1", "kind": "Pod", "controller": True, **about}
        made["metadata"]["ownerReferences"] = [owner]
        return made

    def _pod(self, name: str, role: str) -> dict[str, Any]:
        made = rigs.pod(
            name,
            namespace=self.namespace,
            scheduler=self.scheduler,
            spec={"nodeSelector": {"pool": self.pool}},
            cpu=1,
            memory=MEMORY,
        )
        made["metadata"]["labels"] = {"spark-app-selector": self.id, "spark-role": role}
        return made


@dataclass(slots=True)
class Drivers:
    """What the drivers of some applications do, round by round."""

    rig: Rig
    apps: list[App] = field(default_factory=list)

    def submit(self, app: App) -> None:
        """As spark-submit does in cluster mode."""
        self.rig.create(app.driver())
        self.rig.create(app.config_map())
        self.apps.append(app)

    def turn(self) -> int:
        """One round of each driver that runs; answers how many applications have finished."""
        pods = {pod["metadata"]["name"]: pod for pod in self.rig.pods(namespace=self._namespace)}
        for app in self.apps:
            driver = pods[f"{app.name}-driver"]
            if app.is_finished or driver["status"].get("phase") != "Running":
                continue
            mine = [pods.get(f"{app.name}-exec-{i + 1}") for i in range(app.created)]
            if sum(_runs(one) for one in mine) == app.executors:
                self._end(app, driver)
                continue
            more = range(app.created + 1, min(app.created + app.batch, app.executors) + 1)
            self.rig.create(*(app.executor(number, driver) for number in more))
            app.created += len(more)
        return sum(app.is_finished for app in self.apps)

    @property
    def stuck(self) -> int:
        """How many have a driver that runs, and not all of their executors."""
        pods = {pod["metadata"]["name"]: pod for pod in self.rig.pods(namespace=self._namespace)}
        return sum(
            _runs(pods.get(f"{app.name}-driver"))
            and not all(_runs(pods.get(f"{app.name}-exec-{i + 1}")) for i in range(app.executors))
            for app in self.apps
        )

    @property
    def _namespace(self) -> str:
        (namespace,) = {app.namespace for app in self.apps}
        return namespace

    def _end(self, app: App, driver: dict[str, Any]) -> None:
        base = f"/api/v1/namespaces/{app.namespace}/pods"
        for number in range(1, app.executors + 1):
            self.rig.plane.request("DELETE", f"{base}/{app.name}-exec-{number}")
        name = driver["metadata"]["name"]
        self.rig.plane.kubectl(
            *("patch", "pod", name, "-n", app.namespace, "--subresource=status"),
            *("--type=merge", "-p", '{"status":{"phase":"Succeeded"}}'),
        )
        app.is_finished = True


def _runs(pod: dict[str, Any] | None) -> bool:
    return pod is not None and pod["status"].get("phase") == "Running"
