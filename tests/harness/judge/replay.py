"""The history as steps: each object before and after each change.

Separate so that the promises are judged over one reading, and need not remember objects.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from .history import FOREIGN, Change, Gap, History, Kind
from .views import Key, Pod, View, foreign, view


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
    """The gangs that groups declared at any time; of a basic policy a group declares none."""
    gangs = set()
    for event in history.events:
        if event.kind is Kind.POD_GROUPS or event.kind in FOREIGN.values():
            metadata, spec = event.body["metadata"], event.body.get("spec") or {}
            is_tuttis = event.kind is Kind.POD_GROUPS
            name = metadata["name"] if is_tuttis else foreign(event.kind, metadata["name"])
            if "basic" not in (spec.get("schedulingPolicy") or {}):
                gangs.add(Key(metadata.get("namespace", ""), name))
    return gangs


def _joined(view: View, groups: Collection[Key]) -> View:
    """A pod that names no PodGroup of Tutti's joins the first other gang that it names, if any.

    It does so from its first revision on: nobody may bind it before. A pod of an application
    joins the PodGroup of its application's name or none.
    """
    if not isinstance(view, Pod) or view.group:
        return view
    names = (
        *(view.of_kubernetes, view.app),
        *(view.of_ray, view.of_jobset, view.of_volcano, view.of_plugins),
    )
    for name in filter(None, names):
        if Key(view.key.namespace, name) in groups:
            return replace(view, group=name)
        if name == view.app:
            break
    return view
