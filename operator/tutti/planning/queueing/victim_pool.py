"""The gangs and extras that may end for a gang, with the cost of each end and the room it frees."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ...filters.disruption_budgets import DisruptionBudgets, Shortage
from ...gang import domain_rules
from ...gang.demand import PlacementRequest
from ...model.cluster import DisruptionBudget, Gang, Member, Snapshot
from ...model.keys import GangKey, NodeName, Uid
from ...model.queues import Preemption
from ...model.resources import NOTHING, Resources
from ...queues.charge import GangCharge, requests_of
from ...queues.claims import Entitlement
from ...queues.cover import QueuedGang
from ..compile import grids
from ..compile.grids import Grid
from ..search.partial_plan import PartialPlan
from .ledger import QueueLedger
from .victims import Candidate, CandidateName, Cost, Domain, Missing

Room = NDArray[np.int64]  # [node, resource]
Freed = tuple[NDArray[np.intp], Room]  # the rows of nodes, and what each of them gains

DAY_SECONDS = 24 * 3600  # of its own work, at most, count for what earlier ends cost a gang


@dataclass(frozen=True, slots=True, eq=False)
class PreemptionRules:
    """What users declare about preemption, and the gangs that earlier plans ended."""

    modes: Mapping[str, Preemption]  # by queue; a missing queue is off
    protected: frozenset[GangKey] = frozenset()  # gangs that cannot be ended
    spent: Mapping[GangKey, Fraction] = field(default_factory=dict)  # work lost in earlier ends
    spared: frozenset[GangKey] = frozenset()  # no victims for now, but not protected


@dataclass(frozen=True, slots=True, eq=False)
class VictimPool:
    """The gangs that run, with what the end of each would cost and free.

    A gang is no victim if the plan gives one of its members a node, if it has a place by a claim,
    or if it is being bound. A gang that runs and has slots for absent members alone ends whole.
    """

    snapshot: Snapshot
    grid: Grid
    plan: PartialPlan
    spent: Mapping[GangKey, Fraction]
    budgets: DisruptionBudgets
    # By budget: the members that hold room and end by a claim, standing claims included.
    evicted: Mapping[DisruptionBudget, frozenset[Uid]]
    claimants: frozenset[GangKey] = frozenset()
    ended: frozenset[Uid] = frozenset()  # members that end by a claim already
    spared: frozenset[GangKey] = frozenset()
    being_bound: frozenset[GangKey] = frozenset()  # or being ended
    awaiting: frozenset[GangKey] = frozenset()
    # By gang: the candidates with their room, while what the gang is charged stays the same.
    known: dict[GangKey, "_Ends"] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, grid: Grid, plan: PartialPlan, rules: PreemptionRules) -> Self:
        """The pool before the first claim of a plan."""
        victims = {
            pod
            for reservation in snapshot.reservations
            for v in reservation.victims or ()
            for pod in v.pods
        }
        ending = [
            m for gang in snapshot.gangs if victims for m in holders(gang) if m.uid in victims
        ]
        budgets = DisruptionBudgets.of(snapshot.budgets)
        evicted = budgets.by_budget(ending)
        bound = {pod.uid for pod in snapshot.pods if pod.node is not None}
        awaiting = frozenset(
            held.gang
            for held in snapshot.reservations
            if held.slots and held.victims is None and not held.evict
            if bound.issuperset(entry.uid for entry in held.entries)
        )
        being_bound = frozenset(held.gang for held in snapshot.reservations) - awaiting
        being_bound |= {v.gang for held in snapshot.reservations for v in held.victims or ()}
        return cls(
            snapshot,
            grid,
            plan,
            rules.spent,
            budgets,
            evicted,
            spared=rules.spared,
            being_bound=being_bound,
            awaiting=awaiting,
        )

    def with_claim(self, claimant: GangKey, victims: Iterable[Candidate]) -> "VictimPool":
        """The pool after a claim: the claimant has a place, and its victims end."""
        more = [member for candidate in victims for member in candidate.members]
        evicted = {
            budget: self.evicted.get(budget, frozenset()) | pods
            for budget, pods in self.budgets.by_budget(more).items()
        }
        return replace(
            self,
            claimants=self.claimants | {claimant},
            ended=self.ended | {member.uid for member in more},
            evicted={**self.evicted, **evicted},
        )

    def candidates(
        self, want: PlacementRequest, ledger: QueueLedger, entitlement: Entitlement
    ) -> Sequence[Candidate]:
        """The candidates that may end for the gang and whose end can help it."""
        gangs = {gang.key: gang for gang in self.snapshot.gangs}
        placed = self.being_bound | self.claimants | self.spared
        allowed, limited = self._allowed_nodes(want), self._limited_gangs(want.gang.key)
        candidates: list[Candidate] = []
        for key in sorted(entitlement.gangs | {gang for gang, _ in entitlement.extras}):
            gang = gangs.get(key)
            if gang is None or key in placed or self._is_given_a_node(gang):
                continue
            candidates += [
                candidate
                for candidate in self._ends(gang, ledger).within(entitlement)
                if (candidate.is_whole or key not in self.awaiting)
                and (key in limited or any(m.node in allowed for m in candidate.members))
            ]
        return candidates

    def within_budgets(
        self, candidates: Sequence[Candidate]
    ) -> tuple[Sequence[Candidate], Mapping[GangKey, Shortage]]:
        """The candidates that PodDisruptionBudgets let end one at a time, and why gangs may stay.

        A gang may stay because a budget lets only cheaper ones end together.
        """
        if not self.budgets.by_namespace:
            return candidates, {}
        ordered = sorted(candidates, key=lambda candidate: (candidate.cost, candidate.name))
        kept = {
            candidate.gang: shortage
            for candidate, shortage in self._shortages(ordered)
            if shortage is not None
        }
        return [
            candidate
            for candidate in candidates
            if self.budgets.shortage(candidate.members, self.evicted) is None
        ], kept

    def together(self, some: Sequence[Candidate]) -> Sequence[Candidate]:
        """As many of these as PodDisruptionBudgets let end together, taken in their order."""
        if not self.budgets.by_namespace:
            return some
        return [candidate for candidate, shortage in self._shortages(some) if shortage is None]

    def _shortages(
        self, ordered: Iterable[Candidate]
    ) -> Iterator[tuple[Candidate, Shortage | None]]:
        """Each candidate, with what keeps it once those before it end that may."""
        evicted: dict[DisruptionBudget, Collection[Uid]] = dict(self.evicted)
        more: dict[DisruptionBudget, set[Uid]] = {}
        for candidate in ordered:
            shortage = self.budgets.shortage(candidate.members, evicted)
            if shortage is None:
                for budget, pods in self.budgets.by_budget(candidate.members).items():
                    if budget not in more:
                        evicted[budget] = more[budget] = {*evicted.get(budget, ())}
                    more[budget] |= pods
            yield candidate, shortage

    def freed(self, candidates: Sequence[Candidate]) -> Mapping[CandidateName, Freed]:
        """By candidate: the rows of nodes where its end frees room, and how much; rounded down."""
        new = [
            candidate
            for candidate in candidates
            if candidate.name not in self.known[candidate.gang].freed
        ]
        rows = {node.name: row for row, node in enumerate(self.grid.nodes)}
        units = np.array(self.grid.units, dtype=object)
        shapes = {member.shape for candidate in new for member in candidate.members}
        gains = {
            shape: self.grid.columns.amounts([grids.footprint(shape)]) // units for shape in shapes
        }
        for candidate in new:
            placed = [(rows[m.node], gains[m.shape]) for m in candidate.members if m.node in rows]
            where = np.array([row for row, _ in placed], dtype=np.intp)
            table = np.concatenate([gain for _, gain in placed] or [np.zeros((0, len(units)))])
            whole = np.minimum(table, grids.AMOUNT_LIMIT).astype(np.int64)
            self.known[candidate.gang].freed[candidate.name] = where, whole
        return {
            candidate.name: self.known[candidate.gang].freed[candidate.name]
            for candidate in candidates
        }

    def domains(
        self, want: PlacementRequest, room: Room, freed: Mapping[CandidateName, Freed]
    ) -> Iterator[Domain]:
        """The domains that could have the gang, and what victims must free there of each resource.

        They are those of the narrowest level that all members must be in one domain of. If there
        is no such level, all nodes are one domain. Only nodes on which members may run count.
        """
        grid = self.grid
        rows = [grid.shapes[group[0].shape] for group in want.alike]
        sizes = np.repeat(grid.requests[rows], [len(group) for group in want.alike], axis=0)
        least = np.sort(sizes, axis=0)[: want.need].sum(axis=0)
        allowed = grid.allowed[rows].any(axis=0)
        domains = np.where(allowed, self._numbers(want.gang), -1)
        short = least - _by_domain(domains, np.maximum(room, 0))
        gains = _gains_by_domain(freed, domains, len(short))
        for lack, own in zip(short, gains, strict=True):
            lacks = [
                Missing(int(lack[r]), {name: int(gain[r]) for name, gain in own.items()})
                for r in np.flatnonzero(lack > 0)
            ]
            yield Domain(own.keys(), tuple(lacks))

    def _numbers(self, gang: Gang) -> NDArray[np.intp]:
        """[node]: the domain in which all members of the gang must be; -1 if it is in none."""
        paths = [
            domain_rules.labels_of(rule.level, self.grid.topologies)
            for rule in gang.same_domain
            if not rule.roles
        ]
        labels = max(paths, key=len, default=())
        if labels:
            return self.grid.domains.domains(labels)
        return np.zeros(len(self.grid.nodes), dtype=np.intp)

    def room_once_gone(self) -> Room:
        """The room of each node once all terminating pods have gone, strays included.

        It is negative where a node is overdrawn. Pods that are stuck (that should have gone long
        ago) count as staying.
        """
        now = self.snapshot.taken_at
        promised = grids.reserved_room(self.snapshot)
        leaving: dict[NodeName, list[Resources]] = {}
        for member in self.snapshot.pods:
            if member.node is not None and member.is_leaving(now):
                leaving.setdefault(member.node, []).append(grids.footprint(member.shape))
        taken = [
            node.used
            + promised.get(node.name, NOTHING)
            - Resources.total(leaving.get(node.name, ()))
            for node in self.grid.nodes
        ]
        return grids.room_less(self.grid, taken)

    def _ends(self, gang: Gang, ledger: QueueLedger) -> "_Ends":
        """The candidates of a gang; a claim that ends members of it changes what it is charged."""
        queued, charged = ledger.gangs[gang.key], ledger.charges[gang.key]
        known = self.known.get(gang.key)
        if known is None or known.queued is not queued or known.charged is not charged:
            known = self.known[gang.key] = self._ends_now(gang, ledger, queued, charged)
        return known

    def _ends_now(
        self, gang: Gang, ledger: QueueLedger, queued: QueuedGang, charged: GangCharge
    ) -> "_Ends":
        members = {m.key.name: m for m in holders(gang) if m.uid not in self.ended}
        shares = {pod: _share(ledger, member) for pod, member in members.items()}
        work = {pod: shares[pod] * self._seconds(queued, member) for pod, member in members.items()}
        whole = None
        if members:  # a gang may have stuck pods alone
            spent = min(self.spent.get(gang.key, Fraction(0)), DAY_SECONDS * sum(shares.values()))
            lost = sum(work.values(), Fraction(0))
            cost = Cost(lost + spent, len(members), 1)
            charge = Resources.total((charged.minimum, *(amount for _, amount in charged.extras)))
            whole = Candidate(gang.key, tuple(members.values()), cost, charge, lost)
        extras = {
            pod: Candidate(
                gang.key, (members[pod],), Cost(work[pod], 1, 0), amount, work[pod], is_whole=False
            )
            for pod, amount in charged.extras
            if pod in members
        }
        return _Ends(queued, charged, whole, extras)

    def _seconds(self, gang: QueuedGang, member: Member) -> int:
        """The whole seconds for which a member has run, or may have."""
        since = member.created if member.bound_at is None else member.bound_at
        return max(int(self.snapshot.taken_at - max(gang.started, since)), 0)

    def _is_given_a_node(self, gang: Gang) -> bool:
        assigned = self.plan.assigned
        return bool(assigned) and any(member.uid in assigned for member in gang.members)

    def _allowed_nodes(self, want: PlacementRequest) -> set[NodeName | None]:
        """The nodes on which some member of the gang may run."""
        rows = [self.grid.shapes[group[0].shape] for group in want.alike]
        allowed = self.grid.allowed[rows].any(axis=0)
        return {self.grid.nodes[row].name for row in np.flatnonzero(allowed)}

    def _limited_gangs(self, gang: GangKey) -> set[GangKey]:
        """The gangs that share a limit with this gang."""
        quotas = self.plan.quotas
        rows = [quotas.limits[index] for index in quotas.of_gang.get(gang, ())]
        return {key for limit in rows for key in limit.gangs}


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """How a gang may end while it is charged so: whole, or by single extras."""

    queued: QueuedGang
    charged: GangCharge
    whole: Candidate | None
    extras: Mapping[str, Candidate]  # by pod
    freed: dict[CandidateName, Freed] = field(default_factory=dict)

    def within(self, entitlement: Entitlement) -> Iterator[Candidate]:
        """The candidates that a gang is entitled to end."""
        gang = self.queued.key
        if self.whole is not None and gang in entitlement.gangs:
            yield self.whole
        for pod, candidate in self.extras.items():
            if (gang, pod) in entitlement.extras:
                yield candidate


def _by_domain(domains: NDArray[np.intp], amounts: Room) -> Room:
    """[domain, resource]: the sums over the nodes of each domain; -1 is no domain."""
    sums = np.zeros((int(domains.max(initial=-1)) + 1, amounts.shape[1]), dtype=np.int64)
    np.add.at(sums, domains[domains >= 0], amounts[domains >= 0])
    return sums


def _gains_by_domain(
    freed: Mapping[CandidateName, Freed], domains: NDArray[np.intp], number: int
) -> Sequence[Mapping[CandidateName, NDArray[np.int64]]]:
    """[domain]: what each candidate with pods there frees of each resource."""
    gains: list[dict[CandidateName, NDArray[np.int64]]] = [{} for _ in range(number)]
    names, pairs = [*freed], [*freed.values()]
    rows = np.concatenate([where for where, _ in pairs])
    owners = np.repeat(np.arange(len(names)), [len(where) for where, _ in pairs])
    inside = domains[rows] >= 0
    keys, own = np.unique(owners[inside] * number + domains[rows[inside]], return_inverse=True)
    amounts = np.concatenate([amounts for _, amounts in pairs])[inside]
    for key, sums in zip(keys.tolist(), _by_domain(own, amounts), strict=True):
        gains[key % number][names[key // number]] = sums
    return gains


def _share(ledger: QueueLedger, member: Member) -> Fraction:
    """The largest part of any resource's total in the cluster that a member requests."""
    totals, amounts = ledger.totals, requests_of(member).amounts
    parts = [Fraction(n, totals[name]) for name, n in amounts if totals.get(name, 0)]
    return max(parts, default=Fraction(0))


def holders(gang: Gang) -> Sequence[Member]:
    """The members that hold room and stay."""
    return [m for m in gang.members if m.node is not None and not (m.is_over or m.terminating)]
