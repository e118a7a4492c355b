"""What a run has measured, and medians of it; ready for tables, plots and JSON."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from . import contenders
from .scenes import Twist
from .trials import Case, Figures, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tutti.model.decisions import Objective


@dataclass(frozen=True, slots=True)
class Measured:
    """One case, in one round."""

    case: Case
    figures: Figures
    round: int = 0


class Key(NamedTuple):
    """What rounds of one case have in common."""

    kind: Kind
    scene: str
    strategy: str
    objective: Objective


class Results:
    """All figures of a run, by case."""

    def __init__(self, measured: Iterable[Measured]) -> None:
        self._cases: dict[Key, Case] = {}
        self._rounds: defaultdict[Key, list[Figures]] = defaultdict(list)
        self._bounds: dict[tuple[str, Objective, str], int] = {}
        for each in measured:
            self._add(each.case, each.figures)

    def _add(self, case: Case, figures: Figures) -> None:
        key = Key(case.kind, case.scene.name, case.strategy, case.objective)
        self._cases[key] = case
        self._rounds[key].append(figures)
        if figures.bound is not None and not figures.unfinished:
            place = self._place(key)
            self._bounds[place] = min(figures.bound, self._bounds.get(place, figures.bound))

    def _place(self, key: Key) -> tuple[str, Objective, str]:
        """Whom a bound holds for: of several priorities each strategy's is that of another one."""
        case = self._cases.get(key)
        is_own = case is not None and case.scene.twist is Twist.PRIORITIES
        return key.scene, key.objective, key.strategy if is_own else ""

    def cases(self, kind: Kind = Kind.PLAN) -> Mapping[Key, Case]:
        """All cases of a kind, in the order in which they were first measured."""
        return {key: case for key, case in self._cases.items() if key.kind is kind}

    def rounds(self, key: Key) -> Sequence[Figures]:
        """The rounds that came to an end."""
        return [each for each in self._rounds.get(key, ()) if not each.unfinished]

    def trouble(self, key: Key) -> str:
        """Why a round of it has no figures; empty if all have."""
        whys = (each.unfinished for each in self._rounds.get(key, ()))
        return next((why for why in whys if why), "")

    def median(self, key: Key, figure: Callable[[Figures], float]) -> float:
        """The median over the rounds; not a number where none was measured."""
        values = [figure(each) for each in self.rounds(key)]
        return statistics.median(values) if values else math.nan

    def bound(self, key: Key) -> float:
        """The least bound that any strategy proved for this scene; not a number without one."""
        return self._bounds.get(self._place(key), math.nan)

    def reached(self, key: Key) -> float:
        """The value admitted, over the bound."""
        bound = self.bound(key)
        return self.median(key, lambda one: one.value) / bound if bound else 1.0


def plain_values(measured: Iterable[Measured]) -> Sequence[Mapping[str, object]]:
    """Every round as JSON has it."""
    return [
        {
            "kind": each.case.kind.value,
            "scene": each.case.scene.name,
            "nodes": each.case.scene.nodes,
            "waiting": each.case.scene.gangs,
            "strategy": each.case.strategy,
            "engine": contenders.engine(each.case.strategy),
            "objective": each.case.objective.value,
            "round": each.round,
            **asdict(each.figures),
        }
        for each in measured
    ]
