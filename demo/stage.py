"""Where the story plays: a cluster with Tutti at work, and what of it is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tutti.cli.output.picture import Block, Hold, NodeRow
from tutti.kube.codec import quantity

from .chronicle import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .cluster import Cluster, Manifest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "demo"
GANGS = ("training", "roles", "too-large", "next")
GANGS_IN_QUEUES = ("covered", "borrower", "claimant")  # of the last act
GPU = "nvidia.com/gpu"
GROUPS = "/apis/tutti.dev/v1alpha1"


class Stage(ABC):
    """A cluster that is ready for the gangs; `story` plays on it."""

    cluster: Cluster
    namespace: str
    unit: str
    has_queues = False  # whether the act with queues is played, for which a gang ends

    @abstractmethod
    def manifests(self, gang: str) -> list[Manifest]:
        """What the user of this gang would apply."""

    @abstractmethod
    def finish(self, gang: str) -> None:
        """See to it that a gang's work ends soon, where it does not end by itself."""

    @abstractmethod
    def rows(self) -> list[NodeRow]:
        """The nodes, and who has their slots."""

    @abstractmethod
    def operator_log(self) -> str:
        """The end of the operator's log, where there is one to read."""

    def judged(self) -> str:
        """What an independent judge found, in a sentence; empty where there is none.

        Raises:
            DemoError: a promise was broken.
        """
        return ""

    def exports(self) -> tuple[str, ...]:
        """What a shell needs to use the same cluster."""
        return ()

    def apply(self, gang: str) -> None:
        """Create a gang as its user would."""
        for manifest in self.manifests(gang):
            self.cluster.create(manifest)

    def add_queues(self) -> None:
        """Create the queues of the last act."""
        for manifest in yaml.safe_load_all((EXAMPLES / "queues.yaml").read_text()):
            self.cluster.create(manifest)

    def preempted(self, gang: str) -> str:
        """What the Event of a gang says that ends for another one; empty if there is none."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        for event in self.cluster.items(f"{path}?fieldSelector=reason=Preempted"):
            if event["involvedObject"]["name"] == gang:
                return str(event["message"])
        return ""

    def groups(self) -> list[Manifest]:
        """The PodGroups of the story."""
        return self.cluster.items(f"{GROUPS}/namespaces/{self.namespace}/podgroups")

    def pods(self) -> list[Manifest]:
        """The pods of the story."""
        return self.cluster.items(f"/api/v1/namespaces/{self.namespace}/pods")

    @property
    def reservations(self) -> str:
        """The path of the story's Reservations."""
        return f"{GROUPS}/namespaces/{self.namespace}/reservations"


def example(gang: str, namespace: str) -> list[Manifest]:
    """The manifests of one file of examples/demo, in this namespace."""
    text = (EXAMPLES / f"{gang}.yaml").read_text()
    manifests: list[Manifest] = []
    for manifest in yaml.safe_load_all(text):
        manifest["metadata"]["namespace"] = namespace
        manifests.append(manifest)
    return manifests


def amount(pod: Mapping[str, Any], resource: str) -> int:
    """How much of a resource a pod's containers ask for; cpu in thousandths."""
    asked = 0
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        wanted = resources.get("limits", {}) | resources.get("requests", {})
        asked += quantity.requested(resource, wanted.get(resource, "0"))
    return asked


def holds_room(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is on a node and not through with its work."""
    over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return "nodeName" in pod["spec"] and not over


def block_of(pod: Mapping[str, Any], slots: int, namespace: str) -> Block:
    """What a pod takes of its node, as a gang of the story or as somebody else."""
    metadata = pod["metadata"]
    is_ours = metadata["namespace"] == namespace
    gang = metadata.get("labels", {}).get(GROUP, "") if is_ours else ""
    return Block(gang, slots, Hold.BOUND if gang else Hold.FOREIGN)


def by_node(pods: Iterable[Manifest]) -> Mapping[str, list[Manifest]]:
    """The pods that hold room, by the name of their node."""
    found: dict[str, list[Manifest]] = {}
    for pod in filter(holds_room, pods):
        found.setdefault(pod["spec"]["nodeName"], []).append(pod)
    return found
