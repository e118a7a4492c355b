"""Who has a node and what namespaces there are, for as long as some rule between pods is in force.

Separate from the cluster state so that a cluster without such rules pays nothing for it: whether
one is in force is known at any time, and only then are the pods that have a node looked at one by
one.
"""

from collections.abc import Callable, Iterable

from ..model.cluster import ForeignPod, Member, Namespace, PlacedPod
from ..model.inter_pod import NO_RULES
from ..model.keys import Uid
from ..model.shapes import Template

Seen = Member | ForeignPod


def resident(pod: Seen) -> PlacedPod | None:
    """A pod as rules between pods see it; None while it has no node, or once it is over."""
    if isinstance(pod, ForeignPod):
        rules = pod.anti_affinity, pod.terminating, pod.scored_terms
        return PlacedPod(pod.uid, pod.node, pod.namespace, pod.labels, *rules)
    if pod.node is None or pod.is_over:
        return None
    rules = pod.shape.rules.anti_affinity, pod.terminating, pod.shape.scored_terms
    return PlacedPod(pod.uid, pod.node, pod.key.namespace, pod.labels, *rules)


def is_asking(pod: Seen | None) -> bool:
    """Whether it puts a rule between pods in force.

    Others' pods do by anti-affinity, which binds whoever comes later, and by what draws others to
    them or keeps them off; ours by any rule or wish about pods, with a node too: what-if and repair
    ask what would be if they had to be placed again.
    """
    if isinstance(pod, ForeignPod):
        return bool(pod.anti_affinity or pod.scored_terms)
    if pod is None or pod.is_over:
        return False
    wishes = pod.shape.preferences
    return bool(wishes.pod_affinity or wishes.spread or pod.shape.rules != NO_RULES)


class PlacedPods:
    """The pods that have a node, remade where they changed; nobody while no rule is in force.

    While none of ours asks anything, the pods of others that do say all there is to know: whom
    else they are beside, nobody counts.
    """

    def __init__(self, look: Callable[[Uid], Seen | None]) -> None:
        """``look`` tells what a pod is now."""
        self._look = look
        self._asking: set[Uid] = set()  # our pods and PodGroups; for them anybody may be counted
        self._guards: set[Uid] = set()  # others' pods that ask something of who comes beside them
        self._changed: set[Uid] = set()
        self._known: dict[Uid, PlacedPod] | None = None  # None: nobody is looked at
        self._has_everyone = False  # or guards alone
        self._residents: tuple[PlacedPod, ...] = ()
        self._namespaces: tuple[Namespace, ...] | None = None  # None: to be made

    def changed(self, uid: Uid, now: Seen | None) -> None:
        """A pod came, went or is another now."""
        self._asking.discard(uid)
        self._guards.discard(uid)
        if is_asking(now):
            (self._guards if isinstance(now, ForeignPod) else self._asking).add(uid)
        if self._known is not None:
            self._changed.add(uid)

    def declared(self, uid: Uid, templates: Iterable[Template]) -> None:
        """A PodGroup came or is another now, and says what absent members will ask for."""
        shapes = [template.shape for template in templates]
        if any(
            shape.rules != NO_RULES or shape.preferences.pod_affinity or shape.preferences.spread
            for shape in shapes
        ):
            self._asking.add(uid)
        else:
            self._asking.discard(uid)

    def residents(self, placed: Callable[[], Iterable[Uid]]) -> tuple[PlacedPod, ...]:
        """Whoever has a node and may count, by uid; ``placed`` tells who has, if all may."""
        if not self._is_in_force:
            self._known = None
            self._residents = ()
        elif self._known is None or self._has_everyone != bool(self._asking):
            self._has_everyone = bool(self._asking)
            self._residents = ()
            self._known = self._take(placed() if self._asking else self._guards, {})
        elif self._changed:
            self._known = self._take(self._changed, self._known)
        self._changed.clear()
        return self._residents

    @property
    def _is_in_force(self) -> bool:
        return bool(self._asking or self._guards)

    def namespace_changed(self) -> None:
        """A namespace came, went or has other labels."""
        self._namespaces = None

    def namespaces(
        self, all_namespaces: Iterable[Namespace], *, always: bool = False
    ) -> tuple[Namespace, ...]:
        """All namespaces by name; of two with one name, the one that was shown last is it.

        There are none while no rule between pods is in force, unless they are ``always`` wanted.
        """
        if not (self._is_in_force or always):
            return ()
        if self._namespaces is None:
            by_name = {namespace.name: namespace for namespace in all_namespaces}
            self._namespaces = tuple(by_name[name] for name in sorted(by_name))
        return self._namespaces

    def _take(self, uids: Iterable[Uid], residents: dict[Uid, PlacedPod]) -> dict[Uid, PlacedPod]:
        """Look at some pods again; what has not changed is the same object."""
        has_moved = has_grown = False
        for uid in uids:
            now = self._look(uid) if self._has_everyone or uid in self._guards else None
            resident_now, old = None if now is None else resident(now), residents.get(uid)
            if resident_now == old:
                continue
            has_moved = True
            if resident_now is None:
                del residents[uid]
            else:
                has_grown |= old is None
                residents[uid] = resident_now
        if has_grown:
            residents = {uid: residents[uid] for uid in sorted(residents)}
        if has_moved:
            self._residents = tuple(residents.values())
        return residents
