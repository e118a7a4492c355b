"""The history as steps: each object before and after each change.

Separate so that the promises are judged over one reading, and need not remember objects.
"""

from dataclasses import dataclass

from .history import Change, Gap, History, Kind
from .views import View, view


@dataclass(frozen=True, slots=True)
class Step:
    """One change; ``gap`` is where changes around it may have been missed."""

    revision: int
    before: View | None
    after: View | None
    initial: bool
    gap: Gap | None


def replay(history: History) -> tuple[Step, ...]:
    """Fold the events into steps; objects are told apart by uid, so a recreated one is new."""
    now: dict[tuple[Kind, str], View] = {}
    steps: list[Step] = []
    for event in history.events:
        identity = (event.kind, event.body["metadata"]["uid"])
        before = now.pop(identity, None)
        after = None
        if event.change is not Change.DELETED:
            after = now[identity] = view(event.kind, event.body, event.revision)
        elif before is None:
            before = view(event.kind, event.body, event.revision)
        gap = history.gap_at(event.revision) if history.gaps else None
        initial = event.change is Change.INITIAL
        steps.append(Step(event.revision, before, after, initial, gap))
    return tuple(steps)
