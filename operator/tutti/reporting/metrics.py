"""Metrics by Prometheus' naming rules. The operator's process feeds them; planning does not.

A cycle leaves its Snapshot and plan here, and each scrape computes the figures of the last cycle. A
replica that does not lead shows only the metrics of its Lease, its API calls and its process.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..gang import health, order
from ..kube.calls import Call, Right
from ..kube.client import NO_ANSWER
from ..model.cluster import Gang, Snapshot
from ..model.decisions import Mode, Plan, Reason
from ..model.queues import ROOT
from ..queues.share import MILLION
from ..queues.tree import QueueTree
from . import utilisation

OK, REDIRECTED = 200, 300  # HTTP's own boundaries
GONE, CONFLICT, TOO_MANY, BROKEN = 404, 409, 429, 500
TO_BIND = (0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)  # seconds
OF_WATCH = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15)  # seconds
OF_STAGE = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # seconds


class Stage(StrEnum):
    """The stages of a cycle, in their order; reserving and binding are the commit."""

    RECOVER = "recover"
    OBSERVE = "observe"
    PLAN = "plan"
    VERIFY = "verify"
    RESERVE = "reserve"
    BIND = "bind"
    REPORT = "report"


class PlanOutcome(StrEnum):
    """Whether a plan is proved to be the best; or whether it was dropped."""

    PROVED = "proved"
    UNPROVED = "unproved"
    BROKEN = "broken"  # it broke a promise, and was dropped


class CycleResult(StrEnum):
    """How a cycle ended."""

    DONE = "done"
    FAILED = "failed"
    DEPOSED = "deposed"  # another replica leads


class BindingResult(StrEnum):
    """What became of a binding."""

    BOUND = "bound"
    CONFLICT = "conflict"  # the pod had changed, or was gone
    REFUSED = "refused"
    FAILED = "failed"  # the API server was away or broken: Tutti looks at the binding again


class EndReason(StrEnum):
    """Why pods end so that a gang starts."""

    GUARANTEE = "guarantee"  # covers the gang that starts
    PRIORITY = "priority"  # of the gang that starts is higher


class Leader(Protocol):
    """The leader election, as far as metrics need it."""

    term: str  # not empty while this replica leads

    @property
    def transitions(self) -> int:
        """The leaseTransitions of the Lease when it was last read."""


class _LastCycle(NamedTuple):
    """The Snapshot and the plan of the last cycle."""

    snapshot: Snapshot
    plan: Plan


class Metrics(Collector):
    """All metrics of a process, in Prometheus' text format; one instance per process."""

    def __init__(self, mode: Mode = Mode.ACTIVE) -> None:
        self._mode = mode
        self._leader: Leader | None = None
        self._last_cycle: _LastCycle | None = None
        self._starting: dict[str, float] = {}  # gangs that are being started: since when they wait
        self._registry = CollectorRegistry()
        self._cycles = self._counter("tutti_cycles", "Cycles, by result.", "result")
        self._plans = self._counter(
            "tutti_plans",
            "Plans, by whether it is proved that no better admission exists.",
            "outcome",
        )
        self._bindings = self._counter("tutti_bindings", "Bindings sent, by result.", "result")
        self._calls = self._counter(
            "tutti_api_requests",
            "Requests to the API server, started watches included, without those that kopf makes "
            "for PodGroups and waiting pods; code 0 means no answer.",
            *("verb", "resource", "code"),
        )
        self._stages = Histogram(
            "tutti_cycle_stage_seconds",
            "Duration of the steps of a cycle.",
            ["stage"],
            buckets=OF_STAGE,
            registry=self._registry,
        )
        self._to_bind = Histogram(
            "tutti_gang_time_to_bind_seconds",
            "Time from when a gang began to wait until all members that it needs were bound; "
            "creation times are whole seconds.",
            buckets=TO_BIND,
            registry=self._registry,
        )
        self._evictions = self._counter(
            "tutti_queue_evictions",
            "Pods that end so that a gang starts, by the queue of their gang.",
            *("queue", "reason"),
        )
        self._lost_work = Counter(
            "tutti_evictions_lost_work_seconds",
            "Work lost by ending gangs so that others start: seconds in which the whole cluster "
            "could have done it.",
            registry=self._registry,
        )
        # Uids of gangs with a claim: since when; None once its time is taken.
        self._claiming: dict[str, float | None] = {}
        self._claim_to_bind = Histogram(
            "tutti_claim_time_to_bind_seconds",
            "Time from the decision to end gangs for another one until its first member is bound.",
            buckets=TO_BIND,
            registry=self._registry,
        )
        self._watch_delay = Histogram(
            "tutti_watch_delay_seconds",
            "Time from the answer to a binding until the watch of bound pods shows it.",
            buckets=OF_WATCH,
            registry=self._registry,
        )
        # A label without events is 0, not absent: otherwise Prometheus sees no increase at the
        # first event.
        for stage in Stage:
            self._stages.labels(stage)
        for counter, values in (
            (self._cycles, CycleResult),
            (self._plans, PlanOutcome),
            (self._bindings, BindingResult),
        ):
            for value in values:
                counter.labels(value)
        self._know_queues((ROOT,))
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def _counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(name, description, labels, registry=self._registry)

    def _know_queues(self, queues: Iterable[str]) -> None:
        for queue in queues:
            for reason in EndReason:
                self._evictions.labels(queue, reason)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    # Calls of the operator's process

    def follow(self, leader: Leader) -> None:
        """Read from ``leader`` whether this replica leads."""
        self._leader = leader

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        """Measure the time of one stage."""
        return self._stages.labels(stage).time()

    def planned(self, plan: Plan) -> None:
        """Count a plan."""
        self._plans.labels(PlanOutcome.PROVED if plan.proved else PlanOutcome.UNPROVED).inc()
        self._know_queues(use.name for use in plan.queues)

    def broke(self) -> None:
        """Count a plan that was dropped because it broke a promise."""
        self._plans.labels(PlanOutcome.BROKEN).inc()

    def evicted(self, queue: str, lost_seconds: float, *, by_guarantee: bool) -> None:
        """Count a pod of a gang of this queue that ends for a claim, and the work that it loses."""
        reason = EndReason.GUARANTEE if by_guarantee else EndReason.PRIORITY
        self._evictions.labels(queue, reason).inc()
        self._lost_work.inc(lost_seconds)

    def ended(self, how: CycleResult) -> None:
        """Count a cycle that has ended."""
        self._cycles.labels(how).inc()

    def called(self, call: Right, status: int) -> None:
        """Count a request to the API server, by the HTTP status of its answer."""
        self._calls.labels(call.verb, call.resource, str(status)).inc()
        if call == Call.BIND:
            self._bindings.labels(_bound(status)).inc()

    def watch_delay(self, seconds: float) -> None:
        """Record how many seconds after the API server confirmed a binding the watch shows it."""
        self._watch_delay.observe(max(0.0, seconds))

    def saw(self, snapshot: Snapshot, plan: Plan) -> None:
        """Keep the Snapshot and the plan of a cycle that has come to its report.

        Record the waiting time of each gang that is bound now and that a plan had started.
        """
        self._last_cycle = _LastCycle(snapshot, plan)
        self._saw_claims(snapshot)
        if not (plan.placements or self._starting):
            return
        gangs: dict[str, Gang] = {gang.uid: gang for gang in snapshot.gangs}
        for placement in plan.placements:
            gang = gangs.get(placement.uid)
            starts = {assignment.uid for assignment in placement.assignments}
            if gang is not None and not any(
                member.counts_as_bound and member.uid not in starts for member in gang.members
            ):
                since = order.waiting_since(gang, order.by_age(gang.members))
                self._starting.setdefault(placement.uid, since)
        for uid, since in tuple(self._starting.items()):
            gang = gangs.get(uid)
            if gang is not None and health.is_whole(gang):
                self._to_bind.observe(max(0.0, snapshot.taken_at - since))
            elif gang is not None and not gang.is_idle:
                continue
            del self._starting[uid]

    def _saw_claims(self, snapshot: Snapshot) -> None:
        """Take the time of claims of which the first member is bound; each once."""
        for reservation in snapshot.reservations:
            if reservation.victims is not None:
                self._claiming.setdefault(reservation.uid, reservation.reserved_at)
        if not self._claiming:
            return
        for gang in snapshot.gangs:
            since = self._claiming.get(gang.uid)
            if since is not None and any(member.counts_as_bound for member in gang.members):
                self._claim_to_bind.observe(max(0.0, snapshot.taken_at - since))
                self._claiming[gang.uid] = None
        standing = {reservation.uid for reservation in snapshot.reservations}
        self._claiming = {uid: at for uid, at in self._claiming.items() if uid in standing}

    # What follows from the picture

    def collect(self) -> Iterable[Metric]:
        """The metrics that are computed at each scrape."""
        leads = self._leader is not None and bool(self._leader.term)
        transitions = 0 if self._leader is None else self._leader.transitions
        yield _metric("tutti_lease_held", "Whether this replica leads.", float(leads))
        yield CounterMetricFamily(
            "tutti_lease_changes",
            "How often the leader has changed: leaseTransitions of the Lease.",
            value=transitions,
        )
        modes = GaugeMetricFamily(
            "tutti_mode",
            "Whether Tutti carries out plans: the mode with the value 1.",
            labels=["mode"],
        )
        for mode in Mode:
            modes.add_metric([mode], float(mode is self._mode))
        yield modes
        if leads and self._last_cycle is not None:
            yield from _of_gangs(*self._last_cycle)
            rooms = utilisation.rooms(self._last_cycle.snapshot)
            yield from _of_room(rooms)
            yield from _of_levels(self._last_cycle.snapshot, rooms)
            yield from _of_queues(*self._last_cycle)


def _of_gangs(snapshot: Snapshot, plan: Plan) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "tutti_gangs", "Gangs that have not ended, by state.", labels=["state"]
    )
    for state, n in utilisation.states(snapshot).items():
        states.add_metric([state], n)
    yield states
    reasons = GaugeMetricFamily(
        "tutti_waiting_gangs",
        "Gangs that wait, or wait for more members, by reason.",
        labels=["reason"],
    )
    reasons_given = [rejection.reason for rejection in plan.rejections]
    for reason in Reason:
        reasons.add_metric([reason], reasons_given.count(reason))
    yield reasons
    yield _metric(
        "tutti_plan_gap_ratio",
        "Upper bound on the optimality gap of the last plan, at the highest priority without a "
        "proof; NaN if unknown.",
        float("nan") if plan.gap is None else plan.gap,
    )


def _of_room(rooms: Mapping[str, utilisation.Utilisation]) -> Iterator[Metric]:
    labels = ["resource", "unit"]
    families = {
        field: GaugeMetricFamily(f"tutti_resource_{field}", description, labels=labels)
        for field, description in (
            ("allocatable", "What the nodes have."),
            ("allocated", "What bound pods request, whichever scheduler bound them."),
            ("reserved", "What is reserved for members that are not bound yet."),
            ("free", "What is neither allocated nor reserved."),
            (
                "stranded",
                "What is free on nodes that accept no pods, or have no cpu, memory or pods left.",
            ),
        )
    }
    for name, room in rooms.items():
        unit, factor = _unit(name)
        for field, family in families.items():
            family.add_metric([name, unit], getattr(room, field) * factor)
    yield from families.values()


def _of_levels(snapshot: Snapshot, resources: Iterable[str]) -> Iterator[Metric]:
    """What one domain of each level has free at most; nothing in a cluster without a Topology."""
    levels = utilisation.levels(snapshot)
    if not levels:
        return
    labels = ["topology", "level", "resource"]
    free = GaugeMetricFamily(
        "tutti_topology_largest_free",
        "The most of a resource that is free and not stranded in one domain of a level.",
        labels=[*labels, "unit"],
    )
    whole = GaugeMetricFamily(
        "tutti_topology_largest_whole_nodes",
        "The most nodes in one domain of a level that have all devices of a resource free.",
        labels=labels,
    )
    for room in levels:
        for name in resources:
            unit, factor = _unit(name)
            most_free, _ = room.largest_free(name)
            free.add_metric([room.topology, room.level, name, unit], most_free * factor)
            if "/" in name:
                whole_nodes, _ = room.largest_whole_nodes(name)
                whole.add_metric([room.topology, room.level, name], whole_nodes)
    yield from (free, whole)


def _of_queues(snapshot: Snapshot, plan: Plan) -> Iterator[Metric]:
    """Figures of every queue, the root included, for each resource that some queue has quota of."""
    if not snapshot.queues:
        return
    tree = QueueTree.of(snapshot.queues)
    limits = {name: dict(queue.limits) for name, queue in tree.queues.items()}
    resources = {*tree.lines, *(resource for amounts in limits.values() for resource in amounts)}
    amounts = {
        field: GaugeMetricFamily(
            f"tutti_queue_{field}", description, labels=["queue", "resource", "unit"]
        )
        for field, description in (
            ("charged", "What gangs in a queue and below it are charged."),
            ("covered", "What of it guarantees cover."),
            ("borrowed", "What of it no guarantee covers."),
            ("guaranteed", "What a queue guarantees."),
            ("limit", "What a queue limits its gangs to."),
        )
    }
    waiting = GaugeMetricFamily(
        "tutti_queue_waiting_gangs", "Gangs that wait in a queue and below it.", labels=["queue"]
    )
    shares = GaugeMetricFamily(
        "tutti_queue_share_ratio",
        "The largest part of a resource that is charged over the guarantee, by weight.",
        labels=["queue"],
    )
    past = GaugeMetricFamily(
        "tutti_queue_past_share_ratio",
        "The mean share of a queue in the past; later times have more weight.",
        labels=["queue"],
    )
    for queue in snapshot.queues:
        if queue.past_use is not None:
            past.add_metric([queue.name], queue.past_use.mean_at(snapshot.taken_at) / MILLION)
    for use in plan.queues:
        waiting.add_metric([use.name], use.waiting)
        shares.add_metric([use.name], float(use.share))
        guaranteed, limit = tree.guarantees.get(use.name, {}), limits.get(use.name, {})
        for resource in sorted(resources):
            unit, factor = _unit(resource)
            values = {
                "charged": use.charged[resource],
                "covered": use.covered[resource] if resource in tree.lines else None,
                "borrowed": use.borrowed[resource] if resource in tree.lines else None,
                "guaranteed": guaranteed.get(resource),
                "limit": limit.get(resource),
            }
            for field, value in values.items():
                if value is not None:
                    amounts[field].add_metric([use.name, resource, unit], value * factor)
    yield from (*amounts.values(), waiting, shares, past)


def _unit(resource: str) -> tuple[str, float]:
    """The unit of a resource in metrics, and the factor from Tutti's unit to it."""
    if resource == "cpu":
        return "core", 0.001
    is_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    return ("byte" if is_bytes else "integer"), 1.0


def _metric(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(name, description, value=value)


def _bound(status: int) -> BindingResult:
    if OK <= status < REDIRECTED:
        return BindingResult.BOUND
    if status in (GONE, CONFLICT):
        return BindingResult.CONFLICT
    return (
        BindingResult.FAILED
        if status in (NO_ANSWER, TOO_MANY) or status >= BROKEN
        else BindingResult.REFUSED
    )
