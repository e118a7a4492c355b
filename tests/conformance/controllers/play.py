"""One play for every controller that makes gangs, with the operator, and judged at the end.

A gang starts whole, another waits for its room, a member is killed and replaced, and all that is
suspended or deleted gives its room back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...harness.rig import Rig
from .ground import NAMESPACE, path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SUSPENDED: Mapping[bool, Mapping[str, Any]] = {
    is_suspended: {"spec": {"suspend": is_suspended}} for is_suspended in (True, False)
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A controller, and its job of three pods that takes 60 % of the room on two nodes."""

    components: tuple[str, ...]
    version: str  # of the job's API
    plural: str
    job: Callable[[str], Sequence[Mapping[str, Any]]]  # with what it needs besides, by its name
    label: str  # by which its pods name it
    is_running: Callable[[Mapping[str, Any]], bool]  # that it says so of itself
    sources: tuple[str, ...] = ()  # the gang sources that are turned on
    cpus: int = 4  # of each node
    # By whether it is: what is patched into a job.
    suspension: Mapping[bool, Mapping[str, Any]] = field(default_factory=lambda: SUSPENDED)
    scheduler: str = "tutti"


def has_condition(kind: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a job says of itself that a condition is true."""

    def says(job: Mapping[str, Any]) -> bool:
        lines = job.get("status", {}).get("conditions", [])
        return any(line["type"] == kind and line["status"] == "True" for line in lines)

    return says


def play(scene: Scene) -> None:
    """Play a scene on a control plane of its own."""
    values, environment = [f"settings.schedulerName={scene.scheduler}"], {}
    environment["TUTTI_SCHEDULER_NAME"] = scene.scheduler
    if scene.sources:
        values.append(f"settings.gangSources={{{','.join(scene.sources)}}}")
        environment["TUTTI_GANG_SOURCES"] = ",".join(scene.sources)
    components = ("controller-manager", *scene.components)
    with Rig.start(*components, values=values, environment=environment) as rig:
        rig.nodes(2, cpu=scene.cpus, memory="64Gi")
        _Acts(rig, scene).play()


@dataclass(frozen=True, slots=True)
class _Acts:
    rig: Rig
    scene: Scene

    def play(self) -> None:
        self._create("first")
        self._until_bound("first", 3)
        self._until_running("first")
        self._create("second")
        self._until_waits("second")
        self._kill_one("first")
        self._until_bound("first", 3)
        self._until_running("first")
        self._until_waits("second")
        self._suspend("first", is_suspended=True)
        self._until_bound("second", 3)
        self._until_running("second")
        self._suspend("first", is_suspended=False)
        self._until_waits("first")
        self._delete("second")
        self._until_bound("first", 3)
        self._until_running("first")
        self._delete("first")
        self.rig.until(lambda: not self.rig.pods(), "nothing is left")

    def _address(self, name: str) -> str:
        return path(self.scene.version, self.scene.plural, name)

    def _create(self, name: str) -> None:
        self.rig.create(*self.scene.job(name))

    def _pods(self, name: str) -> list[dict[str, Any]]:
        """The pods of a job that live."""
        return [
            pod
            for pod in self.rig.pods()
            if pod["metadata"].get("labels", {}).get(self.scene.label) == name
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def _bound(self, name: str) -> list[dict[str, Any]]:
        return [pod for pod in self._pods(name) if "nodeName" in pod["spec"]]

    def _until_bound(self, name: str, number: int) -> None:
        self.rig.until(
            lambda: len(self._bound(name)) == number, f"{number} pods of {name} have a node"
        )

    def _until_running(self, name: str) -> None:
        address = self._address(name)
        self.rig.until(
            lambda: self.scene.is_running(self.rig.plane.request("GET", address)), f"{name} runs"
        )

    def _until_waits(self, name: str) -> None:
        """All its pods are there and say that they wait for room, and none has a node."""
        self.rig.until(lambda: self._are_waiting(name), f"{name} waits for room")
        assert len(self._bound(name)) == 0

    def _are_waiting(self, name: str) -> bool:
        pods = self._pods(name)
        said = [self.rig.pod_says(pod["metadata"]["name"]).get("reason") for pod in pods]
        return said == ["Unschedulable"] * 3

    def _kill_one(self, name: str) -> None:
        """Delete the last pod by name: no launcher, master or head."""
        victim = max(self._pods(name), key=lambda pod: str(pod["metadata"]["name"]))
        uid = victim["metadata"]["uid"]
        self.rig.delete("pod", victim["metadata"]["name"])
        self.rig.until(
            lambda: uid not in {pod["metadata"]["uid"] for pod in self.rig.pods()}, "it is gone"
        )

    def _suspend(self, name: str, *, is_suspended: bool) -> None:
        patch = self.scene.suspension[is_suspended]
        self.rig.plane.request("PATCH", self._address(name), patch)
        if is_suspended:
            self.rig.until(lambda: not self._pods(name), f"{name} has no pods")

    def _delete(self, name: str) -> None:
        self.rig.plane.kubectl("delete", *self._delete_arguments(name))
        self.rig.until(lambda: not self._pods(name), f"{name} has no pods")

    def _delete_arguments(self, name: str) -> tuple[str, ...]:
        group = self.scene.version.rpartition("/")[0]
        return (f"{self.scene.plural}.{group}", name, "-n", NAMESPACE, "--wait=false")
