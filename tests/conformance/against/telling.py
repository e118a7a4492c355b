"""Words and a table for people: who placed which gangs, and how Tutti fares beside each rival."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rich.table import Table

from .cases import Kind
from .existing import is_placement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .playing import Outcome, Turn

Found = dict[str, dict[str, "Outcome"]]  # by the case's name and the scheduler's


def table(outcomes: Mapping[Turn, Outcome], own: str, rivals: Sequence[str]) -> Table:
    """By kind: gangs, how many each has placed and left in part, wins, ties and losses."""
    by_kind: defaultdict[Kind, Found] = defaultdict(dict)
    for turn, outcome in outcomes.items():
        by_kind[turn.case.kind].setdefault(turn.case.name, {})[turn.who] = outcome
    columns = [f"{rival}\n{what}" for rival in rivals for what in ("placed", "in part", "w/t/l")]
    made = Table("what is hard", "gangs", *(f"{own}\n{what}" for what in ("placed", "in part")))
    for column in columns:
        made.add_column(column, no_wrap=True)
    made.title = "Gangs that can be placed, and are"
    made.caption = f"w/t/l: {own} places it and the other does not, both or neither do, vice versa"
    for kind in Kind:
        if kind in by_kind:
            made.add_row(*_row(kind, by_kind[kind], own, rivals))
    made.add_section()
    everything = {name: found for each in by_kind.values() for name, found in each.items()}
    made.add_row(*_row("in all", everything, own, rivals))
    return made


def _row(name: str, found: Found, own: str, rivals: Sequence[str]) -> Iterator[str]:
    yield from (name, f"{len(found)}", *_counts(found, own))
    for rival in rivals:
        yield from _counts(found, rival)
        pairs = [(each[own].is_placed, each[rival].is_placed) for each in found.values()]
        won, lost = pairs.count((True, False)), pairs.count((False, True))
        yield f"{won}/{len(pairs) - won - lost}/{lost}"


def _counts(found: Found, who: str) -> tuple[str, str]:
    outcomes = [each[who] for each in found.values()]
    return f"{sum(o.is_placed for o in outcomes)}", f"{sum(o.is_partial for o in outcomes)}"


def sentences(outcomes: Mapping[Turn, Outcome], own: str) -> Iterator[str]:
    """What is wrong: gangs that Tutti has not placed, and members where they may not be."""
    for turn, outcome in outcomes.items():
        about = f"{turn.case.name}, {turn.who}"
        if turn.who == own and not outcome.is_placed:
            yield f"{about}: {outcome.bound} of {outcome.size} members are bound"
        elif outcome.is_placed and not is_placement(turn.case, outcome.nodes):
            yield f"{about}: somebody is where it may not be"
