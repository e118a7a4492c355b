"""Which domains members of one gang should have: the fewest, close together, with least to spare.

By counting alone: each shape by itself. Separate from ``preferred_domains``, which moves gangs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ..filters.topology import Domains, Mask
from ..gang import domain_rules
from ..model.cluster import Gang, Snapshot
from ..model.inter_pod import DomainRule
from .compile.grids import Grid

Fits = NDArray[np.int64]  # [kind of members, node]: how many of one kind have room
MOST_CHOICES = 400  # of one gang, over all its rules together
TIGHTEST = 8  # single domains that a preference offers


@dataclass(frozen=True, slots=True, eq=False)
class LevelRule:
    """Members of one gang that must be in one domain of a level, or should be in few of them."""

    enclosing: tuple[Domains, ...]  # [level][node]: of the rule, then ever wider ones
    named: int  # domains of the rule; those from this number on are of nodes without its labels
    is_required: bool
    nodes: tuple[int, ...] = ()  # on which others of its members stay
    groups: tuple[int, ...] = ()  # of the gang's members, those that it covers

    def splits(self, nodes: Sequence[int]) -> tuple[int, int]:
        """How many domains there are beyond one, and how many levels up one domain has them all."""
        rows = np.array([*nodes, *self.nodes], dtype=np.intp)
        counts = [len(np.unique(level[rows])) for level in self.enclosing]
        return max(counts[0] - 1, 0), sum(count > 1 for count in counts)

    def room(self, fits: Fits) -> tuple[NDArray[np.int64], ...]:
        """[level][domain]: the room for its members, all kinds added up."""
        total = fits.sum(axis=0)
        return tuple(_by_domain(level, total) for level in self.enclosing)


class LevelRules:
    """The required and preferred levels of gangs, as domains of nodes."""

    def __init__(self, base: Grid, snapshot: Snapshot) -> None:
        self._base = base
        self._reservations = {r.uid: r for r in snapshot.reservations}

    def of(self, gang: Gang) -> Sequence[tuple[DomainRule, LevelRule]]:
        """The rules of the gang, without its groups; a level that no topology has is left out."""
        both = [(rule, True) for rule in gang.same_domain]
        both += [(rule, False) for rule in gang.preferred_domains]
        rules = []
        for rule, is_required in both:
            labels = domain_rules.labels_of(rule.level, self._base.topologies)
            if labels:
                names = domain_rules.nodes_of(gang, rule, self._reservations.get(gang.uid))
                rows = self._base.index.rows
                nodes = tuple(rows[name] for name in names if name in rows)
                enclosing = self._enclosing(labels)
                named = int(self._base.domains.domains(labels).max(initial=-1)) + 1
                rules.append((rule, LevelRule(enclosing, named, is_required, nodes)))
        return rules

    def _enclosing(self, labels: tuple[str, ...]) -> tuple[NDArray[np.intp], ...]:
        """The domains of the level, of all wider ones, and of the cluster."""
        levels = [labels[:n] for n in range(len(labels), 0, -1)]
        domains = [_own_domains(self._base.domains.domains(level)) for level in levels]
        return (*domains, np.zeros(len(self._base.nodes), dtype=np.intp))


def choices(
    rules: Sequence[LevelRule], fits: Fits, counts: NDArray[np.int64]
) -> Sequence[tuple[Mask, ...]]:
    """Nodes for each group of members, that heed all rules by counting; the best come first.

    ``fits`` and ``counts`` are by group: where its members have room, and how many there are.
    """
    most = int(MOST_CHOICES ** (1 / max(len(rules), 1)))
    # The widest level first: a narrow domain is then one of the wide one.
    ordered = sorted(rules, key=lambda rule: len(rule.enclosing))
    everywhere = fits > 0
    ranked = sorted(
        _combined(ordered, fits, counts, everywhere, most), key=lambda choice: choice[0]
    )
    return [tuple(masks) for _, masks in ranked]


def _combined(
    rules: Sequence[LevelRule],
    fits: Fits,
    counts: NDArray[np.int64],
    masks: NDArray[np.bool_],
    most: int,
) -> Iterator[tuple[tuple[int, ...], NDArray[np.bool_]]]:
    """Choices for these rules inside the masks, each with what tells the better one."""
    if not rules:
        yield (0, 0, 0), masks
        return
    rule, covered = rules[0], list(rules[0].groups)
    inside = np.where(masks[covered], fits[covered], 0)
    for rank, nodes in islice(_of_rule(rule, inside, counts[covered]), most):
        narrowed = masks.copy()
        narrowed[covered] &= nodes
        for others, chosen in _combined(rules[1:], fits, counts, narrowed, most):
            yield tuple(own + other for own, other in zip(rank, others, strict=True)), chosen


def _of_rule(
    rule: LevelRule, fits: Fits, counts: NDArray[np.int64]
) -> Iterator[tuple[tuple[int, int, int], Mask]]:
    """Sets of domains with room for the members: domains, levels up, and room to spare."""
    own = rule.enclosing[0]
    rooms = np.array([_by_domain(own, row) for row in fits])
    used = np.unique(own[list(rule.nodes)])
    spare = rooms.sum(axis=0)
    singles = np.flatnonzero((rooms >= counts[:, None]).all(axis=0))
    if used.size:
        singles = singles[(singles == used[0]) & (used.size == 1)]
    if rule.is_required:
        singles = singles[singles < rule.named]
    keys = [room[_parents(rule, level)[singles]] for level, room in _wider(rule, fits)]
    singles = singles[np.lexsort((singles, *keys[::-1], spare[singles]))]
    for domain in singles[: None if rule.is_required else TIGHTEST].tolist():
        yield (0, 0, int(spare[domain])), own == domain
    for level in range(1, 0 if rule.is_required else len(rule.enclosing)):
        sets = _sets(_parents(rule, level), rooms, counts, used)
        best = min(sets, key=lambda domains: (len(domains), int(spare[domains].sum())), default=())
        if len(best):
            rank = (len(best) - 1, level, int(spare[best].sum()))
            yield rank, np.isin(own, best)


def _wider(rule: LevelRule, fits: Fits) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The wider levels, each with the room of its domains."""
    total = fits.sum(axis=0)
    for level in range(1, len(rule.enclosing)):
        yield level, _by_domain(rule.enclosing[level], total)


def _parents(rule: LevelRule, level: int) -> Domains:
    """[domain of the rule]: the domain of a wider level that it is in."""
    own, wide = rule.enclosing[0], rule.enclosing[level]
    parents = np.zeros(int(own.max(initial=-1)) + 1, dtype=np.intp)
    parents[own] = wide
    return parents


def _sets(
    parents: Domains, rooms: Fits, counts: NDArray[np.int64], used: NDArray[np.intp]
) -> Iterator[NDArray[np.intp]]:
    """For each wide domain: the fewest of its domains that hold the members, used ones included."""
    totals = np.array([_by_domain(parents, row) for row in rooms])
    able = np.flatnonzero((totals >= counts[:, None]).all(axis=0))
    if used.size:
        able = able[np.isin(able, parents[used]) & (len(np.unique(parents[used])) == 1)]
    lacking, is_new = counts - rooms[:, used].sum(axis=1), rooms.sum(axis=0) > 0
    is_new[used] = False
    for wide in able.tolist():
        inside = np.flatnonzero((parents == wide) & is_new)
        yield np.concatenate((used, inside[_fewest(rooms[:, inside], lacking)]))


def _fewest(rooms: Fits, counts: NDArray[np.int64]) -> list[int]:
    """The fewest of these domains that hold so many members, then those with least to spare.

    Exact for members of one kind: the largest domains suffice if any so many do.
    """
    missing, chosen, spare = counts.clip(0), list[int](), rooms.sum(axis=0)
    while missing.any():
        held = np.minimum(rooms, missing[:, None]).sum(axis=0)
        held[chosen] = 0
        best = int(np.lexsort((spare, -held))[0])
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
    """[domain]: the sum over its nodes."""
    return np.bincount(domains, amounts, int(domains.max(initial=-1)) + 1).astype(np.int64)


def _own_domains(domains: Domains) -> Domains:
    """The same domains; each node in none is a domain of its own."""
    numbers = domains.copy()
    outside = np.flatnonzero(domains < 0)
    numbers[outside] = int(domains.max(initial=-1)) + 1 + np.arange(len(outside))
    return numbers
