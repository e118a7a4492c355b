"""The history as steps: each object before and after each change.

Separate so that the promises are judged over one reading, and need not remember objects.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from .history import Change, Gap, History, Kind
from .views import Key, Pod, View, view


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
    groups = _groups(history)
    steps: list[Step] = []
    for event in history.events:
        identity = (event.kind, event.body["metadata"]["uid"])
        before = now.pop(identity, None)
        after = None
        if event.change is not Change.DELETED:
            after = now[identity] = _joined(view(event.kind, event.body, event.revision), groups)
        elif before is None:
            before = _joined(view(event.kind, event.body, event.revision), groups)
        gap = history.gap_at(event.revision) if history.gaps else None
        initial = event.change is Change.INITIAL
        steps.append(Step(event.revision, before, after, initial, gap))
    return tuple(steps)


def _groups(history: History) -> Collection[Key]:
    """The PodGroups that there were at any time."""
    found = (event.body["metadata"] for event in history.events if event.kind is Kind.POD_GROUPS)
    return {Key(metadata.get("namespace", ""), metadata["name"]) for metadata in found}


def _joined(seen: View, groups: Collection[Key]) -> View:
    """A pod of a Spark application joins the PodGroup of its application's name, if there is one.

    It does so from its first revision on: nobody may bind it before.
    """
    if isinstance(seen, Pod) and seen.app and Key(seen.key.namespace, seen.app) in groups:
        return replace(seen, group=seen.app)
    return seen
