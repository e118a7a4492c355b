"""Members as rules between pods see them: equal in shape, and counted by the same rules.

Two members of one shape are interchangeable only if no rule tells them apart. Where one does, the
shape that planning sees is a ``PodClass``. What a pod would rather have is taken off its shape, so
no strategy sees it. Where no rule is in force and nothing is preferred, shapes stay as they are.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from ...filters.selectors import Group, has_rules, is_counted, spaces
from ...gang import slots
from ...model.cluster import Member, Namespace, PlacedPod, Snapshot
from ...model.inter_pod import Labels, Requirement
from ...model.keys import NodeName
from ...model.shapes import NO_PREFERENCES, Shape

Label = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodClass(Shape):
    """A shape, and by their numbers in a SelectorIndex the groups that its members are among."""

    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Work out the hash of both."""
        Shape.__post_init__(self)
        object.__setattr__(self, "_hash", hash((self._hash, self.groups)))

    __hash__ = Shape.__hash__


def groups_of(shape: Shape) -> tuple[int, ...]:
    """The groups that members of this shape are among."""
    return shape.groups if isinstance(shape, PodClass) else ()


class SelectorIndex:
    """The groups of pods that rules count, and which of them a pod is among."""

    def __init__(self, groups: Iterable[Group], namespaces: Iterable[Namespace]) -> None:
        """Number the groups, each named once or more often."""
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
        """Index a group by the labels by which its pods are looked up."""
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
        """The same members, each with the shape of its class: without wishes, and with groups."""
        if not self.number and all(
            member.shape.preferences is NO_PREFERENCES for member in members
        ):
            return members
        return slots.mapped(members, self._classified)

    def _classified(self, member: Member) -> Member:
        groups = self.among(member.key.namespace, member.labels)
        if not groups and member.shape.preferences is NO_PREFERENCES:
            return member
        key = id(member.shape), groups  # equal pods share one Shape, and a plan keeps them all
        if key not in self._shapes:
            self._shapes[key] = _shape_of_class(member.shape, groups)
        return replace(member, shape=self._shapes[key])


def placed_pods(snapshot: Snapshot) -> Sequence[PlacedPod]:
    """The pods that have a node, or for which a standing Reservation holds one."""
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


def placed_pod(member: Member, node: NodeName) -> PlacedPod:
    """The member as others see it once it has this node."""
    space, shape = member.key.namespace, member.shape
    rules = shape.rules.anti_affinity, member.terminating, shape.scored_terms
    return PlacedPod(member.uid, node, space, member.labels, *rules)


def pods_of_no_gang(snapshot: Snapshot) -> Sequence[PlacedPod]:
    """The pods that are there once every member of a gang has ended."""
    if not snapshot.placed_pods:
        return ()
    ending = {member.uid for gang in snapshot.gangs for member in gang.members}
    ending.update(member.uid for member in snapshot.strays)
    return tuple(pod for pod in snapshot.placed_pods if pod.uid not in ending)


def selector_index(
    snapshot: Snapshot, members: Iterable[Member], residents: Iterable[PlacedPod]
) -> SelectorIndex:
    """The groups that the rules of these waiting members, and of residents, are about."""
    asking = shapes_with_rules(members)
    terms = dict.fromkeys(term for pod in residents for term in pod.anti_affinity)
    groups = [group for shape in asking for group in groups_asked(shape)]
    return SelectorIndex([*groups, *((term.peers,) for term in terms)], snapshot.namespaces)


def shapes_with_rules(members: Iterable[Member]) -> Sequence[Shape]:
    """The shapes of these members that ask something of other pods."""
    shapes = {id(member.shape): member.shape for member in members}
    return tuple(dict.fromkeys(shape for shape in shapes.values() if has_rules(shape)))


def groups_asked(shape: Shape) -> Iterator[Group]:
    """The groups that the shape's rules are about; all terms of affinity are about one."""
    yield from groups_near_or_even(shape)
    yield from ((term.peers,) for term in shape.rules.anti_affinity)


def groups_near_or_even(shape: Shape) -> Iterator[Group]:
    """The groups of which more may be needed before a member of the shape finds a node."""
    if shape.rules.affinity:
        yield tuple(term.peers for term in shape.rules.affinity)
    yield from ((spread.peers,) for spread in shape.rules.spread)


def _shape_of_class(shape: Shape, groups: tuple[int, ...]) -> Shape:
    """The shape as planning sees it."""
    if not groups:
        return replace(shape, preferences=NO_PREFERENCES)
    values = {field.name: getattr(shape, field.name) for field in fields(Shape) if field.init}
    return PodClass(**{**values, "preferences": NO_PREFERENCES}, groups=groups)


def _requirements(group: Group) -> Iterator[Requirement]:
    return (requirement for peers in group for requirement in peers.selector or ())


def _listed(group: Group) -> Iterator[Sequence[Label]]:
    """Lists of labels; each pod of the group has a label of each list."""
    for requirement in _requirements(group):
        if requirement.operator == "In":
            yield [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
