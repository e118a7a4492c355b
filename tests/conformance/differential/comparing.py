"""One case after the other: what the oracle found beside what Tutti finds, and what is counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .minors import allows_more, as_older, ends_kube_scheduler
from .ours import Ours, Reading
from .prebound import is_of_a_claim_not_bound_yet
from .stage import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .oracle import Answer
    from .scenes import Probe, Scene
    from .stage import Stage

    Manifest = dict[str, Any]


GIVEN_UP = (
    "CEL runtime error",
    "asks for all devices, but resource pool",
    "a claim constraint would not be satisfied",  # by all devices of a node
)


@dataclass(frozen=True, slots=True)
class Case:
    """A pod on a cluster, as the API server has them, and what the oracle found; None: gated."""

    name: str
    rows: tuple[str, ...]
    objects: Sequence[Manifest]
    pod: Manifest
    answer: Answer | None

    @property
    def nodes(self) -> frozenset[str]:
        """All nodes of the cluster."""
        return frozenset(o["metadata"]["name"] for o in self.objects if o["kind"] == "Node")

    @property
    def gave_up(self) -> bool:
        """Whether kube-scheduler gave the pod up for one device or pool, whatever other nodes have.

        It does at an expression that fails; and for a request for all at an incomplete pool, and at
        devices for which a constraint does not hold.
        """
        return self.answer is not None and any(text in self.answer.message for text in GIVEN_UP)

    @property
    def tells(self) -> bool:
        """Whether the pod may run on some nodes but not on all."""
        # One node is there for the sentinel alone.
        return self.answer is not None and 0 < len(self.answer.nodes) < len(self.nodes) - 1


def differs(case: Case, ours: Ours) -> bool:
    """Whether Tutti claims to know, and knows it differently."""
    if ours.unmodelled or case.gave_up:
        return False
    if case.answer is None or ours.gated or ours.broken:
        return bool(ours.broken) or ours.gated != (case.answer is None)
    if ours.is_bound:
        return not ours.nodes <= case.answer.nodes
    return ours.nodes != case.answer.nodes


def is_of_an_older_minor(case: Case) -> bool:
    """Whether Tutti differs, but would not if it did what the oracle's minor is known to do."""
    ours = Reading(case.objects).answer(case.pod)
    if not differs(case, ours):
        return False
    if case.answer is not None and allows_more(case.objects, case.pod):
        return ours.nodes <= case.answer.nodes
    objects, pod = as_older(case.objects, case.pod)
    return not differs(case, Reading(objects).answer(pod))


@dataclass(slots=True)
class Tally:
    """What was counted."""

    cases: int = 0
    agreed: int = 0
    telling: int = 0
    late: int = 0  # the oracle itself said otherwise a moment later
    older: int = 0  # as this minor is known to answer, and the newest not
    early: int = 0  # as long as the PV controller has not bound a claim to its volume
    refused: int = 0  # by the API server
    given_up: int = 0  # by kube-scheduler: see ``Case.gave_up``
    left_out: int = 0  # kube-scheduler of this minor ends at them
    rows: Counter[str] = field(default_factory=Counter)
    telling_rows: Counter[str] = field(default_factory=Counter)
    unmodelled: Counter[str] = field(default_factory=Counter)  # by field
    unknown: Counter[str] = field(default_factory=Counter)  # cases not modelled, by row
    wrong: list[tuple[Case, Ours]] = field(default_factory=list)

    @property
    def modelled(self) -> list[str]:
        """The rows that Tutti knows: of most of their cases it says where the pod may run."""
        return [row for row, count in self.rows.items() if 2 * self.unknown[row] < count]

    def add(self, case: Case, ours: Ours) -> None:
        """Count a case that has been compared."""
        self.cases += 1
        self.given_up += case.gave_up
        self.rows.update(case.rows)
        if case.tells:
            self.telling += 1
            self.telling_rows.update(case.rows)
        if ours.unmodelled:
            self.unmodelled.update(ours.unmodelled)
            self.unknown.update(case.rows)
        elif differs(case, ours):
            self.wrong.append((case, ours))
        else:
            self.agreed += 1


async def played(stage: Stage, scene: Scene, tally: Tally) -> list[Case]:
    """Play a scene and count all of its cases; answers them."""
    await stage.play(scene)
    try:
        return await asked(stage, scene.probes, tally)
    finally:
        await stage.clear()


async def asked(stage: Stage, probes: Sequence[Probe], tally: Tally) -> list[Case]:
    """Ask about pods on the cluster as it is, and count the cases; answers them."""
    objects = await stage.objects()
    reading = Reading(objects)
    answerable = [probe for probe in probes if not ends_kube_scheduler(objects, probe.pod)]
    tally.left_out += len(probes) - len(answerable)
    first = await asyncio.gather(*(_asked(stage, probe, objects) for probe in answerable))
    cases = []
    for case, probe in zip(first, answerable, strict=True):
        if case is None:
            tally.refused += 1
            continue
        ours = reading.answer(case.pod)
        if differs(case, ours):
            if is_of_an_older_minor(case):
                tally.older += 1
                continue
            if is_of_a_claim_not_bound_yet(case):
                tally.early += 1
                continue
            # As late answers go, so does what the scheduler's caches say: ask once more.
            again = await _asked(stage, probe, objects)
            if again is None or not differs(again, ours):
                tally.late += 1
                continue
        tally.add(case, ours)
        cases.append(case)
    return cases


async def _asked(stage: Stage, probe: Probe, objects: Sequence[Manifest]) -> Case | None:
    try:
        pod, answer = await stage.ask(probe.pod)
    except RefusedError:
        return None
    return Case(probe.pod["metadata"]["name"], probe.rows, objects, pod, answer)


def compared(cases: Sequence[Case]) -> Iterator[tuple[Case, Ours]]:
    """Each case with what Tutti finds, without asking anybody else."""
    readings: dict[int, Reading] = {}
    for case in cases:
        key = id(case.objects)
        if key not in readings:
            readings[key] = Reading(case.objects)
        yield case, readings[key].answer(case.pod)
