"""The pods that have a node, and the namespaces, while a rule between pods is in force.

Placed pods are computed only while a rule is in force, so a cluster without such rules has no cost.
"""

from collections.abc import Callable, Iterable

from ..model.cluster import ForeignPod, Member, Namespace, PlacedPod
from ..model.inter_pod import NO_RULES
from ..model.keys import Uid
from ..model.shapes import Template

KnownPod = Member | ForeignPod


def placed_pod(pod: KnownPod) -> PlacedPod | None:
    """The pod as rules between pods count it; None if it has no node or is over."""
    if isinstance(pod, ForeignPod):
        rules = pod.anti_affinity, pod.terminating, pod.scored_terms
        return PlacedPod(pod.uid, pod.node, pod.namespace, pod.labels, *rules)
    if pod.node is None or pod.is_over:
        return None
    rules = pod.shape.rules.anti_affinity, pod.terminating, pod.shape.scored_terms
    return PlacedPod(pod.uid, pod.node, pod.key.namespace, pod.labels, *rules)


def puts_rules_in_force(pod: KnownPod | None) -> bool:
    """Whether the pod puts a rule between pods in force.

    A pod of another scheduler does so by anti-affinity, which also holds for pods that come later,
    and by preferences about pods. A pod of ours does so by any rule or preference about pods, even
    if it has a node: what-if and repair place it again.
    """
    if isinstance(pod, ForeignPod):
        return bool(pod.anti_affinity or pod.scored_terms)
    if pod is None or pod.is_over:
        return False
    preferences = pod.shape.preferences
    return bool(preferences.pod_affinity or preferences.spread or pod.shape.rules != NO_RULES)


class PlacedPods:
    """The pods that have a node, updated where they changed; none while no rule is in force.

    While no pod of ours has rules, the pods of other schedulers that have rules are enough: no rule
    counts any other placed pod.
    """

    def __init__(self, look: Callable[[Uid], KnownPod | None]) -> None:
        """``look`` gives the current value of a pod."""
        self._look = look
        self._pods_with_rules: set[Uid] = set()  # ours, and PodGroups; their rules count any pod
        self._foreign_pods_with_rules: set[Uid] = set()  # of other schedulers
        self._changed: set[Uid] = set()
        self._known: dict[Uid, PlacedPod] | None = None  # None: no rule is in force
        self._shows_all = False  # False: foreign pods with rules alone
        self._placed_pods: tuple[PlacedPod, ...] = ()
        self._namespaces: tuple[Namespace, ...] | None = None  # None: outdated

    def changed(self, uid: Uid, now: KnownPod | None) -> None:
        """Take in a pod that appeared, changed or disappeared."""
        self._pods_with_rules.discard(uid)
        self._foreign_pods_with_rules.discard(uid)
        if puts_rules_in_force(now):
            (
                self._foreign_pods_with_rules
                if isinstance(now, ForeignPod)
                else self._pods_with_rules
            ).add(uid)
        if self._known is not None:
            self._changed.add(uid)

    def declared(self, uid: Uid, templates: Iterable[Template]) -> None:
        """Take in the templates of a PodGroup's absent members."""
        shapes = [template.shape for template in templates]
        if any(
            shape.rules != NO_RULES or shape.preferences.pod_affinity or shape.preferences.spread
            for shape in shapes
        ):
            self._pods_with_rules.add(uid)
        else:
            self._pods_with_rules.discard(uid)

    def snapshot(self, placed: Callable[[], Iterable[Uid]]) -> tuple[PlacedPod, ...]:
        """The placed pods that may count, by uid; ``placed`` gives the uids of all placed pods."""
        if not self._is_in_force:
            self._known = None
            self._placed_pods = ()
        elif self._known is None or self._shows_all != bool(self._pods_with_rules):
            self._shows_all = bool(self._pods_with_rules)
            self._placed_pods = ()
            self._known = self._take(
                placed() if self._pods_with_rules else self._foreign_pods_with_rules, {}
            )
        elif self._changed:
            self._known = self._take(self._changed, self._known)
        self._changed.clear()
        return self._placed_pods

    def tidy(self) -> None:
        """Forget the last Snapshot and what changed since: the next one looks at all pods again."""
        self._known, self._placed_pods = None, ()
        self._changed.clear()

    @property
    def _is_in_force(self) -> bool:
        return bool(self._pods_with_rules or self._foreign_pods_with_rules)

    def namespace_changed(self) -> None:
        """Take in that a namespace was created, changed or deleted."""
        self._namespaces = None

    def namespaces(
        self, all_namespaces: Iterable[Namespace], *, always: bool = False
    ) -> tuple[Namespace, ...]:
        """All namespaces by name; of two with one name, the last one counts.

        The answer is empty while no rule between pods is in force, unless ``always``.
        """
        if not (self._is_in_force or always):
            return ()
        if self._namespaces is None:
            by_name = {namespace.name: namespace for namespace in all_namespaces}
            self._namespaces = tuple(by_name[name] for name in sorted(by_name))
        return self._namespaces

    def _take(self, uids: Iterable[Uid], pods: dict[Uid, PlacedPod]) -> dict[Uid, PlacedPod]:
        """Compute these pods again; a pod that has not changed is the same object."""
        has_moved = has_grown = False
        for uid in uids:
            now = (
                self._look(uid) if self._shows_all or uid in self._foreign_pods_with_rules else None
            )
            placed_now, old = None if now is None else placed_pod(now), pods.get(uid)
            if placed_now == old:
                continue
            has_moved = True
            if placed_now is None:
                del pods[uid]
            else:
                has_grown |= old is None
                pods[uid] = placed_now
        if has_grown:
            pods = {uid: pods[uid] for uid in sorted(pods)}
        if has_moved:
            self._placed_pods = tuple(pods.values())
        return pods
