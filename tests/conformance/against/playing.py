"""Cases played on a real control plane: every scheduler gets nodes and a namespace of its own.

Some cases are played side by side, by all schedulers at once, and cleared away before the next.
Nodes need no kubelet for that: what is asked is who is bound where.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...bench.e2e.changes import opening
from ...bench.e2e.contenders import CONTENDERS
from ...bench.e2e.stage import install_coscheduling
from ...bench.e2e.writing import Server, write_all, written
from ...harness import operator_process
from ...harness.controlplane.api import collection
from ...harness.controlplane.cluster import ControlPlane
from . import manifests

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from .cases import Case

PATIENCE_SECONDS = 60.0  # for everyone; a second or two is what it takes
_LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scheduler made of a gang within the time that everybody has."""

    nodes: Mapping[str, str]  # of the members that have one, as the case calls it
    size: int

    @property
    def bound(self) -> int:
        """How many members have a node."""
        return len(self.nodes)

    @property
    def is_placed(self) -> bool:
        """Whether all members have a node."""
        return self.bound == self.size

    @property
    def is_partial(self) -> bool:
        """Whether some have one and others not: what a gang scheduler is there to prevent."""
        return 0 < self.bound < self.size


class Turn(NamedTuple):
    """A scheduler's go at a case."""

    case: Case
    who: str

    @property
    def place(self) -> str:
        """The name of its namespace and of its nodes' pool."""
        return f"{self.who}-{self.case.name}"

    def gang(self) -> Iterator[dict[str, Any]]:
        """The group and its members."""
        return manifests.gang(self.case, self.place, CONTENDERS[self.who].form)


class Arena:
    """A control plane on which some schedulers are at work."""

    def __init__(self, plane: ControlPlane, who: Sequence[str]) -> None:
        """``who`` are names of contenders."""
        self._plane, self._who = plane, who
        self._server = Server(plane.server, plane.tls())

    def play(
        self, cases: Iterable[Case], patience: float = PATIENCE_SECONDS
    ) -> Mapping[Turn, Outcome]:
        """Let every scheduler place each of these gangs, and leave nothing behind."""
        turns = [Turn(case, who) for case in cases for who in self._who]
        self._set_up(turns)
        self._create(each for turn in turns for each in turn.gang())
        deadline = time.monotonic() + patience
        found = self._outcomes(turns)
        while time.monotonic() < deadline and not all(o.is_placed for o in found.values()):
            time.sleep(_LOOK_SECONDS)
            found = self._outcomes(turns)
        self._clear(turns)
        return found

    def _set_up(self, turns: Sequence[Turn]) -> None:
        self._create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": turn.place}}
            for turn in turns
        )
        # Admission refuses a pod whose service account is missing.
        self._create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": turn.place},
            }
            for turn in turns
        )
        nodes = [each for turn in turns for each in manifests.nodes(turn.case, turn.place)]
        self._create(nodes)
        self._write(map(opening, nodes))
        self._create(each for turn in turns for each in manifests.others(turn.case, turn.place))

    def _clear(self, turns: Sequence[Turn]) -> None:
        # Pods first, for a group is kept for as long as it has some.
        for of in (_pods, _groups_and_nodes):
            self._write(
                written("DELETE", f"{collection(each)}/{_name(each)}?gracePeriodSeconds=0")
                for turn in turns
                for each in of(turn)
            )

    def _outcomes(self, turns: Sequence[Turn]) -> Mapping[Turn, Outcome]:
        """Who has which node by now."""
        selector = f"labelSelector={manifests.MEMBER}%3Dyes"
        nodes: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for pod in self._plane.request("GET", f"/api/v1/pods?{selector}")["items"]:
            place = pod["metadata"]["namespace"]
            if "nodeName" in pod["spec"]:
                nodes[place][_name(pod)] = pod["spec"]["nodeName"].removeprefix(f"{place}-")
        return {turn: Outcome(nodes[turn.place], turn.case.size) for turn in turns}

    def _create(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._write(written("POST", collection(item), item) for item in objects)

    def _write(self, requests: Iterable[bytes]) -> None:
        write_all(self._server, requests)


def _pods(turn: Turn) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in turn.gang() if each["kind"] == "Pod")
    yield from manifests.others(turn.case, turn.place)


def _groups_and_nodes(turn: Turn) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in turn.gang() if each["kind"] != "Pod")
    yield from manifests.nodes(turn.case, turn.place)


def _name(body: Mapping[str, Any]) -> str:
    return str(body["metadata"]["name"])


@contextmanager
def arena(who: Collection[str]) -> Iterator[Arena]:
    """A control plane of its own, and these schedulers at work on it."""
    features = {"native-gang"} & {name for each in who for name in CONTENDERS[each].components}
    with ControlPlane.start(components=features) as plane:
        operator_process.install(plane)
        install_coscheduling(plane)
        running = []
        try:
            for each in who:
                running.append(CONTENDERS[each].start(plane))  # noqa: PERF401 - stop those that run
            yield Arena(plane, tuple(who))
        finally:
            for one in running:
                one.stop()
