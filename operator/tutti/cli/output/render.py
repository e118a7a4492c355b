"""Shows a plan, or the difference between two plans, for ``tutti plan``: lines, data or a picture.

The output may be limited to the gangs of one namespace; the plan is always of the whole cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.terminal import visible
from ..inputs import say
from . import blocks, json_output, plan_diff, table, watch
from .offline import Planned
from .plan_diff import GangChange, GangRow

PICTURE_WIDTH = 120  # columns; a wider picture is not easier to read


def show(
    output: str, after: Planned, before: Planned | None = None, *, namespace: str = ""
) -> None:
    """Print a plan; with ``before``, print what is different between the two."""
    comparison = _Comparison(after, before, namespace)
    if output in ("json", "yaml"):
        watch.print_data(comparison.record(), output)
        return
    if output == "picture":
        out = table.console()
        out.width = min(out.width, PICTURE_WIDTH)
        table.show(out, blocks.drawn(after.snapshot, after.plan, namespace))
    elif before is None:
        _print_gangs(comparison)
    _print_summary(comparison)


def data(after: Planned, before: Planned | None = None) -> Mapping[str, object]:
    """What ``show`` prints for all namespaces, as data: docs/plugin.md has the fields."""
    return _Comparison(after, before, "").record()


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A plan, perhaps an earlier plan, and the namespace whose gangs are shown (empty: all)."""

    after: Planned
    before: Planned | None
    namespace: str

    def changes(self, before: Planned) -> Sequence[GangChange]:
        """The gangs with another result than in ``before``."""
        all_changes = plan_diff.changes(before.lines, self.after.lines)
        return [change for change in all_changes if self.is_shown(change.gang.namespace)]

    def is_shown(self, namespace: str) -> bool:
        """Whether gangs of the namespace are shown."""
        return self.namespace in ("", namespace)

    def lines(self, of: Planned) -> Sequence[GangRow]:
        """The rows of a plan for the gangs that are shown."""
        return [line for line in of.lines if self.is_shown(line.gang.key.namespace)]

    def record(self) -> Mapping[str, object]:
        """The comparison as data for programs."""
        if self.before is None:
            return self._record(self.after)
        return {
            "before": self._record(self.before),
            "after": self._record(self.after),
            "difference": json_output.of_changes(self.changes(self.before)),
        }

    def _record(self, of: Planned) -> Mapping[str, object]:
        return json_output.of_plan(of.snapshot, of.setup, of.plan, self.lines(of))


def _print_gangs(comparison: _Comparison) -> None:
    lines = comparison.lines(comparison.after)
    if comparison.namespace and not lines:
        say(f"no gang is in namespace {comparison.namespace}")
    else:
        table.show(table.console(), table.of_lines(lines))


def _print_summary(comparison: _Comparison) -> None:
    """Print a summary of the whole plan; with two plans, also the difference."""
    out, after, before = table.console(), comparison.after, comparison.before
    everywhere = "in all namespaces, " * bool(comparison.namespace)
    summary = f"{everywhere}{table.summary(after.lines, after.plan)}"
    if before is None:
        table.show(out, summary)
    else:
        changes = comparison.changes(before)
        if changes:
            table.show(out, table.of_changes(changes))
        table.show(out, f"before: {everywhere}{table.summary(before.lines, before.plan)}")
        table.show(out, f"after:  {summary}")
        here = f"in namespace {visible(comparison.namespace)}, " * bool(comparison.namespace)
        table.show(out, f"{here}{table.difference(changes)}")
    for claim in after.plan.claims:
        if comparison.is_shown(claim.gang.namespace):
            table.show(out, table.claim(claim))
    gangs = {gang.key for gang in after.snapshot.gangs}
    groupless = [pod for pod in after.snapshot.strays if pod.gang not in gangs]
    strays = [pod for pod in groupless if comparison.is_shown(pod.key.namespace)]
    if strays:
        table.show(out, f"{len(strays)} pods name a PodGroup that does not exist")
