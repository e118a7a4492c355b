"""What members ask of one another, in numbers: from names and selectors to a Problem's rules.

What cannot change while a plan is made, because it depends on who is there already, becomes part
of ``allowed``; the rest are rules between the members that wait. Sources: ``filtering.go`` of
InterPodAffinity and of PodTopologySpread, kube-scheduler 1.37.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...filters.selectors import has_rules
from ...filters.topology import Domains, Mask, TopologyDomains, in_flagged_domain
from ...model.cluster import Member, PlacedPod
from ...model.inter_pod import AffinityTerm, TopologySpread
from ...model.keys import NodeName
from ...model.shapes import Shape
from ...strategies.problem import Affinity, AntiAffinity, DomainCount, EvenSpread, Placed, Rules
from .answers import PlacedCount
from .grids import Grid
from .pod_classes import SelectorIndex, groups_of

Rule = AntiAffinity | Affinity | EvenSpread


@dataclass(frozen=True, slots=True)
class CountedPod:
    """One who is there already: its groups, its anti-affinity, and the row of its node."""

    node: int
    groups: tuple[int, ...]
    apart: tuple[AffinityTerm, ...] = ()
    terminating: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RuleOutcome:
    """One thing that a shape asks of others, and how it stands before anybody is placed."""

    what: str  # in words
    alone: Mask  # where it holds for a member that comes alone
    stays: bool  # whether it fails elsewhere whoever else of those that wait is placed
    between: Rule | None = None  # what is left to see to while they are placed


class InterPodCompiler:
    """The groups of a Roll on the nodes of a Grid, with those who are there by now."""

    def __init__(
        self,
        base: Grid,
        roll: SelectorIndex,
        there: Sequence[CountedPod],
        promised: Collection[Placed] = (),
        terrain: TopologyDomains | None = None,
    ) -> None:
        """Count these heads; the Grid's ``allowed`` tells of node rules alone.

        What those ask of others who are ``promised`` a node still has to hold.
        """
        self._base, self._roll, self._there = base, roll, tuple(there)
        self._terrain = terrain or TopologyDomains(base.nodes)
        self._promised = tuple(dict.fromkeys(promised))
        self._rows = [
            row for row, shape in enumerate(base.shapes) if groups_of(shape) or has_rules(shape)
        ]
        self._shapes = tuple(base.shapes)
        self._counted: dict[int, Mask] = {}
        for row in self._rows:
            for group in groups_of(self._shapes[row]):
                flags = self._counted.setdefault(group, np.zeros(len(self._shapes), np.bool_))
                flags[row] = True
        self._seat()

    @classmethod
    def of(
        cls,
        base: Grid,
        roll: SelectorIndex,
        residents: Iterable[PlacedPod],
        promised: Iterable[tuple[Member, NodeName]] = (),
    ) -> "InterPodCompiler":
        """The crowds with these pods there; those on nodes that do not exist count nowhere.

        Members that are ``promised`` a node are among them, and what they ask has to last.
        """
        if not roll.number:
            return cls(base, roll, ())
        rows = {node.name: row for row, node in enumerate(base.nodes)}
        heads = (
            CountedPod(
                rows[one.node],
                roll.among(one.namespace, one.labels),
                one.anti_affinity,
                one.terminating,
            )
            for one in residents
            if one.node in rows
        )
        spots = [Placed(base.shapes[one.shape], rows[on]) for one, on in promised]
        return cls(base, roll, [head for head in heads if head.groups or head.apart], spots)

    def _seat(self) -> None:
        """Sort those who are there by what asks for them."""
        nodes: dict[tuple[int, bool], list[int]] = {}
        barred: dict[tuple[int, str], list[int]] = {}
        for head in self._there if self._rows else ():
            for group in head.groups:
                nodes.setdefault((group, head.terminating), []).append(head.node)
            for term in head.apart:
                key = self._roll.number[(term.peers,)], term.topology
                barred.setdefault(key, []).append(head.node)
        self._nodes = {key: np.array(found, np.intp) for key, found in nodes.items()}
        self._barred: dict[int, dict[str, NDArray[np.intp]]] = {}
        for (group, topology), found in barred.items():
            self._barred.setdefault(group, {})[topology] = np.array(found, np.intp)

    def joined(self, seated: Iterable[PlacedCount]) -> "InterPodCompiler":
        """The same crowds once these have their nodes; the very same if no rule asks for them."""
        if not self._rows:
            return self
        there, promised = list(self._there), list(self._promised)
        for at in seated:
            rules, groups = at.shape.rules, groups_of(at.shape)
            if groups or rules.anti_affinity:
                there += [CountedPod(at.node, groups, rules.anti_affinity)] * at.members
            if rules.affinity or rules.spread:
                promised.append(Placed(self._base.shapes[at.shape], at.node))
        if len(there) == len(self._there) and len(promised) == len(self._promised):
            return self
        return InterPodCompiler(self._base, self._roll, there, promised, self._terrain)

    def grid(self) -> Grid:
        """The Grid with all that these rules forbid now, and the rules that remain."""
        if not self._rows:
            return self._base
        allowed, crowds = self._base.allowed.copy(), _Gathered(self)
        aparts: list[AntiAffinity] = []
        nears: list[Affinity] = []
        evens: list[EvenSpread] = []
        for row in self._rows:
            for asked in self._asked(row, crowds):
                if asked.stays:
                    allowed[row] &= asked.alone
                match asked.between:
                    case AntiAffinity() as rule:
                        aparts.append(rule)
                    case Affinity() as rule:
                        nears.append(rule)
                    case EvenSpread() as rule:
                        evens.append(rule)
        own = tuple(crowds.made), tuple(aparts), tuple(nears), tuple(evens)
        rules = Rules(*own, self._promised)
        return replace(self._base, allowed=allowed, rules=rules)

    def nodes(self, shape: Shape) -> Mask:
        """The nodes that node rules alone let it run on."""
        allowed: Mask = self._base.allowed[self._base.shapes[shape]]
        return allowed

    def outcomes(self, shape: Shape) -> Sequence[RuleOutcome]:
        """All that a shape asks of others, or others of it, one by one."""
        if not self._rows:
            return ()
        row = self._base.shapes[shape]
        if row not in self._rows:
            return ()
        return (*self._asked(row, _Gathered(self)), *self._asked_by_promised(row))

    def _asked(self, row: int, crowds: "_Gathered") -> Iterator[RuleOutcome]:
        rules = self._shapes[row].rules
        for term in rules.anti_affinity:
            yield self._apart(row, term, crowds)
        if rules.affinity:
            yield self._near(row, rules.affinity, crowds)
        for spread in rules.spread:
            # A constraint on everyone counts nobody but the pod itself, so it never fails.
            if spread.peers.selector:
                yield self._spread(row, spread, crowds)
        yield from self._shunned(row)

    def _shunned(self, row: int) -> Iterator[RuleOutcome]:
        """The anti-affinity of those who are there, which binds whoever comes later."""
        for group in groups_of(self._shapes[row]):
            for topology, nodes in self._barred.get(group, {}).items():
                domains = self._terrain.domains(topology)
                taken = _count(nodes, domains) > 0
                what = f"other pods' anti-affinity on {topology}"
                yield RuleOutcome(what, ~in_flagged_domain(taken, domains), stays=True)

    def _asked_by_promised(self, row: int) -> Iterator[RuleOutcome]:
        """What members that are promised a node ask of pods that come later, of other shapes."""
        groups = groups_of(self._shapes[row])
        nodes: dict[int, list[int]] = {}
        for placed in self._promised:
            if placed.shape != row:
                nodes.setdefault(placed.shape, []).append(placed.node)
        for shape, own in nodes.items():
            rules = self._shapes[shape].rules
            near = tuple(term.peers for term in rules.affinity)
            if near and self._roll.number[near] in groups:
                yield from self._near_promised(self._roll.number[near], rules.affinity, own)
            for spread in rules.spread:
                if spread.peers.selector and self._roll.number[(spread.peers,)] in groups:
                    yield self._even_with_promised(shape, spread, own)

    def _near_promised(
        self, group: int, terms: Sequence[AffinityTerm], nodes: Sequence[int]
    ) -> Iterator[RuleOutcome]:
        """A member that is the only one of the group so far: the next one has to be near it."""
        if sum(len(self._nodes.get((group, leaving), ())) for leaving in (False, True)) == 1:
            topologies = tuple(dict.fromkeys(term.topology for term in terms))
            every = [self._terrain.domains(topology) for topology in topologies]
            alone = np.logical_and.reduce(
                [(domains >= 0) & (domains == domains[nodes[0]]) for domains in every]
            )
            what = f"other pods' affinity on {', '.join(topologies)}"
            yield RuleOutcome(what, alone, stays=False)

    def _even_with_promised(
        self, shape: int, spread: TopologySpread, nodes: Sequence[int]
    ) -> RuleOutcome:
        """Members that are spread: no domain of theirs may have too many pods in the end."""
        domains = self._terrain.even(self._shapes[shape], spread)
        there = self.there(self._roll.number[(spread.peers,)], domains, leaving=False)
        least = (
            0 if len(there) < spread.min_domains else int(there.min(initial=there.max(initial=0)))
        )
        own = _count(np.array(nodes, np.intp), domains) > 0
        full = own & (there + 1 - least > spread.max_skew)
        what = f"other pods' topology spread over {spread.topology}"
        return RuleOutcome(what, ~in_flagged_domain(full, domains), stays=False)

    def _apart(self, row: int, term: AffinityTerm, crowds: "_Gathered") -> RuleOutcome:
        group = self._roll.number[(term.peers,)]
        domains = self._terrain.domains(term.topology)
        taken = self.there(group, domains) > 0
        rule = AntiAffinity(row, crowds.crowd(group, domains)) if group in self._counted else None
        what = f"pod anti-affinity on {term.topology}"
        return RuleOutcome(what, ~in_flagged_domain(taken, domains), stays=True, between=rule)

    def _near(self, row: int, terms: Sequence[AffinityTerm], crowds: "_Gathered") -> RuleOutcome:
        """All terms are about the same pods: those who match every one of them."""
        group = self._roll.number[tuple(term.peers for term in terms)]
        topologies = tuple(dict.fromkeys(term.topology for term in terms))
        all_domains = [self._terrain.domains(topology) for topology in topologies]
        theres = [self.there(group, domains) for domains in all_domains]
        pairs = zip(theres, all_domains, strict=True)
        met = np.logical_and.reduce(
            [in_flagged_domain(there > 0, domains) for there, domains in pairs]
        )
        may_be_first = group in groups_of(self._shapes[row])
        is_first = may_be_first and not any(there.any() for there in theres)
        what = f"pod affinity on {', '.join(topologies)}"
        stays = group not in self._counted
        # Where somebody is there already, nothing can go wrong, but for who is there as the first.
        is_met = met[self._base.allowed[row]].all() and not self._is_promised(row)
        if stays or is_met:
            return RuleOutcome(what, met, stays=stays)
        own = tuple(crowds.crowd(group, domains) for domains in all_domains)
        alone = met | np.logical_and.reduce([domains >= 0 for domains in all_domains])
        rule = Affinity(row, own, may_be_first)
        return RuleOutcome(what, alone if is_first else met, stays=False, between=rule)

    def _spread(self, row: int, spread: TopologySpread, crowds: "_Gathered") -> RuleOutcome:
        group = self._roll.number[(spread.peers,)]
        domains = self._terrain.even(self._shapes[row], spread)
        there = self.there(group, domains, leaving=False)
        from_zero = len(there) < spread.min_domains
        least = 0 if from_zero else int(there.min(initial=there.max(initial=0)))
        itself = group in groups_of(self._shapes[row])
        alone = in_flagged_domain(there + itself - least <= spread.max_skew, domains)
        what = f"topology spread over {spread.topology}"
        if group not in self._counted:
            return RuleOutcome(what, alone, stays=True)
        crowd = crowds.crowd(group, domains, leaving=False)
        rule = EvenSpread(row, crowd, spread.max_skew, from_zero)
        return RuleOutcome(what, alone, stays=False, between=rule)

    def _is_promised(self, row: int) -> bool:
        return any(spot.shape == row for spot in self._promised)

    def there(self, group: int, domains: Domains, *, leaving: bool = True) -> NDArray[np.int64]:
        """How many of the group are in each domain; with or without those who terminate."""
        kinds = (False, True) if leaving else (False,)
        nodes = [self._nodes[group, kind] for kind in kinds if (group, kind) in self._nodes]
        return _count(np.concatenate([*nodes, np.zeros(0, np.intp)]), domains)

    def counted(self, group: int) -> Mask:
        """Which shapes' members are among the group; some are."""
        return self._counted[group]


class _Gathered:
    """The crowds that rules name, each once."""

    def __init__(self, crowds: InterPodCompiler) -> None:
        self._crowds = crowds
        self._known: dict[object, int] = {}
        self.made: list[DomainCount] = []

    def crowd(self, group: int, domains: Domains, *, leaving: bool = True) -> int:
        """The number of the crowd of a group in these domains."""
        # A Terrain gives the same array for the same question, and keeps it.
        key = group, id(domains), leaving
        if key not in self._known:
            there = self._crowds.there(group, domains, leaving=leaving)
            self._known[key] = len(self.made)
            self.made.append(DomainCount(domains, self._crowds.counted(group), there))
        return self._known[key]


def _count(nodes: NDArray[np.intp], domains: Domains) -> NDArray[np.int64]:
    """How many of these are in each domain."""
    where = domains[nodes]
    size = int(domains.max(initial=-1)) + 1
    return np.bincount(where[where >= 0], minlength=size).astype(np.int64)
