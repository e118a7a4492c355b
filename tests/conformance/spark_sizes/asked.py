"""The real Spark against the real API server, and the pods that it makes there."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from tutti.kube.codec.quantity import nanos

from . import environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tutti.spark import PodResources

    from ...harness.controlplane.cluster import ControlPlane
    from .pins import Pin

NAMESPACE = "spark"
ACCOUNT = "spark"
PATIENCE = 90.0  # seconds until the pods that are expected are there
ROUNDS = 1.5  # seconds in which more than are expected would come: several of Spark's rounds
TOKEN_SECONDS = 6 * 3600

Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Pods:
    """What equal pods ask for, in billionths, and how many there are."""

    count: int
    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""

    @classmethod
    def computed(cls, pod_resources: PodResources, count: int) -> Self:
        """As Tutti says, and as the API server would complete it."""
        if count == 0:
            return cls(0)
        limits = _amounts(pod_resources.limits)
        return cls(
            count,
            limits | _amounts(pod_resources.requests),
            limits,
            dict(pod_resources.node_selector),
            pod_resources.scheduler or "default-scheduler",
        )

    @classmethod
    def seen(cls, pods: Sequence[Mapping[str, Any]]) -> Self:
        """As they stand in the API server, where all of them ask for the same."""
        different = {json.dumps(_telling(pod), sort_keys=True) for pod in pods}
        if len(different) > 1:
            message = f"pods of one application differ: {different}"
            raise AssertionError(message)
        if not pods:
            return cls(0)
        spec = pods[0]["spec"]
        resources = spec["containers"][0]["resources"]
        return cls(
            len(pods),
            _amounts(resources.get("requests", {})),
            _amounts(resources.get("limits", {})),
            spec.get("nodeSelector", {}),
            spec["schedulerName"],
        )


def _telling(pod: Mapping[str, Any]) -> object:
    spec = pod["spec"]
    return [
        [container["resources"] for container in spec["containers"]],
        spec.get("nodeSelector"),
        spec["schedulerName"],
    ]


def _amounts(quantities: Mapping[str, str]) -> Amounts:
    return {name: nanos(quantity) for name, quantity in quantities.items()}


class Door:
    """What Spark must be told to reach the control plane, and the pods behind it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        plane.create_namespace(NAMESPACE)
        base = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        plane.request("POST", base, {"metadata": {"name": ACCOUNT}})
        # Not "admin": that one is put together by a controller, which does not run.
        group = "rbac.authorization.k8s.io"
        role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
        subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
        plane.request(
            "POST",
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
            {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [subject]},
        )
        wish = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        answer = plane.request("POST", f"{base}/{ACCOUNT}/token", wish)
        token = plane.directory / "spark.token"
        token.touch(mode=0o600)
        token.write_text(answer["status"]["token"])
        kinds = ("", ".submission")
        self.properties = {
            "spark.master": f"k8s://{plane.server}",
            "spark.app.name": "compared",
            "spark.kubernetes.namespace": NAMESPACE,
            "spark.kubernetes.container.image": "spark",
            "spark.ui.enabled": "false",
            **{f"spark.kubernetes.authenticate{k}.caCertFile": str(plane.authority) for k in kinds},
            **{f"spark.kubernetes.authenticate{k}.oauthTokenFile": str(token) for k in kinds},
        }

    def pods(self, selector: str) -> list[dict[str, Any]]:
        """Those with this label."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={quote(selector)}"
        return list(self._plane.request("GET", path)["items"])

    def awaited(self, selector: str, count: int) -> list[dict[str, Any]]:
        """The same once so many are there, and no more follow."""
        until = time.monotonic() + PATIENCE
        while len(self.pods(selector)) < count and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(ROUNDS)
        return self.pods(selector)

    def config_map(self, pod: Mapping[str, Any]) -> str:
        """The ``spark.properties`` that a driver mounts."""
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        name = volumes["spark-conf-volume-driver"]["configMap"]["name"]
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"
        return str(self._plane.request("GET", path)["data"]["spark.properties"])

    def read(self, path: str) -> Mapping[str, Any]:
        """One object."""
        return self._plane.request("GET", path)

    def forget(self, pod: Mapping[str, Any]) -> None:
        """Delete a driver that nobody runs."""
        name = pod["metadata"]["name"]
        self._plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")


class Driver:
    """One JVM, in which one SparkContext follows another."""

    def __init__(self, pin: Pin, door: Door, log: Path) -> None:
        self._door = door
        self._log = log
        folder = environment.installed(pin)
        command = [str(folder / "bin" / "python"), str(Path(__file__).with_name("driver.py"))]
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                env=environment.variables(folder),
                cwd=log.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    @contextmanager
    def context(self, properties: Mapping[str, str]) -> Iterator[str]:
        """A SparkContext with these properties; its application's id."""
        over = {
            "spark.submit.deployMode": "client",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.kubernetes.allocation.batch.size": "100",
            "spark.kubernetes.allocation.batch.delay": "200ms",
            "spark.scheduler.minRegisteredResourcesRatio": "0",
        }
        self._tell(json.dumps({**properties, **self._door.properties, **over}))
        yield self._hear()
        self._tell("")
        self._hear()

    def close(self) -> None:
        """End the JVM."""
        self._process.communicate(timeout=60)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return line.strip()
        message = f"Spark ended: {self._log.read_text()[-3000:]}"
        raise RuntimeError(message)


def submitted(pin: Pin, main: str, file: Path, log: Path) -> None:
    """What spark-submit does in cluster mode, until the driver's pod is there."""
    folder = environment.installed(pin)
    command = [str(folder / "bin" / "spark-submit"), "--deploy-mode", "cluster"]
    command += ["--properties-file", str(file), main]
    if main.endswith(".jar"):
        command[1:1] = ["--class", "Main"]
    with log.open("w") as out:
        variables = environment.variables(folder)
        done = subprocess.run(command, env=variables, stdout=out, stderr=out, check=False)
    if done.returncode:
        message = f"spark-submit failed: {log.read_text()[-3000:]}"
        raise RuntimeError(message)
