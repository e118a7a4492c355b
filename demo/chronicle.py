"""What is seen of the gangs: one look after the other, and what happened in between.

Pure but for the clock that is passed in, so that screen and story need no cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

GROUP = "tutti.dev/pod-group"
RUNNING = "Running"
SUCCEEDED = "Succeeded"


@dataclass(frozen=True, slots=True)
class Gang:
    """One gang at one moment, members counted from the pods themselves."""

    name: str
    needed: int = 0
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    phase: str = "New"
    reason: str = ""
    sentence: str = ""
    ended_for: str = ""  # what the condition Preempted says
    nodes: int = 0
    age: float = 0.0

    @property
    def is_part_bound(self) -> bool:
        """Whether some, but not all that it needs, have a node."""
        return 0 < self.bound < self.needed

    @property
    def is_bound(self) -> bool:
        """Whether all that it needs have a node."""
        return self.bound >= self.needed > 0

    @property
    def is_running(self) -> bool:
        """Whether all that it needs run."""
        return self.running >= self.needed > 0

    @property
    def is_finished(self) -> bool:
        """Whether all that it needs have done their work."""
        return self.succeeded >= self.needed > 0


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened to a gang; ``at`` is in seconds since the story began."""

    at: float
    gang: str
    word: str
    sentence: str


def gang_of(group: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], age: float) -> Gang:
    """A gang from its PodGroup and its pods as the API server tells them."""
    name = group["metadata"]["name"]
    mine = [pod for pod in pods if pod["metadata"].get("labels", {}).get(GROUP) == name]
    placed = [pod["spec"]["nodeName"] for pod in mine if "nodeName" in pod["spec"]]
    phases = [pod.get("status", {}).get("phase") for pod in mine]
    status = group.get("status", {})
    conditions: Sequence[Mapping[str, str]] = status.get("conditions", [])
    reserved = next((line for line in conditions if line["type"] == "Reserved"), {})
    waits = reserved.get("status") == "False"
    preempted = next((line for line in conditions if line["type"] == "Preempted"), {})
    return Gang(
        name=name,
        needed=_needed(group["spec"]),
        bound=len(placed),
        running=phases.count(RUNNING),
        succeeded=phases.count(SUCCEEDED),
        phase=status.get("phase", "New"),
        reason=reserved.get("reason", "") if waits else "",
        sentence=reserved.get("message", "") if waits else "",
        ended_for=preempted.get("message", ""),
        nodes=len(set(placed)),
        age=age,
    )


def _needed(spec: Mapping[str, Any]) -> int:
    return int(spec.get("minMember") or sum(role["minMember"] for role in spec["roles"]))


class Chronicle:
    """Folds looks into the present state and the list of what happened."""

    def __init__(self) -> None:
        self.gangs: dict[str, Gang] = {}
        self.happenings: list[Happening] = []
        self._reserved: set[str] = set()
        self._part_bound_since: dict[str, float] = {}

    def reserved(self, at: float, reservation: Mapping[str, Any]) -> None:
        """Note a Reservation once: the moment from which the gang's room is promised."""
        uid, spec = reservation["metadata"]["uid"], reservation["spec"]
        if uid in self._reserved:
            return
        self._reserved.add(uid)
        placement = spec["placement"]
        members = sum(len(e.get("pods", ())) + len(e.get("uids", ())) for e in placement)
        nodes = len({entry["node"] for entry in placement})
        text = f"room for all {members} members on {nodes} nodes is written down"
        self._note(at, spec["podGroup"]["name"], "reserved", text)

    def look(self, at: float, gangs: Sequence[Gang]) -> None:
        """Take in what was just seen of all gangs."""
        # Within one look, what ends comes before what begins in its place.
        for gang in sorted(gangs, key=lambda gang: -gang.succeeded):
            self._compare(at, self.gangs.get(gang.name, Gang(gang.name)), gang)
            if gang.is_part_bound:
                self._part_bound_since.setdefault(gang.name, at)
            else:
                self._part_bound_since.pop(gang.name, None)
        self.gangs = {gang.name: gang for gang in gangs}

    def when(self, gang: str, word: str) -> float | None:
        """When something first happened to a gang; None if it has not."""
        return next((h.at for h in self.happenings if (h.gang, h.word) == (gang, word)), None)

    def part_bound(self, at: float) -> Mapping[str, float]:
        """The gangs that are bound in part, and for how many seconds."""
        return {name: at - since for name, since in self._part_bound_since.items()}

    def _compare(self, at: float, before: Gang, now: Gang) -> None:
        if now.needed and not before.needed:
            self._note(at, now.name, "created", f"needs {now.needed} members, all or none")
        if now.reason and now.reason != before.reason and not now.is_bound:
            self._note(at, now.name, now.reason, now.sentence)
        if now.ended_for and not before.ended_for:
            self._note(at, now.name, "ended", now.ended_for)
        if now.is_bound and not before.is_bound:
            text = f"all {now.bound} members on {now.nodes} nodes"
            self._note(at, now.name, "bound", text)
        if now.is_running and not before.is_running:
            self._note(at, now.name, "running", f"all {now.running} members run")
        if now.succeeded and not before.succeeded and not now.is_finished:
            text = f"{now.succeeded} of {now.needed} members are done"
            self._note(at, now.name, "finishing", text)
        if now.is_finished and not before.is_finished:
            self._note(at, now.name, "finished", f"all {now.succeeded} members are done")

    def _note(self, at: float, gang: str, word: str, sentence: str) -> None:
        self.happenings.append(Happening(at, gang, word, sentence))
