"""The verdicts of kube-scheduler beside what Tutti answers, and what is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tutti.filters.devices import selectors

from .byhand import KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tutti.model.devices.inventory import Device

    from .asking import Verdict

    Matches = Callable[[str, Device], bool]

MOST_UNMODELLED = 0.05  # of the valid expressions
LEAST_VALID = 0.7  # of all expressions


@dataclass(slots=True)
class Tally:
    """What was counted."""

    cases: int = 0
    agreed: int = 0
    telling: int = 0  # of those that agreed: they select some devices and not all
    failing: int = 0  # of those that agreed: they fail at a device
    refused: int = 0  # by the API server
    admitted: Counter[str] = field(default_factory=Counter)  # refused, but not by Tutti; by kind
    unmodelled: Counter[str] = field(default_factory=Counter)  # by what Tutti says of them
    known: int = 0  # of the kind ``KNOWN``: they differ where kube-scheduler fails, and only there
    wrong: list[tuple[Verdict, frozenset[str]]] = field(default_factory=list)

    @property
    def valid(self) -> int:
        """The expressions that the API server takes."""
        return self.cases - self.refused

    @property
    def is_good(self) -> bool:
        """Whether no answer differs, and few expressions are left out of the comparison."""
        return (
            not self.wrong
            and self.unmodelled.total() <= MOST_UNMODELLED * self.valid
            and self.valid >= LEAST_VALID * self.cases
        )


def matches(expression: str, device: Device) -> bool:
    """What Tutti answers."""
    return selectors.matches([expression], device)


def compared(
    verdicts: Iterable[Verdict], devices: Mapping[str, Device], answer: Matches = matches
) -> Tally:
    """Count all verdicts."""
    tally = Tally()
    for verdict in verdicts:
        expression = verdict.case.expression
        tally.cases += 1
        problem = selectors.selector(expression).problem
        if verdict.refusal:
            tally.refused += 1
            tally.admitted.update([] if problem else [verdict.case.kind])
        elif problem:
            tally.unmodelled[problem] += 1
        else:
            ours = frozenset(node for node, one in devices.items() if answer(expression, one))
            if _is_known(verdict, ours):
                tally.known += 1
            elif ours != verdict.selected:
                tally.wrong.append((verdict, ours))
            else:
                tally.agreed += 1
                tally.telling += 0 < len(ours) < len(devices)
                tally.failing += bool(verdict.failed)
    return tally


def _is_known(verdict: Verdict, ours: frozenset[str]) -> bool:
    """Whether the expression is known to differ, and does where kube-scheduler fails alone."""
    return (
        verdict.case.kind == KNOWN
        and ours > verdict.selected
        and ours - verdict.selected <= verdict.failed
    )


def sentences(tally: Tally) -> Iterator[str]:
    """Each difference, what is not modelled, and one line about all."""
    for verdict, ours in tally.wrong:
        yield f"{verdict.case.kind}: {verdict.case.expression}"
        yield f"  kube-scheduler only: {_names(verdict.selected - ours)}"
        yield f"  Tutti only:          {_names(ours - verdict.selected)}"
        yield f"  it fails at:         {_names(verdict.failed)}"
    for name, count in sorted(tally.unmodelled.items()):
        yield f"not modelled: {name}: {count}"
    yield (
        f"{tally.cases} expressions: {tally.agreed} select the same devices"
        f" ({tally.telling} of them some but not all, {tally.failing} fail at a device),"
        f" {tally.unmodelled.total()} not modelled, {tally.known} known to differ,"
        f" {tally.refused} refused by the API server"
        f" ({tally.admitted.total()} of them by it alone), {len(tally.wrong)} differ"
    )


def _names(nodes: frozenset[str]) -> str:
    return ", ".join(sorted(nodes)) or "-"
