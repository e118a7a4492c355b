"""Which domains a gang is in, and which it should be in: few, close, with little spare room.

Domains are chosen by counting the room for each shape alone. ``preferred_domains`` moves the gangs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product, zip_longest

import numpy as np
from numpy.typing import NDArray

from ..filters.topology import Domains, Mask
from ..gang import domain_rules
from ..gang.demand import MemberCounts
from ..model.cluster import Gang, Snapshot
from ..model.decisions import Assignment
from ..model.inter_pod import DomainRule
from ..model.keys import Uid
from .compile.grids import Grid

Fits = NDArray[np.int64]  # [group of members, node]: how many members have room
TIGHTEST = 8  # single domains that a rule offers, the smallest room first
MOST_WIDE = 16  # the same, for a rule with narrower rules after it
MOST_CHOICES = 12  # choices of domains for one gang

# A smaller rank is a better choice. It is the sum over rules of: the domains beyond one, the levels
# up to one domain that holds all members, and the room in the domains, by level, the widest first.
Rank = tuple[int, ...]
Seats = dict[tuple[int, int], int]  # by group and node: how many members
Choice = tuple[Rank, NDArray[np.bool_]]  # with [group, node]: where its members may be
Cost = tuple[int, int]  # domains beyond one, and levels up to one domain that holds all members


@dataclass(frozen=True, slots=True, eq=False)
class LevelRule:
    """A rule: members of one gang must be in one domain of a level, or should be in few."""

    enclosing: tuple[Domains, ...]  # [level][node]: domains of the rule, then of wider levels
    parents: tuple[Domains, ...]  # [level][domain of the rule]: the domain around it
    named: int  # domains with the labels; higher numbers are single nodes without
    is_required: bool
    nodes: tuple[int, ...] = ()  # nodes on which other members of the gang stay
    groups: tuple[int, ...] = ()  # the groups of members that the rule covers

    def splits(self, nodes: Sequence[int]) -> tuple[int, int]:
        """The domains beyond one, and the levels up to one domain that has all of the nodes.

        The nodes of members that stay count, too.
        """
        rows = np.array([*nodes, *self.nodes], dtype=np.intp)
        counts = [len(np.unique(level[rows])) for level in self.enclosing]
        return max(counts[0] - 1, 0), sum(count > 1 for count in counts)

    def room(self, fits: Fits) -> tuple[NDArray[np.int64], ...]:
        """[level][domain]: the room for members, summed over groups."""
        total = fits.sum(axis=0)
        return tuple(_by_domain(level, total) for level in self.enclosing)


class LevelRules:
    """The required and preferred levels of gangs, as domains of nodes."""

    def __init__(self, base: Grid, snapshot: Snapshot) -> None:
        self._base = base
        self._reservations = {r.uid: r for r in snapshot.reservations}
        self._levels: dict[tuple[str, ...], LevelRule] = {}

    def of(self, gang: Gang) -> Sequence[tuple[DomainRule, LevelRule]]:
        """The rules of the gang, still without groups; a level that no topology has is left out."""
        both = [(rule, True) for rule in gang.same_domain]
        both += [(rule, False) for rule in gang.preferred_domains]
        rules = []
        for rule, is_required in both:
            labels = domain_rules.labels_of(rule.level, self._base.topologies)
            if labels:
                names = domain_rules.nodes_of(gang, rule, self._reservations.get(gang.uid))
                rows = self._base.index.rows
                nodes = tuple(rows[name] for name in names if name in rows)
                level = replace(self._level(labels), is_required=is_required, nodes=nodes)
                rules.append((rule, level))
        return rules

    def _level(self, labels: tuple[str, ...]) -> LevelRule:
        """A rule with the domains of the level, of all wider ones, and of the cluster."""
        if labels not in self._levels:
            levels = [labels[:n] for n in range(len(labels), 0, -1)]
            domains = [self._base.domains.domains(level) for level in levels]
            everywhere = np.zeros(len(self._base.nodes), dtype=np.intp)
            enclosing = (*map(_own_domains, domains), everywhere)
            parents = tuple(_parents(enclosing[0], wide) for wide in enclosing)
            number = int(domains[0].max(initial=-1)) + 1
            self._levels[labels] = LevelRule(enclosing, parents, number, is_required=False)
        return self._levels[labels]


@dataclass(slots=True, eq=False)
class PlacedGang:
    """A gang with new members, the nodes that they have now, and the rules for their domains."""

    members: MemberCounts
    rules: tuple[LevelRule, ...]
    rows: tuple[int, ...]  # by group: the shape of its members in the Grid
    uids: tuple[tuple[Uid, ...], ...]  # by group: the members, the oldest first
    seats: Seats

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many members each group has."""
        return np.array([len(group) for group in self.uids], dtype=np.int64)

    def cost(self) -> Cost:
        """The cost, summed over preferred levels; required levels are always met."""
        pairs = [
            rule.splits([node for group, node in self.seats if group in rule.groups])
            for rule in self.rules
            if not rule.is_required
        ]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)

    def to_spare(self, fits: Fits) -> Rank:
        """The room for members in the domains of the gang, by level, the widest level first."""
        total: Rank = ()
        for rule in self.rules:
            rows = [node for group, node in self.seats if group in rule.groups]
            pairs = zip(rule.enclosing, rule.room(fits[list(rule.groups)]), strict=True)
            rooms = [int(room[np.unique(domains[rows])].sum()) for domains, room in pairs]
            total = added(total, (*rooms[::-1],))
        return total


def placed_gang(
    base: Grid,
    members: MemberCounts,
    assigned: Mapping[Uid, Assignment],
    rules_of: LevelRules,
) -> PlacedGang:
    """The gang with its new members, in groups of one shape that the same rules cover."""
    rules = rules_of.of(members.gang)
    new = [member for member in members.waiting if member.uid in assigned]
    covered = {
        role: tuple(domain_rules.covers(rule, role) for rule, _ in rules)
        for role in {member.role for member in new}
    }
    groups: dict[tuple[int, tuple[bool, ...]], list[Uid]] = {}
    for member in new:
        key = base.shapes[member.shape], covered[member.role]
        groups.setdefault(key, []).append(member.uid)
    seats = Counter(
        (group, base.index.rows[assigned[uid].node])
        for group, uids in enumerate(groups.values())
        for uid in uids
    )
    level_rules = tuple(
        replace(level_rule, groups=tuple(own))
        for index, (_, level_rule) in enumerate(rules)
        if (own := [g for g, (_, covered) in enumerate(groups) if covered[index]])
    )
    rows = tuple(row for row, _ in groups)
    return PlacedGang(members, level_rules, rows, tuple(map(tuple, groups.values())), seats)


def choices(
    rules: Sequence[LevelRule], fits: Fits, counts: NDArray[np.int64]
) -> Sequence[tuple[Mask, ...]]:
    """Choices of nodes for each group of members that keep all rules, by counting; the best first.

    ``fits`` and ``counts`` are by group: for how many members each node has room, and how many
    members there are. For each domain of the first rule, a beam search adds rule after rule and
    keeps the best ``MOST_CHOICES``, so the work is linear in the number of rules.
    """
    everywhere: Choice = ((), fits > 0)
    if not rules:
        return [tuple(everywhere[1])]
    # The widest level first, so that narrow domains are chosen within the wide ones.
    first, *others = sorted(rules, key=lambda rule: len(rule.enclosing))
    best: list[Choice] = []
    for choice in _narrowed([everywhere], first, fits, counts, is_last=not others):
        beam = [choice]
        for rule in others:
            beam = _narrowed(beam, rule, fits, counts, is_last=rule is others[-1])
        best = sorted([*best, *beam], key=lambda choice: choice[0])[:MOST_CHOICES]
    return [tuple(masks) for _, masks in best]


def _narrowed(
    beam: Sequence[Choice],
    rule: LevelRule,
    fits: Fits,
    counts: NDArray[np.int64],
    *,
    is_last: bool,
) -> list[Choice]:
    """The best choices with a set of domains that the rule offers; of a single choice, all."""
    covered, most = list(rule.groups), TIGHTEST if is_last else MOST_WIDE
    offers: dict[bytes, Sequence[tuple[Rank, Mask]]] = {}  # many choices leave the same nodes
    options: list[tuple[Rank, NDArray[np.bool_], Mask]] = []
    for rank, masks in beam:
        inside = np.where(masks[covered], fits[covered], 0)
        if (key := inside.tobytes()) not in offers:
            offers[key] = [*_of_rule(rule, inside, counts[covered], most)]
        options += [(added(rank, own), masks, nodes) for own, nodes in offers[key]]
    if len(beam) > 1:
        options = sorted(options, key=lambda option: option[0])[:MOST_CHOICES]
    choices = []
    for rank, masks, nodes in options:
        narrowed = masks.copy()
        narrowed[covered] &= nodes
        choices.append((rank, narrowed))
    return choices


def _of_rule(
    rule: LevelRule, fits: Fits, counts: NDArray[np.int64], most: int
) -> Iterator[tuple[Rank, Mask]]:
    """Sets of domains with room for the members, as nodes, each with its rank."""
    own, levels = rule.enclosing[0], range(len(rule.enclosing))
    rooms = np.array([_by_domain(own, row) for row in fits])
    room, parents = rule.room(fits), rule.parents

    def to_spare(domains: NDArray[np.intp]) -> Rank:
        return tuple(int(room[n][np.unique(parents[n][domains])].sum()) for n in levels[::-1])

    used = np.unique(own[list(rule.nodes)])
    singles = np.flatnonzero((rooms >= counts[:, None]).all(axis=0))
    if used.size:
        singles = singles[(singles == used[0]) & (used.size == 1)]
    if rule.is_required:
        singles = singles[singles < rule.named]
    singles = singles[np.lexsort((singles, *(room[n][parents[n][singles]] for n in levels)))]
    best = singles[:most]
    spare = zip(*(room[n][parents[n][best]].tolist() for n in levels[::-1]), strict=True)
    for domain, rank in zip(best, spare, strict=True):
        yield (0, 0, *rank), own == domain
    if rule.is_required or (singles.size and len(fits) == 1):
        return  # one group fits into a single domain, and nothing is better
    # Counting takes each group alone, so several groups may need one domain more.
    for level, extra in product(levels[1:], range(min(len(fits), 2))):
        sets = [*_sets(parents[level], rooms, counts, used, extra)]
        fewest = min(map(len, sets), default=0)
        ranked = [(to_spare(domains), domains) for domains in sets if len(domains) == fewest]
        for rank, domains in sorted(ranked, key=lambda pair: pair[0])[:1]:
            yield (fewest - 1, level, *rank), np.isin(own, domains)


def added(first: Rank, second: Rank) -> Rank:
    """The sums, item by item; a missing item counts as 0."""
    return tuple(map(sum, zip_longest(first, second, fillvalue=0)))


def _parents(own: Domains, wide: Domains) -> Domains:
    """[domain]: the wide domain around it."""
    parents = np.zeros(int(own.max(initial=-1)) + 1, dtype=np.intp)
    parents[own] = wide
    return parents


def _sets(
    parents: Domains, rooms: Fits, counts: NDArray[np.int64], used: NDArray[np.intp], extra: int
) -> Iterator[NDArray[np.intp]]:
    """For each wide domain, the fewest of its domains that hold the members.

    The ``used`` domains are always among them. ``extra`` more domains are added, those with the
    most room first.
    """
    totals = np.array([_by_domain(parents, row) for row in rooms])
    able = np.flatnonzero((totals >= counts[:, None]).all(axis=0))
    if used.size:
        able = able[np.isin(able, parents[used]) & (len(np.unique(parents[used])) == 1)]
    lacking, is_new = counts - rooms[:, used].sum(axis=1), rooms.sum(axis=0) > 0
    is_new[used] = False
    for wide in able.tolist():
        inside = np.flatnonzero((parents == wide) & is_new)
        chosen = inside[_fewest(rooms[:, inside], lacking)]
        others = np.setdiff1d(inside, chosen)
        if len(others) >= extra:
            largest = others[np.argsort(-rooms[:, others].sum(axis=0), kind="stable")][:extra]
            yield np.concatenate((used, chosen, largest))


def _fewest(rooms: Fits, counts: NDArray[np.int64]) -> list[int]:
    """The fewest of these domains that hold the members; of such sets, one with little to spare.

    For one group the number is exact: if any n domains suffice, the n largest do.
    """
    missing, chosen, spare = counts.clip(0), list[int](), rooms.sum(axis=0)
    while missing.any():
        seats = np.minimum(rooms, missing[:, None]).sum(axis=0)
        seats[chosen] = 0
        best = int(np.lexsort((spare, -seats))[0])
        chosen.append(best)
        missing = (missing - rooms[:, best]).clip(0)
    for place, domain in enumerate(chosen):
        others = [other for other in chosen if other != domain]
        lacking = counts - rooms[:, others].sum(axis=1)
        enough = (rooms >= lacking[:, None]).all(axis=0)
        enough[others] = False
        chosen[place] = int(np.where(enough, spare, spare.max() + 1).argmin())
    return chosen


def _by_domain(domains: Domains, amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """[domain]: the sum of the amounts of its nodes."""
    return np.bincount(domains, amounts, int(domains.max(initial=-1)) + 1).astype(np.int64)


def _own_domains(domains: Domains) -> Domains:
    """The same domains, but each node without a domain is a domain of its own."""
    numbers = domains.copy()
    outside = np.flatnonzero(domains < 0)
    numbers[outside] = int(domains.max(initial=-1)) + 1 + np.arange(len(outside))
    return numbers
