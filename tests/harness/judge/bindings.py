"""Which pod Tutti bound in a step, and whether its gang begins with it."""

from dataclasses import dataclass, field

from .replay import Step
from .standpoint import Standpoint
from .views import Key, Pod


def bound_in(step: Step, standpoint: Standpoint) -> Pod | None:
    """Give the pod if Tutti bound it in this step; one created with a node was not bound."""
    pod = step.after
    if step.initial or not isinstance(pod, Pod) or not pod.node:
        return None
    before = step.before
    was_bound_here = not before.node if isinstance(before, Pod) else step.gap is not None
    return pod if was_bound_here and standpoint.bound_by_us(pod) else None


@dataclass(slots=True)
class Begun:
    """The members that count as bound, by gang."""

    gangs: dict[Key, set[str]] = field(default_factory=dict)

    def take(self, step: Step) -> None:
        """Apply one step."""
        before, now = step.before, step.after
        if isinstance(before, Pod) and before.gang is not None:
            self.gangs.get(before.gang, set()).discard(before.uid)
        if isinstance(now, Pod) and now.gang is not None and now.counts_as_bound:
            self.gangs.setdefault(now.gang, set()).add(now.uid)

    def is_first(self, pod: Pod) -> bool:
        """Whether no other member of the gang of a pod that is bound counts as bound."""
        return pod.gang is not None and self.gangs.get(pod.gang, set()) <= {pod.uid}
