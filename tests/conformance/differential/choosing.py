"""One pod after the other: the node that kube-scheduler chose beside the best of Tutti."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tutti.planning.plan import plan
from tutti.planning.scores import WEIGHTS, Weights
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness.judge import background
from . import feasible
from .chooser import Chooser
from .ours import Reading
from .stage import RefusedError, stage
from .wishing import scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tutti.model.cluster import Member, Snapshot

    from ...harness.controlplane.cluster import ControlPlane
    from .scenes import Probe
    from .stage import Stage

    Manifest = dict[str, Any]

PROBES = 12  # pods that are asked about on one cluster, one after the other


@dataclass(frozen=True, slots=True)
class Choice:
    """A pod that may run on several nodes, and the one that kube-scheduler chose."""

    rows: tuple[str, ...]
    snapshot: Snapshot
    member: Member
    node: str

    @property
    def best(self) -> frozenset[str]:
        """The nodes that Tutti likes best."""
        return frozenset(map(str, feasible.best(self.snapshot, self.member)))

    @property
    def planned(self) -> str:
        """The node that the plan gives the pod."""
        made = plan(self.snapshot, BestFit(), BestFit(), Budget())
        (node,) = (
            assignment.node
            for placed in made.placements
            for assignment in placed.assignments
            if assignment.uid == self.member.uid
        )
        return str(node)

    @property
    def agrees(self) -> bool:
        """Whether both choose among the same nodes, as far as two answers can tell."""
        return {self.node, self.planned} <= self.best

    @property
    def tells(self) -> bool:
        """Whether some node that would do is not among the best."""
        return len(self.best) < len(feasible.nodes(self.snapshot, self.member))


@dataclass(slots=True)
class Choices:
    """What was asked, and how it came out."""

    agreed: list[Choice] = field(default_factory=list)
    wrong: list[Choice] = field(default_factory=list)
    late: int = 0  # kube-scheduler itself chose otherwise a moment later
    skipped: int = 0  # refused by the API server or an error to kube-scheduler, or nowhere to go
    rows: Counter[str] = field(default_factory=Counter)  # by wish: choices that tell something

    def add(self, choice: Choice) -> None:
        """Count a choice that has been compared."""
        (self.agreed if choice.agrees else self.wrong).append(choice)
        if choice.tells:
            self.rows.update(choice.rows)

    @property
    def cases(self) -> int:
        """How many have been compared."""
        return len(self.agreed) + len(self.wrong)


def run(plane: ControlPlane, cases: int, seed: int) -> Choices:
    """Ask about so many pods, on the clusters from this number on."""

    async def all_of_them() -> Choices:
        choices, number = Choices(), seed
        async with stage(plane, Chooser) as ours:
            while choices.cases < cases:
                await _played(ours, number, choices)
                number += 1
        return choices

    return background.run(all_of_them())


async def _played(ours: Stage, number: int, choices: Choices) -> None:
    made = scene(number, PROBES)
    await ours.play(made)
    try:
        reading = Reading(await ours.objects())
        for probe in made.probes:
            choice = await _asked(ours, reading, probe)
            if choice is not None and not choice.agrees:
                # As late answers go, so does what the scheduler's caches say: ask once more.
                again = await _asked(ours, reading, probe)
                if again is None or again.agrees:
                    choices.late += 1
                    continue
            if choice is None:
                choices.skipped += 1
            else:
                choices.add(choice)
    finally:
        await ours.clear()


async def _asked(ours: Stage, reading: Reading, probe: Probe) -> Choice | None:
    try:
        pod, answer = await ours.ask(probe.pod)
    except RefusedError:
        return None
    snapshot, member = reading.picture(pod)
    if answer is None or not answer.nodes or member.unsupported_fields:
        return None
    (node,) = answer.nodes
    return Choice(probe.rows, snapshot, member, node)


def _weighing(**weights: int) -> Callable[[Choice], frozenset[str]]:
    wrong: Weights = WEIGHTS._replace(**weights)
    return lambda one: frozenset(map(str, feasible.best(one.snapshot, one.member, wrong)))


def _lonely(choice: Choice) -> frozenset[str]:
    modest = tuple(replace(pod, scored_terms=()) for pod in choice.snapshot.placed_pods)
    return frozenset(
        map(str, feasible.best(replace(choice.snapshot, placed_pods=modest), choice.member))
    )


def _staying(choice: Choice) -> frozenset[str]:
    kept = tuple(replace(pod, terminating=False) for pod in choice.snapshot.placed_pods)
    return frozenset(
        map(str, feasible.best(replace(choice.snapshot, placed_pods=kept), choice.member))
    )


# Wrong scores, of which each must be noticed.
CONTROLS: Mapping[str, Callable[[Choice], frozenset[str]]] = {
    "taints weigh nothing": _weighing(taints=0),
    "node affinity weighs nothing": _weighing(nodes=0),
    "spread weighs nothing": _weighing(spread=0),
    "pods weigh nothing": _weighing(pods=0),
    "taints weigh as much as node affinity": _weighing(taints=2),
    "pods weigh twice as much": _weighing(pods=4),
    "those who are there draw nobody": _lonely,
    "terminating pods are spread, too": _staying,
}


def unnoticed(choices: Sequence[Choice]) -> list[str]:
    """The wrong scores that these choices, which agree, do not tell from the right ones.

    Among equals kube-scheduler takes one by chance; a wrong score counts as told only where it
    likes none of them.
    """
    return [
        name
        for name, wrong in CONTROLS.items()
        if not any(choice.best.isdisjoint(wrong(choice)) for choice in choices)
    ]


def sentences(choices: Choices) -> Iterator[str]:
    """What was asked and what differs, line by line."""
    told = ", ".join(f"{row}: {count}" for row, count in sorted(choices.rows.items()))
    yield (
        f"{choices.cases} pods that would rather run here or there: {len(choices.wrong)} were bound"
        f" to a node that Tutti likes less than another ({choices.skipped} not comparable,"
        f" {choices.late} answers taken back); some nodes better than others, by wish: {told}"
    )
    for one in choices.wrong:
        yield (
            f"{one.member.key}: kube-scheduler chose {one.node}, the plan {one.planned}, the best"
            f" are {', '.join(sorted(one.best))}; {one.member.shape.preferences}"
        )
