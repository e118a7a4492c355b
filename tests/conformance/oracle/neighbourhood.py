"""What the members of a Snapshot ask of other pods, in words of the oracle's own.

Selectors, namespaces, domains and who is there already are read here again, from what Kubernetes
documents of required affinity, anti-affinity and topology spread; planning has its own code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .case import Balance, Bond, Company, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tutti.model.cluster import Member, Namespace, Node, PlacedPod
    from tutti.model.inter_pod import AffinityTerm, PodSelector, Requirement, TopologySpread

Places = tuple[int, ...]  # of each node; below zero: none


class Crew(NamedTuple):
    """Pods that are among all of these peers, by the places that they are counted in."""

    who: tuple[PodSelector, ...]
    places: Places
    with_leaving: bool  # whether those count that terminate


class Asking(NamedTuple):
    """What one member asks of others, its companies by number."""

    where: frozenset[int]
    shuns: frozenset[int]
    bonds: tuple[Bond, ...]
    balances: tuple[Balance, ...]


class Neighbourhood:
    """Who has a node, and what these members ask of them and of each other."""

    def __init__(
        self,
        nodes: Sequence[Node],
        namespaces: Iterable[Namespace],
        there: Iterable[PlacedPod],
        members: Iterable[Member],
        may_run: Callable[[Member, Node], bool],
    ) -> None:
        """``may_run`` tells what node rules alone say."""
        self._nodes, self._may_run = nodes, may_run
        self._labels = [dict(node.labels) for node in nodes]
        self._spaces = {space.name: dict(space.labels) for space in namespaces}
        rows = {node.name: row for row, node in enumerate(nodes)}
        self._there = [(rows[one.node], one) for one in there if one.node in rows]
        self._crews: list[Crew] = []
        self._asking = {member.uid: self._ask(member) for member in members}

    @property
    def companies(self) -> tuple[Company, ...]:
        """The companies that somebody asks about."""
        return tuple(Company(crew.places, self._counted(crew)) for crew in self._crews)

    def kind(self, member: Member, takes: tuple[int, ...], role: int) -> Kind:
        """One of the members, who takes so much."""
        namespace, labels = member.key.namespace, dict(member.labels)
        joined = (i for i, one in enumerate(self._crews) if self._among(one, namespace, labels))
        asking = self._asking[member.uid]
        return Kind(takes, role=role, count=1, joins=frozenset(joined), **asking._asdict())

    def _ask(self, member: Member) -> Asking:
        nodes, rules = self._nodes, member.shape.rules
        where = {row for row, node in enumerate(nodes) if self._may_run(member, node)}
        where -= set(self._unwelcome(member))
        shuns: set[int] = set()
        for term in rules.anti_affinity:
            number, places = self._company((term.peers,), self._places(term.topology))
            taken = {place for place, n in enumerate(self._counted(self._crews[number])) if n}
            where -= {row for row in where if places[row] in taken}
            shuns.add(number)
        balances = []
        for spread in rules.spread:
            places = self._spread_over(member, spread)
            where -= {row for row in where if places[row] < 0}
            if spread.peers.selector:  # an empty one counts nobody
                crew, _ = self._company((spread.peers,), places, with_leaving=False)
                is_short = max(places, default=-1) + 1 < spread.min_domains
                balances.append(Balance(crew, spread.max_skew, is_short))
        bonds = (self._bond(member, rules.affinity),) if rules.affinity else ()
        return Asking(frozenset(where), frozenset(shuns), bonds, tuple(balances))

    def _bond(self, member: Member, terms: Sequence[AffinityTerm]) -> Bond:
        """All terms are about the pods that match every one of them."""
        who = tuple(term.peers for term in terms)
        numbers = [self._company(who, self._places(term.topology))[0] for term in terms]
        itself = self._among(self._crews[numbers[0]], member.key.namespace, dict(member.labels))
        return Bond(tuple(numbers), or_alone=itself)

    def _unwelcome(self, member: Member) -> Iterator[int]:
        """The nodes that somebody's anti-affinity keeps the member off."""
        for row, one in self._there:
            for term in one.anti_affinity:
                crew = Crew((term.peers,), self._places(term.topology), with_leaving=True)
                if crew.places[row] >= 0 and self._among(
                    crew, member.key.namespace, dict(member.labels)
                ):
                    yield from (
                        i for i, place in enumerate(crew.places) if place == crew.places[row]
                    )

    def _company(
        self, who: tuple[PodSelector, ...], places: Places, *, with_leaving: bool = True
    ) -> tuple[int, Places]:
        crew = Crew(who, places, with_leaving)
        if crew not in self._crews:
            self._crews.append(crew)
        return self._crews.index(crew), places

    def _places(self, topology: str, counts: Callable[[int], bool] = lambda _: True) -> Places:
        """The nodes by the value of their label, of those that count."""
        values = [
            labels.get(topology) if counts(row) else None for row, labels in enumerate(self._labels)
        ]
        known = sorted({value for value in values if value is not None})
        return tuple(-1 if value is None else known.index(value) for value in values)

    def _spread_over(self, member: Member, spread: TopologySpread) -> Places:
        """Of the nodes that have all keys that the member spreads over, and that it may count."""
        keys = {each.topology for each in member.shape.rules.spread}

        def counts(row: int) -> bool:
            labels = self._labels[row]
            selector = member.shape.node_selector if spread.honors_node_affinity else ()
            tolerated = {toleration.key for toleration in member.shape.tolerations}
            taints = self._nodes[row].taints if spread.honors_node_taints else ()
            return (
                keys <= labels.keys()
                and all(labels.get(key) == value for key, value in selector)
                and all(taint.key in tolerated for taint in taints)
            )

        return self._places(spread.topology, counts)

    def _counted(self, crew: Crew) -> tuple[int, ...]:
        """How many of a crew are in each place by now."""
        found = [0] * (max(crew.places, default=-1) + 1)
        for row, one in self._there:
            is_leaving = one.terminating and not crew.with_leaving
            if crew.places[row] < 0 or is_leaving:
                continue
            found[crew.places[row]] += self._among(crew, one.namespace, dict(one.labels))
        return tuple(found)

    def _among(self, crew: Crew, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod is of a crew."""
        return all(
            peers.selector is not None
            and all(_holds(one, labels) for one in peers.selector)
            and (
                namespace in peers.namespaces
                or (
                    peers.namespace_labels is not None
                    and all(
                        _holds(label, self._spaces.get(namespace, {}))
                        for label in peers.namespace_labels
                    )
                )
            )
            for peers in crew.who
        )


def _holds(wanted: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(wanted.key)
    match wanted.operator:
        case "In":
            return value in wanted.values
        case "NotIn":
            return value not in wanted.values
        case "Exists":
            return value is not None
        case _:
            return value is None
