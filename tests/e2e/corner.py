"""A corner of a cluster whose nodes a test agent looks after: a namespace, a pool, controllers.

Several tests share one control plane that way, and none sees another's room or pods.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tests.harness import rig as rigs
from tests.harness.operator_process import USER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.harness.kubelet import Kubelet
    from tests.harness.rig import Rig

_numbers = itertools.count(1)
GONE_SOON = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute"}
    | {"tolerationSeconds": 5}  # so long its node is seen not to answer
    for taint in ("not-ready", "unreachable")
]


class Corner:
    """One test's namespace, which is the name of its node pool too."""

    def __init__(self, rig: Rig, kubelet: Kubelet) -> None:
        self.rig = rig
        self.kubelet = kubelet
        self.name = f"corner-{next(_numbers)}"
        rig.plane.create_namespace(self.name)

    # Make

    def nodes(self, n: int, prefix: str = "node", *, cpu: int) -> list[str]:
        """Make nodes of this corner and answer their names."""
        labels = {"pool": self.name}
        prefix = f"{self.name}-{prefix}"
        return self.kubelet.nodes(n, prefix, cpu=cpu, memory="32Gi", labels=labels)

    def group(self, name: str, min_member: int, on_partial: str = "Complete") -> None:
        """Create a PodGroup."""
        body = rigs.pod_group(name, min_member, namespace=self.name)
        body["spec"]["onPartial"] = on_partial
        self.rig.create(body)

    def pod(self, name: str, group: str, **about: Any) -> dict[str, Any]:
        """A bare pod of this corner, as a manifest."""
        spec = {"nodeSelector": {"pool": self.name}}
        return rigs.pod(name, group, namespace=self.name, spec=spec, **about)

    def job(self, group: str, n: int, **spec: Any) -> None:
        """Create an Indexed Job of so many pods of 1 cpu."""
        counts = {"parallelism": n, "completions": n, "completionMode": "Indexed"}
        template = self._template(group, restartPolicy="Never")
        self._create("batch/v1", "Job", group, {**counts, "template": template, **spec})

    def replicas(self, group: str, n: int, **notes: str) -> None:
        """Create a ReplicaSet of so many pods of 1 cpu; it replaces lost ones at once."""
        labels = {rigs.GROUP_LABEL: group}
        template = self._template(group)
        template["metadata"]["annotations"] = notes
        spec = {"replicas": n, "selector": {"matchLabels": labels}, "template": template}
        self._create("apps/v1", "ReplicaSet", group, spec)

    def budget(self, group: str, n: int) -> None:
        """Allow no eviction that leaves fewer than so many healthy pods, and wait for it."""
        selector = {"matchLabels": {rigs.GROUP_LABEL: group}}
        spec = {"minAvailable": n, "selector": selector}
        self._create("policy/v1", "PodDisruptionBudget", group, spec)
        self.rig.until(lambda: self._healthy(group) >= n, "the budget knows its pods")

    def until_healthy(self, group: str, n: int) -> None:
        """Wait until the budget counts so many healthy pods: a loss is counted a while later."""
        self.rig.until(lambda: self._healthy(group) == n, f"the budget counts {n} healthy pods")

    def _healthy(self, group: str) -> int:
        path = f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets/{group}"
        return int(self.rig.plane.request("GET", path)["status"].get("currentHealthy", 0))

    def release(self, group: str) -> None:
        """Let a PodGroup say from now on that its bound members are evicted where room lacks."""
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{self.name}/podgroups/{group}"
        self.rig.plane.request("PATCH", path, {"spec": {"onPartial": "Release"}})

    def _template(self, group: str, **spec: Any) -> dict[str, Any]:
        one = self.pod(group, group, cpu=1)
        return {
            "metadata": {"labels": one["metadata"]["labels"]},
            "spec": {**one["spec"], "tolerations": GONE_SOON, **spec},
        }

    def _create(self, version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        metadata = {"name": name, "namespace": self.name}
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        self.rig.create(body)

    # Do

    def delete(self, kind: str, name: str, *options: str) -> None:
        """Delete one object."""
        self.rig.plane.kubectl("delete", kind, name, "-n", self.name, "--wait=false", *options)

    def cordon(self, node: str, *, is_open: bool = False) -> None:
        """Let no new pods on a node, or let them on again."""
        patch = {"spec": {"unschedulable": not is_open}}
        self.rig.plane.request("PATCH", f"/api/v1/nodes/{node}", patch)

    # Look

    def pods(self, group: str = "") -> list[dict[str, Any]]:
        """The pods here."""
        return self.rig.pods(group, self.name)

    def on(self, node: str) -> list[str]:
        """The names of pods on a node that are not over."""
        return [
            pod["metadata"]["name"]
            for pod in self.pods()
            if pod["spec"].get("nodeName") == node
            and pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]

    def running(self, group: str) -> int:
        """How many members run and stay."""
        return sum(
            pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
            for pod in self.pods(group)
        )

    def bound(self, group: str) -> int:
        """How many pods have a node, those that are over among them."""
        return self.rig.bound(group, self.name)

    def condition(self, group: str, kind: str) -> dict[str, Any]:
        """One condition of a PodGroup."""
        return self.rig.condition(group, kind, self.name)

    def phase(self, group: str) -> str:
        """A PodGroup's phase."""
        return str(self.rig.group(group, self.name).get("status", {}).get("phase", ""))

    def job_now(self, name: str) -> dict[str, Any]:
        """A Job's status."""
        path = f"/apis/batch/v1/namespaces/{self.name}/jobs/{name}"
        return dict(self.rig.plane.request("GET", path)["status"])

    def events(self, name: str) -> list[str]:
        """The reasons of the Events about an object."""
        return [str(event["reason"]) for event in self.rig.events(name, self.name)]

    def evictions(self) -> int:
        """How many pods of this corner anybody asked to evict."""
        log = self.rig.plane.audit_log.read_text().splitlines()
        ours = (line for line in log if USER in line and f'"{self.name}"' in line)
        return sum('"subresource":"eviction"' in line for line in ours)

    # Wait

    def until_says(self, group: str, kind: str, reason: str, words: str = "") -> str:
        """Wait until a condition has this reason and these words; answers its sentence."""
        return self.rig.until_says(group, kind, reason, words, self.name)

    def until_running(self, group: str, n: int) -> None:
        """Wait until so many members run, and the gang says that it is whole."""
        self.rig.until(lambda: self.running(group) == n, f"{n} members of {group} run")
        self.until_says(group, "Healthy", "Whole")
