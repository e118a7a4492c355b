"""How ``tutti plan`` shows a plan, or what is different between two: lines, data or the picture.

Gangs of one namespace may be shown alone; the plan is of the whole cluster all the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...model.terminal import visible
from ..inputs import say
from . import blocks, json_output, plan_diff, table, watch
from .offline import Planned
from .plan_diff import GangChange, GangRow

PICTURE_WIDTH = 120  # columns; a wider one is not easier to read


def show(output: str, made: Planned, before: Planned | None = None, *, namespace: str = "") -> None:
    """Print a plan, or beside it the one ``before`` and the difference."""
    shown = _Shown(made, before, namespace)
    if output in ("json", "yaml"):
        watch.print_data(shown.record(), output)
        return
    if output == "picture":
        out = table.console()
        out.width = min(out.width, PICTURE_WIDTH)
        table.show(out, blocks.drawn(made.snapshot, made.plan, namespace))
    elif before is None:
        _print_gangs(shown)
    _print_summary(shown)


def data(made: Planned, before: Planned | None = None) -> Mapping[str, object]:
    """What ``show`` prints of all namespaces as JSON: docs/plugin.md has the fields."""
    return _Shown(made, before, "").record()


@dataclass(frozen=True, slots=True)
class _Shown:
    """A plan and perhaps the one before, and whose gangs are shown; empty is all namespaces'."""

    made: Planned
    before: Planned | None
    namespace: str

    def changes(self, before: Planned) -> Sequence[GangChange]:
        """Who fares otherwise."""
        found = plan_diff.changes(before.lines, self.made.lines)
        return [change for change in found if self.is_shown(change.gang.namespace)]

    def is_shown(self, namespace: str) -> bool:
        """Whether gangs of a namespace are."""
        return self.namespace in ("", namespace)

    def lines(self, of: Planned) -> Sequence[GangRow]:
        """What a plan says to the gangs that are shown."""
        return [line for line in of.lines if self.is_shown(line.gang.key.namespace)]

    def record(self) -> Mapping[str, object]:
        """The same for programs."""
        if self.before is None:
            return self._record(self.made)
        return {
            "before": self._record(self.before),
            "after": self._record(self.made),
            "difference": json_output.of_changes(self.changes(self.before)),
        }

    def _record(self, of: Planned) -> Mapping[str, object]:
        return json_output.of_plan(of.snapshot, of.setup, of.plan, self.lines(of))


def _print_gangs(shown: _Shown) -> None:
    lines = shown.lines(shown.made)
    if shown.namespace and not lines:
        say(f"no gang is in namespace {shown.namespace}")
    else:
        table.show(table.console(), table.of_lines(lines))


def _print_summary(shown: _Shown) -> None:
    """What the plan of all comes to; of two, the difference too."""
    out, made, before = table.console(), shown.made, shown.before
    everywhere = "in all namespaces, " * bool(shown.namespace)
    said = f"{everywhere}{table.summary(made.lines, made.plan)}"
    if before is None:
        table.show(out, said)
    else:
        changes = shown.changes(before)
        if changes:
            table.show(out, table.of_changes(changes))
        table.show(out, f"before: {everywhere}{table.summary(before.lines, before.plan)}")
        table.show(out, f"after:  {said}")
        here = f"in namespace {visible(shown.namespace)}, " * bool(shown.namespace)
        table.show(out, f"{here}{table.difference(changes)}")
    gangs = {gang.key for gang in made.snapshot.gangs}
    named = [pod for pod in made.snapshot.strays if pod.gang not in gangs]
    strays = [pod for pod in named if shown.is_shown(pod.key.namespace)]
    if strays:
        table.show(out, f"{len(strays)} pods name a PodGroup that does not exist")
