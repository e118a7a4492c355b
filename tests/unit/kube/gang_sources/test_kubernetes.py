"""Kubernetes' own PodGroups, the pods that name them, and the condition that Tutti writes."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources import GangObject, GangOutcome
from tutti.kube.gang_sources.kubernetes import KIND, PodGroup, decode_group, status_of
from tutti.model.decisions import Reason
from tutti.model.inter_pod import DomainRule
from tutti.model.keys import POD, GangKey

from .. import objects

NAME = "podgroups.scheduling.k8s.io"
KEY = GangKey("ml", "sum", KIND.api)
OFF = f"spec.schedulingGroup (settings.gangSources lacks {NAME})"
GANG = {"schedulingPolicy": {"gang": {"minCount": 3}}}
NOW = "2026-01-02T00:00:00Z"


def group(*, status: object = None, **spec: Any) -> GangObject:
    metadata = {
        "name": "sum",
        "namespace": "ml",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    body = {"metadata": metadata, "spec": {**GANG, **spec}, "status": status or {}}
    return decode_group(wire.parse_one(body, PodGroup))


def test_a_pod_group_of_the_gang_policy_declares_a_gang() -> None:
    gang_object = group(
        priority=5, priorityClassName="high", disruptionMode={"all": {}}, novel={"x": 1}
    )
    assert (gang_object.key, gang_object.uid, gang_object.generation, gang_object.version) == (
        KEY,
        "u",
        2,
        "7",
    )
    assert (gang_object.min_member, gang_object.priority_value, gang_object.priority_class) == (
        3,
        5,
        "",
    )
    assert (gang_object.is_one_by_one, gang_object.unsupported_fields) == (False, ())
    assert gang_object.needs_equal_members


@pytest.mark.parametrize("mode", [{"single": {}}, {"all": {}}, {"novel": {}}, None])
def test_the_disruption_mode_has_no_effect(mode: object) -> None:
    assert group(disruptionMode=mode) == group()


def test_the_key_of_a_topology_constraint_is_a_required_level() -> None:
    gang_object = group(schedulingConstraints={"topology": [{"key": "rack"}]})
    assert gang_object.same_domain == (DomainRule("rack"),)
    assert gang_object.unsupported_fields == ()
    two = [{"key": "rack"}, {"key": "block"}, {"key": "rack"}]
    gang_object = group(schedulingConstraints={"topology": two})
    assert gang_object.same_domain == (DomainRule("block"), DomainRule("rack"))


def test_one_constraint_without_a_key_makes_the_gang_wait_whatever_else_is_named() -> None:
    gang_object = group(schedulingConstraints={"topology": [{"key": "rack"}, {}]})
    assert gang_object.unsupported_fields == ("spec.schedulingConstraints.topology",)
    assert gang_object.same_domain == (DomainRule("rack"),)


def test_the_pods_of_a_group_of_the_basic_policy_start_one_by_one() -> None:
    assert group(schedulingPolicy={"basic": {}}).is_one_by_one


@pytest.mark.parametrize(("count", "needed"), [(10**9, 10**9), (0, 1), (-3, 1)])
def test_any_number_is_taken(count: int, needed: int) -> None:
    assert group(schedulingPolicy={"gang": {"minCount": count}}).min_member == needed


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (
            {"schedulingConstraints": {"topology": [{"name": "of a later version"}]}},
            "schedulingConstraints.topology",
        ),
        ({"resourceClaims": [{"name": "gpus"}]}, "resourceClaims"),
        ({"parentCompositePodGroupName": "all"}, "parentCompositePodGroupName"),
        ({"schedulingPolicy": {"fancy": {}}}, "schedulingPolicy"),
    ],
    ids=["topology", "claims", "composite", "a policy of a later version"],
)
def test_what_is_not_modelled_is_named(spec: dict[str, Any], fields: str) -> None:
    assert group(**spec).unsupported_fields == (f"spec.{fields}",)
    assert not group(**spec).is_one_by_one


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"schedulingConstraints": {"topology": [{"key": "zone"}]}},
            "schedulingConstraints.topology",
        ),
        ({"resourceClaims": [{"name": "gpus"}]}, "resourceClaims"),
        ({"parentCompositePodGroupName": "all"}, "parentCompositePodGroupName"),
    ],
    ids=["topology", "claims", "composite"],
)
def test_the_pods_of_a_basic_group_wait_for_what_is_not_modelled(
    spec: dict[str, Any], field: str
) -> None:
    """One by one they would start anywhere."""
    gang_object = group(schedulingPolicy={"basic": {}}, **spec)
    assert (gang_object.is_one_by_one, gang_object.unsupported_fields) == (
        False,
        (f"spec.{field}",),
    )


@pytest.mark.parametrize(
    ("labels", "names", "gang", "unsupported"),
    [
        ({}, [NAME], KEY, ()),
        ({}, [], GangKey("ml", "a-0", POD), (OFF,)),
        ({"tutti.dev/pod-group": "own"}, [NAME], GangKey("ml", "own"), ()),
        (
            {"scheduling.x-k8s.io/pod-group": "mpi"},
            [NAME, "podgroups.scheduling.x-k8s.io"],
            KEY,
            (),
        ),
    ],
    ids=["read", "turned off", "Tutti's own first", "scheduler-plugins' last"],
)
def test_a_pod_joins_it_by_its_field_where_the_source_is_read(
    labels: dict[str, str], names: list[str], gang: GangKey, unsupported: tuple[str, ...]
) -> None:
    """Where it is not read, the pod waits, and says which field Tutti does not read."""
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0"}})
    body["metadata"]["labels"] = labels
    body["spec"] |= {"schedulingGroup": {"podGroupName": "sum"}, "preemptionPolicy": "Never"}
    member = decode_member(wire.parse_one(body, wire.Pod), gang_sources.chosen(names))
    assert (member.gang, member.unsupported_fields) == (gang, unsupported)
    assert not member.may_preempt


def line(status: str, reason: str, message: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "PodGroupInitiallyScheduled",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 2,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        **more,
    }


DISRUPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def waits(reason: Reason, message: str) -> GangOutcome:
    return GangOutcome(2, is_whole=False, reason=reason, message=message, seen=3)


WHOLE = GangOutcome(2, is_whole=True)
SHORT = waits(Reason.NOT_ENOUGH_ROOM, "short 1")
ABSENT = waits(Reason.WAITING_FOR_MEMBERS, "2 of 3 members exist")
MIXED = waits(Reason.MEMBERS_DIFFER, "not the same priority")
BEGUN = GangOutcome(2, is_whole=False, seen=3)
UNSEEN = SHORT._replace(seen=0)
SCHEDULED = line("True", "Scheduled", "")
UNSCHEDULABLE = line("False", "Unschedulable", "short 2")


@pytest.mark.parametrize(
    ("outcome", "before", "after"),
    [
        (WHOLE, [], [line("True", "Scheduled", "", lastTransitionTime=NOW)]),
        (WHOLE, [UNSCHEDULABLE], [line("True", "Scheduled", "", lastTransitionTime=NOW)]),
        (WHOLE, [SCHEDULED], [SCHEDULED]),
        (
            WHOLE._replace(generation=3),
            [SCHEDULED],
            [line("True", "Scheduled", "", observedGeneration=3)],
        ),
        (SHORT, [], [line("False", "Unschedulable", "short 1", lastTransitionTime=NOW)]),
        (SHORT, [UNSCHEDULABLE], [line("False", "Unschedulable", "short 1")]),
        (SHORT, [SCHEDULED], [SCHEDULED]),
        (MIXED, [], [line("False", "SchedulerError", MIXED.message, lastTransitionTime=NOW)]),
        (ABSENT, [], []),
        (ABSENT, [UNSCHEDULABLE], [line("False", "Unschedulable", ABSENT.message)]),
        (BEGUN, [UNSCHEDULABLE], [UNSCHEDULABLE]),
        (UNSEEN, [UNSCHEDULABLE], [UNSCHEDULABLE]),
    ],
    ids=[
        "scheduled",
        "scheduled after waiting",
        "scheduled before",
        "a new generation",
        "waits",
        "waits in other words",
        "never back to False",
        "pods differ",
        "nothing while members are missing",
        "members are missing again",
        "it is being bound",
        "its pods are another scheduler's",
    ],
)
def test_the_condition_follows_the_gang(
    outcome: GangOutcome, before: list[Any], after: list[Any]
) -> None:
    observed = {"conditions": [DISRUPTED, *before]} if before else {}
    wanted = status_of(outcome, observed, NOW, keep_sentences=False)
    assert wanted == ({"conditions": [*([DISRUPTED] * bool(before)), *after]} if after else {})


def test_an_object_without_a_generation_gets_none() -> None:
    """The API server would drop a 0, and the next comparison call for another write."""
    wanted = status_of(WHOLE._replace(generation=0), {}, NOW, keep_sentences=False)
    assert "observedGeneration" not in wanted["conditions"][0]


def test_a_sentence_may_stay_that_says_the_same_in_other_words() -> None:
    observed = {"conditions": [UNSCHEDULABLE]}
    assert status_of(SHORT, observed, NOW, keep_sentences=True) == observed


def test_of_a_forged_status_nothing_is_kept_but_conditions() -> None:
    """What members there were is read back from the status of Tutti's own PodGroups."""
    forged = {"members": {"succeeded": 3}, "phase": "Finished", "conditions": [SCHEDULED]}
    assert group(status=forged).status == {"conditions": [SCHEDULED]}
    assert group(status={"members": {"succeeded": 3}}).status == {}
