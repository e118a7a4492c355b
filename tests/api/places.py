"""A corner of a shared cluster: one namespace and nodes that only its pods may use.

Several checks share one control plane that way, and none sees another's room or pods.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..harness import rig as rigs
from ..harness.operator_process import USER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..harness.rig import Rig

LOOKS = ("get", "list", "watch")
_numbers = itertools.count(1)


class Place:
    """One test's namespace, which is the name of its node pool too."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.name = f"place-{next(_numbers)}"
        rig.plane.create_namespace(self.name)

    # Make

    def nodes(self, n: int, prefix: str = "node", **about: Any) -> list[str]:
        """Make nodes of this place and answer their names."""
        about = {"cpu": 8, "memory": "32Gi", **about}
        prefix = f"{self.name}-{prefix}"
        self.rig.nodes(n, prefix, labels={"pool": self.name}, **about)
        return [f"{prefix}-{i:03}" for i in range(n)]

    def group(self, name: str, min_member: int | None = None, **roles: int) -> None:
        """Create a PodGroup."""
        self.rig.create(rigs.pod_group(name, min_member, namespace=self.name, **roles))

    def pod(self, name: str, group: str = "", **about: Any) -> dict[str, Any]:
        """A pod that may only run on the nodes of this place, as a manifest."""
        spec = {"nodeSelector": {"pool": self.name}, **about.pop("spec", {})}
        return rigs.pod(name, group, namespace=self.name, spec=spec, **about)

    def members(self, group: str, n: int, first: int = 0, **about: Any) -> list[str]:
        """Create equal members of a group and answer their names."""
        names = [f"{group}-{i}" for i in range(first, first + n)]
        self.rig.create(*(self.pod(name, group, **about) for name in names))
        return names

    def bind(self, name: str, node: str) -> None:
        """Bind a pod by hand, as another scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": name}, "target": target}
        self.rig.plane.request("POST", f"{self._pods}/{name}/binding", body)

    def relabel(self, name: str, **labels: str) -> None:
        """Change the labels of a pod: group=…, role=…."""
        long = {"group": rigs.GROUP_LABEL, "role": rigs.ROLE_LABEL}
        changed = {long[key]: value for key, value in labels.items()}
        patch = {"metadata": {"labels": changed}}
        self.rig.plane.request("PATCH", f"{self._pods}/{name}", patch)

    def delete(self, kind: str, name: str) -> None:
        """Delete one object."""
        self.rig.delete(kind, name, self.name)

    # Look

    def is_bound(self, name: str) -> bool:
        """Whether a pod has a node."""
        return "nodeName" in self.rig.pod(name, self.name)["spec"]

    def bound(self, group: str = "") -> int:
        """How many pods have a node."""
        return self.rig.bound(group, self.name)

    def condition(self, group: str, kind: str) -> dict[str, Any]:
        """One condition of a PodGroup."""
        return self.rig.condition(group, kind, self.name)

    def says(self, name: str) -> dict[str, Any]:
        """A pod's PodScheduled condition."""
        return self.rig.pod_says(name, self.name)

    def writes(self) -> list[dict[str, Any]]:
        """What the operator has written here."""
        return [line for line in written(self.rig) if _place(line) == self.name]

    # Wait

    def until_bound(self, group: str, n: int) -> None:
        """Wait until exactly so many pods of a group are bound."""
        self.rig.until_bound(group, n, self.name)

    def until_waiting(self, group: str, reason: str, words: str = "") -> str:
        """Wait until a PodGroup says why it waits, in these words; answers its sentence.

        A sentence may come in steps, as the pods do.
        """
        return self.until_says(group, "Reserved", reason, words)

    def until_says(self, group: str, kind: str, reason: str, words: str = "") -> str:
        """Wait until a condition has this reason and these words; answers its sentence."""
        return self.rig.until_says(group, kind, reason, words, self.name)

    def until_pod_says(self, name: str, reason: str) -> None:
        """Wait until the PodScheduled condition of a pod has this reason."""
        self.rig.until_pod_says(name, reason, namespace=self.name)

    def until_event(self, name: str, reason: str) -> str:
        """Wait for an Event about an object; answers what it says."""

        def sentence() -> str:
            events = self.rig.events(name, self.name)
            return next((str(e["message"]) for e in events if e["reason"] == reason), "")

        return self.rig.until(sentence, f"an Event says {reason} of {name}")

    def until_pod_bound(self, name: str) -> None:
        """Wait until one pod has a node."""
        self.rig.until(lambda: self.is_bound(name), f"{name} is bound")

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"


def written(rig: Rig) -> list[dict[str, Any]]:
    """Every write of the operator, from the audit log; the Lease is renewed by the clock."""
    return [
        line
        for line in rig.plane.audited()
        if line["user"]["username"] == USER
        and line["verb"] not in LOOKS
        and line["objectRef"]["resource"] != "leases"
    ]


def kind_of(line: Mapping[str, Any]) -> str:
    """What a line of the audit log did, in two words: "create pods/binding"."""
    about = line["objectRef"]
    part = f"/{about['subresource']}" if about.get("subresource") else ""
    return f"{line['verb']} {about['resource']}{part}"


def _place(line: Mapping[str, Any]) -> str:
    return str(line.get("objectRef", {}).get("namespace", ""))
