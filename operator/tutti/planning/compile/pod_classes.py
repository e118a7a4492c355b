"""Members as rules between pods see them: equal in shape, and counted by the same rules.

Two members of one shape are interchangeable only if every rule that counts one counts the other. If
a rule counts only one of them, planning sees a ``PodClass`` instead of the shape. Preferences are
removed from the shapes of planning, so no strategy sees them. A shape without rules and preferences
stays as it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace

from ...filters.selectors import Group, has_rules, is_counted, spaces
from ...gang import slots
from ...model.cluster import Member, Namespace, PlacedPod, Snapshot
from ...model.inter_pod import Labels, Requirement
from ...model.keys import NodeName, Uid
from ...model.shapes import NO_PREFERENCES, Shape

Label = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodClass(Shape):
    """A shape with the groups of its members, by their numbers in a SelectorIndex."""

    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Compute the hash of the shape and its groups."""
        Shape.__post_init__(self)
        object.__setattr__(self, "_hash", hash((self._hash, self.groups)))

    __hash__ = Shape.__hash__


def groups_of(shape: Shape) -> tuple[int, ...]:
    """The groups that members of this shape belong to."""
    return shape.groups if isinstance(shape, PodClass) else ()


class SelectorIndex:
    """The groups of pods that rules count, and the groups that a pod belongs to."""

    def __init__(self, groups: Iterable[Group], namespaces: Iterable[Namespace]) -> None:
        """Number the groups; duplicates are allowed."""
        self.number: Mapping[Group, int] = {
            group: i for i, group in enumerate(dict.fromkeys(groups))
        }
        self._spaces = spaces(namespaces) if self.number else {}
        self._keys = {
            requirement.key for group in self.number for requirement in _requirements(group)
        }
        self._by_label: dict[Label, list[tuple[int, Group]]] = {}
        self._others: list[tuple[int, Group]] = []
        for group, number in self.number.items():
            self._file(number, group)
        self._known: dict[tuple[str, Labels], tuple[int, ...]] = {}
        self._shapes: dict[tuple[int, tuple[int, ...]], Shape] = {}

    def _file(self, number: int, group: Group) -> None:
        """Index a group by labels of its pods, if its pods must have one of a list of labels."""
        labels = next(_listed(group), None)
        if labels is None:
            self._others.append((number, group))
        for label in labels or ():
            self._by_label.setdefault(label, []).append((number, group))

    def among(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        """The groups of a pod of this namespace with these labels."""
        if not self.number:
            return ()
        known_labels = tuple(label for label in labels if label[0] in self._keys)
        key = namespace, known_labels
        if key not in self._known:
            self._known[key] = self._sought(namespace, known_labels)
        return self._known[key]

    def _sought(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        by_key = dict(labels)
        likely = [entry for label in labels for entry in self._by_label.get(label, ())]
        return tuple(
            sorted(
                number
                for number, group in (*likely, *self._others)
                if all(is_counted(peers, namespace, by_key, self._spaces) for peers in group)
            )
        )

    def classify(self, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """The same members, each with the shape of its class: with groups, without preferences."""
        if not self.number and all(
            member.shape.preferences is NO_PREFERENCES for member in members
        ):
            return members
        return slots.mapped(members, self._classified)

    def _classified(self, member: Member) -> Member:
        groups = self.among(member.key.namespace, member.labels)
        if not groups and member.shape.preferences is NO_PREFERENCES:
            return member
        key = id(member.shape), groups  # equal pods share one Shape, which the plan keeps alive
        if key not in self._shapes:
            self._shapes[key] = _shape_of_class(member.shape, groups)
        return replace(member, shape=self._shapes[key])


def placed_pods(snapshot: Snapshot) -> Sequence[PlacedPod]:
    """The pods that have a node, and the pods for which a standing Reservation holds one."""
    if not snapshot.reservations:
        return snapshot.placed_pods
    gangs = [member for gang in snapshot.gangs for member in gang.members]
    members = {member.uid: member for member in (*gangs, *snapshot.strays)}
    reserved = (
        placed_pod(member, entry.node)
        for reservation in snapshot.reservations
        for entry in reservation.entries
        if (member := members.get(entry.uid)) is not None and member.may_get_a_node
    )
    absent = (placed_pod(member, node) for member, node in slots.placeholders_of_snapshot(snapshot))
    return (*snapshot.placed_pods, *reserved, *absent)


def coming(snapshot: Snapshot) -> AbstractSet[Uid]:
    """The pods that get the node that a standing claim has for them once its victims have gone."""
    claims = (claim for claim in snapshot.reservations if claim.victims is not None)
    pods = {entry.uid for claim in claims for entry in claim.entries}
    return pods - {pod.uid for pod in snapshot.placed_pods} if pods else pods


def placed_pod(member: Member, node: NodeName) -> PlacedPod:
    """The member as a placed pod on this node, as other pods' rules see it."""
    space, shape = member.key.namespace, member.shape
    rules = shape.rules.anti_affinity, member.terminating, shape.scored_terms
    return PlacedPod(member.uid, node, space, member.labels, *rules)


def pods_of_no_gang(snapshot: Snapshot) -> Sequence[PlacedPod]:
    """The placed pods that remain once all members of gangs have ended."""
    if not snapshot.placed_pods:
        return ()
    ending = {member.uid for gang in snapshot.gangs for member in gang.members}
    ending.update(member.uid for member in snapshot.strays)
    return tuple(pod for pod in snapshot.placed_pods if pod.uid not in ending)


def selector_index(
    snapshot: Snapshot, members: Iterable[Member], residents: Iterable[PlacedPod]
) -> SelectorIndex:
    """The groups that the rules of these waiting members, and of residents, select."""
    asking = shapes_with_rules(members)
    terms = dict.fromkeys(term for pod in residents for term in pod.anti_affinity)
    groups = [group for shape in asking for group in groups_asked(shape)]
    return SelectorIndex([*groups, *((term.peers,) for term in terms)], snapshot.namespaces)


def shapes_with_rules(members: Iterable[Member]) -> Sequence[Shape]:
    """The shapes of these members that have rules about other pods."""
    shapes = {id(member.shape): member.shape for member in members}
    return tuple(dict.fromkeys(shape for shape in shapes.values() if has_rules(shape)))


def groups_asked(shape: Shape) -> Iterator[Group]:
    """The groups that the shape's rules select; all affinity terms together select one group."""
    yield from groups_near_or_even(shape)
    yield from ((term.peers,) for term in shape.rules.anti_affinity)


def groups_near_or_even(shape: Shape) -> Iterator[Group]:
    """The groups that may need more pods before a member of the shape finds a node."""
    if shape.rules.affinity:
        yield tuple(term.peers for term in shape.rules.affinity)
    yield from ((spread.peers,) for spread in shape.rules.spread)


def _shape_of_class(shape: Shape, groups: tuple[int, ...]) -> Shape:
    """The shape of a class of members."""
    if not groups:
        return replace(shape, preferences=NO_PREFERENCES)
    values = {field.name: getattr(shape, field.name) for field in fields(Shape) if field.init}
    return PodClass(**{**values, "preferences": NO_PREFERENCES}, groups=groups)


def _requirements(group: Group) -> Iterator[Requirement]:
    return (requirement for peers in group for requirement in peers.selector or ())


def _listed(group: Group) -> Iterator[Sequence[Label]]:
    """Lists of labels; each pod of the group has at least one label of each list."""
    for requirement in _requirements(group):
        if requirement.operator == "In":
            yield [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
