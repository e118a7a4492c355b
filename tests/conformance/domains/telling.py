"""Tables and words for people: who starts which gangs, and what is wrong."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rich.table import Table

from .cases import NODES
from .oracle import faults
from .scenes import scene_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .cases import Case, Gang


class Verdict(StrEnum):
    """What became of a gang."""

    PLACED = "placed"  # whole, in one domain
    REFUSED = "refused"  # no member has a node
    WRONG = "wrong"  # in part, in several domains, or started without room


@dataclass(frozen=True, slots=True)
class Outcome:
    """Nodes of members by the pods' names, and what is said of the gangs that do not start."""

    where: Mapping[str, str]
    waiting: Mapping[str, str]

    def verdict(self, case: Case, gang: Gang) -> Verdict:
        """What became of a gang of the case; room that is exceeded is the fault of all."""
        if not any(gang.member(i) in self.where for i in range(len(gang.sizes))):
            return Verdict.REFUSED
        own = f"{gang.name}: "
        found = [line for line in self.faults(case) if line.startswith(own) or "GPUs" in line]
        return Verdict.WRONG if found else Verdict.PLACED

    def faults(self, case: Case) -> list[str]:
        """What is wrong with where the members are."""
        return list(faults(NODES, case.free, case.gangs, self.where))

    def placed(self, case: Case) -> int:
        """How many gangs of the case are whole in one domain."""
        return sum(self.verdict(case, gang) is Verdict.PLACED for gang in case.gangs)


Found = dict[str, "Outcome | None"]  # by scheduler; None if it cannot be asked
Results = list[tuple["Case", Found]]


def gangs_table(results: Results, names: Sequence[str]) -> Table:
    """By what is asked for: gangs, and of each scheduler how many it is asked, places and so on."""
    rows: defaultdict[str, Results] = defaultdict(list)
    without: Results = []
    for case, found in results:
        (gang,) = case.gangs
        if case.has_placement:
            rows[f"{gang.kind}, one {gang.level}"].append((case, found))
        else:
            without.append((case, found))
    words = ("asked", *Verdict)
    table = Table("one gang at a time", "gangs", title="Gangs in one domain, one by one")
    for name in names:
        for word in words:
            table.add_column(f"{name}\n{word}", justify="right")
    for row, of in rows.items():
        table.add_row(row, f"{len(of)}", *_gang_counts(of, names))
    table.add_section()
    everything = [each for of in rows.values() for each in of]
    table.add_row(
        "all that have a placement", f"{len(everything)}", *_gang_counts(everything, names)
    )
    table.add_row("all that have none", f"{len(without)}", *_gang_counts(without, names))
    return table


def _gang_counts(results: Results, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        verdicts = [o.verdict(case, case.gangs[0]) for case, o in _asked(results, name)]
        yield f"{len(verdicts)}"
        yield from (f"{verdicts.count(verdict)}" for verdict in Verdict)


def scenes_table(results: Results, names: Sequence[str]) -> Table:
    """By kind of scene: of each scheduler the scenes that it places all of, and the gangs."""
    rows: defaultdict[str, Results] = defaultdict(list)
    for case, found in results:
        rows[scene_of(case)].append((case, found))
    title = "Gangs that have a placement together, created at once"
    table = Table("gangs of a scene", "scenes", title=title)
    for name in names:
        for word in ("asked", "all placed", "gangs placed", "wrong"):
            table.add_column(f"{name}\n{word}", justify="right")
    for row, of in rows.items():
        table.add_row(row, f"{len(of)}", *_scene_counts(of, names))
    table.add_section()
    table.add_row("all", f"{len(results)}", *_scene_counts(results, names))
    return table


def _scene_counts(results: Results, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        asked = _asked(results, name)
        placed = [(outcome.placed(case), len(case.gangs)) for case, outcome in asked]
        yield f"{len(asked)}"
        yield f"{sum(some == every for some, every in placed)}"
        yield f"{sum(some for some, _ in placed)} of {sum(every for _, every in placed)}"
        verdicts = [o.verdict(case, gang) for case, o in asked for gang in case.gangs]
        yield f"{verdicts.count(Verdict.WRONG)}"


def _asked(results: Iterable[tuple[Case, Found]], name: str) -> list[tuple[Case, Outcome]]:
    pairs = ((case, found.get(name)) for case, found in results)
    return [(case, outcome) for case, outcome in pairs if outcome is not None]


def misses(results: Results, own: str) -> list[str]:
    """Gangs with a placement that Tutti does not start."""
    return [
        f"{case.name}, {own}: {name} has a placement and is refused: {said}"
        for case, outcome in _asked(results, own)
        if case.has_placement
        for name, said in outcome.waiting.items()
    ]


def wrongs(results: Results, name: str) -> list[str]:
    """What a scheduler starts in part, in several domains, or without room."""
    return [
        f"{case.name}, {name}: {line}"
        for case, outcome in _asked(results, name)
        for line in outcome.faults(case)
    ]
