"""A dump that is read back is the Snapshot that was written, and gives the plan that was made."""

import json
import random
from dataclasses import MISSING, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti import dump
from tutti.dump import load
from tutti.gang import finished_members, refusals
from tutti.kube.gang_sources.spark import role_of
from tutti.model import ports, shapes
from tutti.model.applications import ApplicationPod, ConfigMapKey
from tutti.model.cluster import (
    GATE,
    ApiRefusal,
    BoundBy,
    ClaimGrounds,
    Gang,
    MadeFor,
    Member,
    Namespace,
    Node,
    OnPartial,
    OnTimeout,
    Phase,
    PlacedPod,
    Reservation,
    ReservedVictim,
    Role,
    ScheduledCondition,
    SlotReservation,
    Snapshot,
)
from tutti.model.decisions import Objective, Policy
from tutti.model.inter_pod import (
    AffinityTerm,
    DomainRule,
    InterPodRules,
    PodSelector,
    Requirement,
    SegmentRule,
    Topology,
    TopologySpread,
    WeightedAffinityTerm,
)
from tutti.model.keys import POD_GROUP, ApiKind, GangKey, NodeName, PodKey, Uid
from tutti.model.owners import Job, Owner
from tutti.model.ports import HostPort
from tutti.model.queues import (
    PastUse,
    Preemption,
    Queue,
    QueueMode,
    QueueRecord,
    RoleAtStart,
    Stop,
)
from tutti.model.resources import Resources
from tutti.model.shapes import NO_PREFERENCES, Effect, NodeTerm, Preferences, Taint, Toleration
from tutti.model.volumes import VolumeChoice
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness import builders, generators
from ...harness.builders import (
    NAMESPACE,
    budget,
    gang,
    node,
    reservation,
    resources,
    single,
    snapshot_of,
    space,
)

SETUP = dump.PlannerConfig("tutti", "bestfit", Policy(Objective.GANGS, 60.0), {"seconds": 2.5})


def found(text: str) -> dump.Objects:
    return dump.read([dump.Text("dump.json", text.encode())])


def read(text: str) -> Snapshot:
    return load.snapshot_of(found(text))


def as_kept(of: Snapshot) -> Snapshot:
    """The Snapshot as a cluster could show it: real fields, and Reservations that were created.

    What a member is by its labels is among its labels, and what earlier runs left is no member.
    """

    def real(member: Member) -> Member:
        used = ("spec.volumes[].iscsi",) if member.unsupported_fields else ()
        group = member.group if member.group_kind == POD_GROUP else ""
        own = {"tutti.dev/pod-group": group, "tutti.dev/role": member.role}
        own["spark-role"] = "driver" if member.is_driver else ""
        if member.application is not None:
            own |= {
                "spark-role": member.application.role,
                "spark-app-selector": member.application.app,
            }
            own["tutti.dev/pod-group"] = ""
        all_of_them = {k: v for k, v in {**dict(member.labels), **own}.items() if v or k not in own}
        known = tuple(sorted(all_of_them.items()))
        return replace(member, unsupported_fields=used, labels=known, role=role_of(all_of_them))

    def created(reservation: Reservation) -> Reservation:
        order = sorted(reservation.entries, key=lambda entry: (entry.node, entry.pod, entry.uid))
        uid = Uid(f"reservation-{reservation.uid}")
        return replace(reservation, entries=tuple(order), self_uid=uid)

    def whole(gang: Gang) -> Gang:
        members = tuple(sorted(map(real, gang.members), key=lambda member: member.key))
        if gang.is_single:
            return Gang(gang.key, members[0].uid, 1, members=members, created=members[0].created)
        runs = [reservation for reservation in of.reservations if reservation.uid == gang.uid]
        kept = replace(gang, members=members)
        members = finished_members.run(kept, next(iter(runs), None)).of(kept).members
        value = next((known for known in values if known is not None), None)
        return replace(gang, members=members, class_value=value if gang.priority_class else None)

    values = [one.class_value for one in of.gangs]  # all of one class, which has one value
    return replace(
        of,
        gangs=tuple(whole(one) for one in of.gangs),
        reservations=tuple(created(one) for one in of.reservations),
    )


@given(generators.snapshots(with_rules=True))
def test_a_snapshot_is_read_back_as_it_was_written(of: Snapshot) -> None:
    snapshot = as_kept(of)
    assert read(dump.write(snapshot, SETUP)) == snapshot


@given(generators.snapshots(with_rules=True), st.randoms(use_true_random=False))
def test_the_plan_in_a_dump_is_reproduced_from_its_objects_in_any_order(
    of: Snapshot, chance: random.Random
) -> None:
    snapshot = as_kept(of)
    made = plan(snapshot, BestFit(), BestFit(), Budget(), SETUP.policy)
    body = json.loads(dump.write(snapshot, SETUP, made))
    chance.shuffle(body["items"])
    again = found(json.dumps(body))
    assert again.header is not None
    assert again.header.setup == SETUP
    replayed = plan(load.snapshot_of(again), BestFit(), BestFit(), Budget(), SETUP.policy)
    assert dump.plan_record(replayed) == again.header.plan


PORTS = (HostPort(80), HostPort(81, "UDP", "10.0.0.1"), HostPort(81, "UDP", "::1"))

PEERS = PodSelector(
    (Requirement("app", "NotIn", ("x", "y")), Requirement("tier", "Exists")),
    ("ml",),
)
RAY = ApiKind("ray.io", "RayCluster")
# One value that is not the default, for every field that a decision may look at.
MEMBER: dict[str, Any] = {
    "run": 3,
    "made_for": MadeFor(POD_GROUP, Uid("ml/a-uid")),  # the gang itself
    "bound_at": 1_767_225_600.25,
    "may_preempt": False,
    "grace_seconds": 90,
    "shape": shapes.Shape(
        resources(pods=1, cpu=1.5, memory=1, gpu=2) + Resources.of(ports.requested_amounts(PORTS)),
        (("pool", "a"),),
        (
            NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),)),
            NodeTerm((Requirement("gpu", "Exists"), Requirement("zone", "In", ("x", "y")))),
        ),
        (Toleration("dedicated", "Exists"), Toleration("x", "Equal", "y", "NoSchedule")),
        InterPodRules(
            (
                AffinityTerm("zone", PodSelector((), ("ml", "other"), ())),
                AffinityTerm("zone", PEERS),
            ),
            (AffinityTerm("zone", PodSelector(None, ("ml",))),),
            (
                TopologySpread(
                    "zone", PEERS, 2, 3, honors_node_affinity=False, honors_node_taints=True
                ),
            ),
        ),
        Preferences(
            ((NodeTerm((Requirement("gpu", "Exists"),)), 3),),
            (
                WeightedAffinityTerm(AffinityTerm("zone", PodSelector((), ("ml",))), 20),
                WeightedAffinityTerm(AffinityTerm("zone", PEERS), -5),
            ),
            (TopologySpread("zone", PEERS, 2, honors_node_affinity=False),),
        ),
    ),
    "created": 1_767_225_600.25,
    "role": "worker",
    "priority": 7,
    "node": NodeName("n1"),
    "phase": Phase.FAILED,
    "terminating": True,
    "gates": ("example.com/quota", "hold"),
    "unsupported_fields": ("spec.volumes[].iscsi",),
    "owner": Owner("Job", "train", "batch", Uid("job-1")),
    "scheduled_condition": ScheduledCondition("Unschedulable", "no room"),
    "is_driver": True,
    "application": ApplicationPod(
        "a",
        "executor",
        annotations=(("tutti.dev/executors", "2"), ("tutti.dev/max-executors", "3")),
    ),
    "size_unknown_because": "nobody knows",
    "failure": "OutOfcpu",
    "ended": 1_767_225_660.0,
    "labels": (("app", "x"), ("tutti.dev/pod-group", "a")),
    "other_gangs": (GangKey("ml", "b"), GangKey("ml", "c", RAY)),
    "gone_by": 1_767_225_700.0,
    "finalizers": ("example.com/keep",),
}
_SHAPE = MEMBER["shape"]
TEMPLATE = shapes.Template(
    replace(
        _SHAPE,
        requests=resources(pods=1, cpu=1.5, memory=1, gpu=2),
        volume_reach=(),
    ),
    (("app", "x"), ("tutti.dev/pod-group", "a"), ("tutti.dev/role", "worker")),
)
NODE: dict[str, Any] = {
    "allocatable": resources(cpu=3.25, memory=1, gpu=8, pods=110),
    "labels": (("a", "1"), ("b", "")),
    "taints": (Taint("a", "b", Effect.NO_EXECUTE.value), Taint("c", "", "NoSchedule")),
    "unschedulable": True,
    "ready": False,
    "used": resources(pods=3, cpu=1, memory=2, gpu=1)
    + Resources.of(ports.requested_amounts(PORTS)),
}
GANG: dict[str, Any] = {
    "min_member": 3,
    "roles": (
        Role("worker", 2, 5, TEMPLATE),
        Role("driver", 1),
        Role(
            "cook",
            1,
            unreadable=(
                "a malformed spec.affinity.podAntiAffinity",
                "a malformed spec.topologySpreadConstraints",
            ),
        ),
    ),
    "absent_seconds": 5.0,
    "is_suspended": True,
    "is_protected": True,
    "owner_pod": "driver",
    "priority_class": "high",
    "queue": "vision",
    "class_value": 7,
    "timeout_seconds": 60.0,
    "on_timeout": OnTimeout.FAIL,
    "created": 1_767_225_600.0,
    "generation": 4,
    "terminating": True,
    "on_partial": OnPartial.RELEASE,
    "finished": ("worker", "worker"),
    "lost_milliseconds": 1500,
    "same_domain": (
        DomainRule("block"),
        DomainRule("rack", ("driver", "worker")),
        DomainRule("rack", ("worker",)),
    ),
    "preferred_domains": (DomainRule("rack"), DomainRule("rack", ("driver",))),
    "segments": (
        SegmentRule(DomainRule("rack", ("driver",)), 2),
        SegmentRule(DomainRule("rack", ("worker",)), 16, "index"),
    ),
}
FOREIGN: dict[str, Any] = {
    "priority_value": 7,
    "unsupported_fields": ("spec.resourceClaims",),
    "needs_equal_members": True,
    "has_later_stages": True,
    "other_stages": ("prepare",),
}
RESERVATION: dict[str, Any] = {
    "slots": (SlotReservation(NodeName("n1"), "worker", 2),),
    "volumes": (VolumeChoice("data", "c", "7", NodeName("n1"), "pv"),),
    "evict": (Uid("u-1"),),
    "version": "17",
    "charged": (Uid("ml/a-1-uid"),),
    "roles": ((Uid("ml/a-0-uid"), ""), (Uid("ml/a-2-uid"), "worker")),
    "victims": (
        ReservedVictim(
            GangKey("ml", "b"),
            Uid("b-1"),
            (Uid("b-0"), Uid("b-1")),
            is_whole=True,
            lost_milliseconds=1500,
        ),
        ReservedVictim(GangKey("ml", "c", RAY), Uid("c-1"), (Uid("c-0"),), is_whole=False),
    ),
    "grounds": ClaimGrounds(
        by_guarantee=True,
        cost_milliseconds=2500,
        bound_milliseconds=2000,
        guarantee=(("cpu", "2"),),
    ),
    "record": QueueRecord(
        "vision",
        Uid("q-1"),
        1_767_225_600.25,
        (
            RoleAtStart("driver", 1, resources(cpu=1, pods=1)),
            RoleAtStart("worker", 3, resources(gpu=6, pods=3)),
        ),
        is_protected=True,
    ),
}


QUEUE: dict[str, Any] = {
    "parent": "ml",
    "guaranteed": (("cpu", 1500), ("nvidia.com/gpu", 0)),
    "limits": (("cpu", 2000), ("pods", 7)),
    "weight": 3,
    "namespaces": (Requirement("team", "In", ("a", "b")),),
    "default_for": (Requirement("tier", "Exists"),),
    "stop": Stop.DRAIN,
    "draining_since": 1_767_225_600.25,
    "mode": QueueMode.SHADOW,
    "preemption": Preemption.RECLAIM,
    "min_run_seconds": 600,
    "max_grace_seconds": 90,
    "is_terminating": True,
    "created": 1_767_225_601.0,
    "queues_since": 1_767_225_600.75,
    "past_use": PastUse(250_000, 125_000, 1_767_225_602.5, 86_400.0),
    "unreadable": ("spec.defaultFor",),
}


def _differs(kind: type[Any], values: dict[str, Any]) -> list[str]:
    """The fields with a default that no example sets to something else."""
    return [
        field.name
        for field in fields(kind)
        if (field.default is not MISSING or field.default_factory is not MISSING)
        and field.name not in values
    ]


def test_every_field_of_the_model_has_an_example_here() -> None:
    # Every gang of the builders has the first; of claims the tests of storage tell. The last is for
    # an Event alone: no plan reads it.
    assert _differs(Member, MEMBER) == [
        *("group", "claims", "own_claims", "volume_problems", "unbound_claims"),
        *("group_kind", "unread_gang"),
        # Tests of devices have these.
        *("device_claims", "device_problems"),
        *("extended_requests", "extended_claim", "extended_resources"),
        *("bound_by", "is_handed_over", "handed_over_at"),  # in the next test, as ``Gang.bound_by``
    ]
    assert _differs(Node, NODE) == []
    # The gangs of a Snapshot start whole; other kinds than PodGroups have the others.
    assert _differs(Gang, GANG | FOREIGN) == ["is_one_by_one", "bound_by", "members"]
    assert _differs(Reservation, RESERVATION) == ["self_uid"]
    assert _differs(Queue, QUEUE) == []


def test_a_gang_that_kube_scheduler_binds_is_kept_with_how_far_each_member_is() -> None:
    kube = BoundBy.KUBE_SCHEDULER
    pin = (NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),)),)
    pinned = {"shape": replace(builders.shape(cpu=1), required=pin), "node": NodeName("n1")}
    at = 1_767_225_600.25
    made = gang("a").of(4, cpu=1).each(bound_by=kube, gates=(GATE,)).but(bound_by=kube)
    made = made.only("a-1", gates=("example.com/quota", GATE))
    made = made.only("a-2", gates=(), is_handed_over=True, handed_over_at=at, **pinned)
    made = made.only("a-3", gates=(), **pinned)
    snapshot = as_kept(snapshot_of(node("n1", cpu=8), made))
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_pods_that_the_scheduler_of_their_gang_does_not_bind_are_kept_as_such() -> None:
    """The field that says so is not written: reading the pods and their gang has it again."""
    why = (refusals.NAMES_TUTTI,)
    differing = gang("a").of(1, cpu=1).each(unsupported_fields=why)
    snapshot = snapshot_of(node("n1", cpu=8), differing.but(bound_by=BoundBy.KUBE_SCHEDULER))
    (again,) = read(dump.write(snapshot, SETUP)).gangs
    assert again.members[0].unsupported_fields == why


@pytest.mark.parametrize("name", MEMBER)
def test_no_field_of_a_member_is_lost(name: str) -> None:
    made = gang("a").of(2, cpu=1).last(1, **{name: MEMBER[name]})
    if name == "run":  # pods of an older run are no members
        made = made.where(lambda m: replace(m, run=MEMBER["run"]))
    if name == "failure":
        made = made.last(1, phase=Phase.FAILED)
    if name == "bound_at":
        made = made.last(1, node=NodeName("n1"))
    if name == "ended":
        made = made.last(1, phase=Phase.SUCCEEDED)
    if name == "role":
        made = made.but(roles=(Role("worker", 1),))
    snapshot = as_kept(snapshot_of(node("n1", cpu=8, gpu=8, memory=8), made))
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_gangs_of_one_name_and_different_kinds_are_kept_apart() -> None:
    """No API is named in a dump's code: what declares a gang is written as a PodGroup."""
    ours = gang("a").of(1, cpu=1)
    theirs = replace(
        ours,
        key=ours.key._replace(kind=RAY),
        members=tuple(
            replace(member, key=PodKey("ml", "ray"), uid=Uid("ray"), group_kind=RAY)
            for member in ours.members
        ),
    ).but(uid=Uid("cluster"), finished=("worker",))
    held = reservation(theirs, ("ray", "n1"))
    snapshot = as_kept(snapshot_of(node("n1", cpu=8), ours, theirs, held))
    assert [one.key.kind for one in snapshot.gangs] == [RAY, POD_GROUP]
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_what_only_other_kinds_say_of_a_gang_is_kept() -> None:
    made = gang("a").of(1, cpu=1).each(group_kind=RAY).but(min_member=10**9, class_value=7)
    foreign = made.but(key=GangKey("ml", "a", RAY), **FOREIGN)
    snapshot = as_kept(snapshot_of(node("n1", cpu=8), foreign))
    snapshot = replace(snapshot, gangs=tuple(replace(one, class_value=7) for one in snapshot.gangs))
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_a_declaration_that_cannot_be_read_is_refused_with_a_sentence() -> None:
    foreign = gang("a").but(key=GangKey("ml", "a", RAY), **FOREIGN)
    body = json.loads(dump.write(snapshot_of(foreign), SETUP))
    for item in body["items"]:
        if item["kind"] == "PodGroup":
            item["metadata"]["annotations"]["tutti.dev/declaration"] = '{"priority": "x"}'
    with pytest.raises(dump.BadFile, match="priority"):
        read(json.dumps(body))


def test_a_spark_driver_is_kept_with_what_it_mounts_and_why_it_waits() -> None:
    """One whose PodGroup is still to be made, so it is alone."""
    mounted = (
        ConfigMapKey("conf", "spark.properties"),
        ConfigMapKey("podspec", "podspec-configmap-key"),
    )
    spark = ApplicationPod("spark-1", "driver", *mounted, (("spark-executor-count", "2"),))
    waits = {
        "application": spark,
        "is_driver": True,
        "size_unknown_because": "ConfigMap conf does not exist yet",
    }
    snapshot = as_kept(snapshot_of(node("n1", cpu=8), single("drv", cpu=1).each(**waits)))
    assert read(dump.write(snapshot, SETUP)) == snapshot


@pytest.mark.parametrize("name", NODE)
def test_no_field_of_a_node_is_lost(name: str) -> None:
    snapshot = snapshot_of(node("n1", cpu=8).but(**{name: NODE[name]}), node("n2", cpu=1))
    assert read(dump.write(snapshot, SETUP)) == snapshot


@pytest.mark.parametrize("name", GANG)
def test_no_field_of_a_gang_is_lost(name: str) -> None:
    made = gang("a").of(2, cpu=1).but(**{"priority_class": "low", name: GANG[name]})
    snapshot = snapshot_of(node("n1", cpu=8), made, single("s", cpu=1))
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_whose_reservation_went_before_its_time_is_kept() -> None:
    made = gang("a").of(2, cpu=1)
    snapshot = snapshot_of(node("n1", cpu=8), made, gang("b").of(1, cpu=1))
    kept = replace(snapshot, lost_reservations=frozenset({made.made.uid}))
    assert read(dump.write(kept, SETUP)) == kept


def test_what_the_api_server_refused_a_moment_ago_is_kept() -> None:
    made = gang("a").of(2, cpu=1)
    snapshot = snapshot_of(node("n1", cpu=8), made)
    kept = replace(snapshot, api_refusals={made.made.uid: ApiRefusal('no: "a quota"', 1.25)})
    assert read(dump.write(kept, SETUP)) == kept


def test_the_gangs_that_end_for_no_other_are_kept() -> None:
    made = gang("a").of(2, cpu=1)
    kept = replace(snapshot_of(node("n1", cpu=8), made), protected=frozenset({made.made.uid}))
    written = dump.write(kept, SETUP)
    assert read(written) == kept
    body = json.loads(written)
    body["metadata"]["annotations"]["tutti.dev/protected"] = '{"gangs": 1}'
    with pytest.raises(dump.BadFile, match="no list of gangs"):
        read(json.dumps(body))


def test_the_finalizers_of_a_pod_that_terminates_are_kept() -> None:
    leaving = gang("a").of(1, cpu=1).each(terminating=True, finalizers=("example.com/keep",))
    snapshot = read(dump.write(snapshot_of(node("n1", cpu=8), leaving), SETUP))
    assert snapshot.gangs[0].members[0].finalizers == ("example.com/keep",)


def test_budgets_are_kept() -> None:
    budgets = budget("keep", 3, most=4, app="x"), replace(budget("none", 0), selector=None)
    snapshot = snapshot_of(node("n1", cpu=8), *budgets)
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_the_jobs_of_members_are_kept() -> None:
    of = [
        gang(name).of(1, cpu=1).each(owner=Owner("Job", name, "batch", Uid(name)))
        for name in ("a", "b", "c")
    ]
    jobs = Job(NAMESPACE, "a", 3), Job(NAMESPACE, "b", None)
    snapshot = snapshot_of(node("n1", cpu=8), *of, *jobs)
    assert read(dump.write(snapshot, SETUP)) == snapshot
    none = replace(snapshot, jobs={})  # as when a pod has an owner that does not exist
    preempting = replace(SETUP, policy=Policy(preemption=Preemption.FULL))
    assert read(dump.write(none, preempting)) == none
    assert read(dump.write(replace(snapshot, jobs=None), SETUP)).jobs is None


def test_the_claims_of_a_plan_are_in_its_record() -> None:
    low = gang("low").of(2, cpu=1).bound_on("n1", "n1")
    snapshot = snapshot_of(node("n1", cpu=2), low, gang("high").of(1, cpu=2).priority(3))
    policy = Policy(preemption=Preemption.FULL)
    (claim,) = dump.plan_record(plan(snapshot, BestFit(), BestFit(), Budget(), policy))["claims"]
    assert (claim["gang"], claim["by"]) == ("ml/high", "priority")
    assert claim["victims"] == [{"gang": "ml/low", "whole": True, "pods": ["low-0", "low-1"]}]
    assert "claims" not in dump.plan_record(plan(snapshot, BestFit(), BestFit(), Budget()))


@pytest.mark.parametrize("name", RESERVATION)
def test_no_field_of_a_reservation_is_lost(name: str) -> None:
    made = gang("a").of(2, cpu=1)
    names = ("victims", "grounds") if name == "grounds" else (name,)
    fields = {name: RESERVATION[name] for name in names}
    held = replace(reservation(made, ("a-0", "n1"), at=5.0), **fields)
    snapshot = as_kept(snapshot_of(node("n1", cpu=8), made, held))
    assert read(dump.write(snapshot, SETUP)) == snapshot


def test_the_record_of_a_start_is_kept_without_a_placement() -> None:
    made = gang("a").of(2, cpu=1)
    bare = reservation(made, at=5.0)
    uid = Uid(f"reservation-{bare.uid}")
    spent = replace(bare, record=RESERVATION["record"], version="17", self_uid=uid)
    snapshot = as_kept(snapshot_of(node("n1", cpu=8), made, spent))
    assert snapshot.start_records == (spent,)
    assert read(dump.write(snapshot, SETUP)) == snapshot


RESIDENT: dict[str, Any] = {
    "labels": (("app", "db"),),
    "anti_affinity": (AffinityTerm("host", PEERS), AffinityTerm("zone", PodSelector((), (), ()))),
    "terminating": True,
    "scored_terms": (
        WeightedAffinityTerm(AffinityTerm("zone", PodSelector((), (), ())), 1),
        WeightedAffinityTerm(AffinityTerm("zone", PEERS), -7),
    ),
}


def test_every_field_of_a_resident_and_of_a_namespace_has_an_example_here() -> None:
    assert _differs(PlacedPod, RESIDENT) == []
    assert _differs(Namespace, {"labels": ()}) == []


@pytest.mark.parametrize("name", RESIDENT)
@pytest.mark.parametrize("on", ["n1", "gone"])
def test_no_field_of_a_pod_that_a_rule_may_count_is_lost(name: str, on: str) -> None:
    waits = gang("a").of(2, cpu=1).apart("hostname")
    full = node("n1", cpu=8).using(pods=2 if on == "n1" else 1, cpu=1)
    other = PlacedPod(Uid("other"), NodeName("n1"), "db")
    snapshot = snapshot_of(full, waits, space("db", team="a"), space("ml"))
    some = replace(other, node=NodeName(on), **{name: RESIDENT[name]})
    kept = replace(snapshot, placed_pods=(some, replace(other, uid=Uid("third"))))
    assert read(dump.write(kept, SETUP)) == kept


def test_nobody_is_told_of_while_no_rule_is_in_force() -> None:
    snapshot = snapshot_of(
        node("n1", cpu=8).hosting("db", app="db"), gang("a").of(2, cpu=1), space("ml")
    )
    assert (snapshot.placed_pods, snapshot.namespaces) == ((), ())
    written = dump.write(snapshot, SETUP)
    assert '"db"' not in written
    assert read(written) == snapshot


FIELDS = (
    "a malformed spec.affinity.podAffinity",
    "a malformed spec.affinity.podAntiAffinity",
    "a malformed spec.topologySpreadConstraints",
    "spec.schedulingGroup (settings.gangSources lacks podgroups.scheduling.k8s.io)",
    "spec.volumes[].persistentVolumeClaim",
)


def test_every_rule_that_is_not_modelled_is_still_not_modelled_in_a_dump() -> None:
    made = gang("a").of(1, cpu=1).each(unsupported_fields=FIELDS)
    shape = MEMBER["shape"]
    without = replace(shape, rules=replace(shape.rules, spread=()), preferences=NO_PREFERENCES)
    affine = replace(made, members=(replace(made.members[0], shape=without),))
    for each in (made, affine):
        snapshot = snapshot_of(node("n1", cpu=8), each)
        assert read(dump.write(snapshot, SETUP)) == snapshot


@pytest.mark.parametrize("at", [0.0, 1_767_225_600.0, 1_767_225_600.1234567, 1_763_707_445.000001])
def test_the_moment_of_a_dump_is_kept_to_the_last_bit(at: float) -> None:
    assert found(dump.write(snapshot_of(at=at), SETUP)).taken_at == at


def test_no_topology_is_lost() -> None:
    made = [Topology("a", ("block", "rack")), Topology("b", ("zone",))]
    made += [Topology("a", ("row",), group) for group in ("kai.scheduler", "kueue.x-k8s.io")]
    snapshot = snapshot_of(node("n1", cpu=8), *made)
    assert read(dump.write(snapshot, SETUP)) == snapshot


@pytest.mark.parametrize("name", QUEUE)
def test_no_field_of_a_queue_is_lost(name: str) -> None:
    made = replace(Queue("vision", Uid("q-1")), **{name: QUEUE[name]})
    snapshot = snapshot_of(node("n1", cpu=8), made, space("ml", team="a"))
    assert read(dump.write(snapshot, SETUP)) == snapshot
