"""Outcomes as a table for people: fault, runs, violations, longest recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .run import Outcome


def table(outcomes: Sequence[Outcome], title: str) -> Table:
    """One line for each fault, in the order of their first runs; the last sums up."""
    made = Table("fault", title=title)
    for column in ("runs", "met no such call", "violations", "longest recovery s"):
        made.add_column(column, justify="right")
    faults = dict.fromkeys(outcome.trial.fault for outcome in outcomes)
    for fault in faults:
        made.add_row(
            fault, *_figures([outcome for outcome in outcomes if outcome.trial.fault == fault])
        )
    made.add_section()
    made.add_row("all", *_figures(outcomes))
    return made


def _figures(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Runs that a fault struck, those without one, violations, the longest recovery."""
    struck = [outcome for outcome in outcomes if outcome.happened]
    recoveries = [one.recovery for one in struck if one.recovery is not None]
    return (
        str(len(struck)),
        str(len(outcomes) - len(struck)),
        str(sum(len(outcome.violations) for outcome in outcomes)),
        f"{max(recoveries):.1f}" if recoveries else "",
    )


def account(outcome: Outcome) -> str:
    """All about a run that went wrong."""
    lines = "\n".join(f"  {violation}" for violation in outcome.violations)
    return f"{outcome.trial}:\n{lines}\n{outcome.log}"
