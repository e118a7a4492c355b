"""JobSets and their stages, and the pods that name them."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources.jobset import HOLD, KIND, JobSet, decode_set
from tutti.model.cluster import MadeFor, Role
from tutti.model.keys import POD, POD_GROUP, GangKey, Uid

from .. import objects

NAME, PLUGINS = "jobsets.jobset.x-k8s.io", "podgroups.scheduling.x-k8s.io"
KEY = GangKey("ml", "tune", KIND.api)
PREFIX = "jobset.sigs.k8s.io/"
LABELS = {f"{PREFIX}jobset-name": "tune", f"{PREFIX}replicatedjob-name": "node"}
INITIALIZERS = ("dataset", "model")


def jobset(*jobs: dict[str, Any], **spec: Any) -> JobSet:
    metadata = {"name": "tune", "namespace": "ml", "uid": "u", "resourceVersion": "7"}
    body = {"metadata": metadata, "spec": {"replicatedJobs": jobs, **spec}}
    return wire.parse_one(body, JobSet)


def job(name: str, pods: int, *, replicas: int = 1, **after: str) -> dict[str, Any]:
    """A replicated job; the keywords are what it comes after, and the status that these need."""
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"parallelism": pods, "completions": pods}},
        "dependsOn": [{"name": before, "status": status} for before, status in after.items()],
    }


def pod(labels: dict[str, str]) -> wire.Pod:
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0"}})
    body["metadata"]["labels"] = labels
    return wire.parse_one(body, wire.Pod)


def test_a_set_of_jobs_is_a_gang() -> None:
    gang = decode_set(jobset(job("work", 2, replicas=3), job("head", 1)))
    assert (gang.key, gang.uid, gang.version, gang.min_member) == (KEY, "u", "7", 7)
    assert gang.stages == (gang.roles,) == ((Role("head", 1), Role("work", 6)),)


def test_jobs_that_wait_for_the_end_of_others_are_a_stage_of_their_own() -> None:
    initializers = [job(name, 1) for name in INITIALIZERS]
    after: Any = dict.fromkeys(INITIALIZERS, "Complete")
    gang = decode_set(
        jobset(*initializers, job("node", 4, **after), job("end", 1, node="Complete"))
    )
    first = (Role("dataset", 1), Role("model", 1))
    assert gang.stages == (first, (Role("node", 4),), (Role("end", 1),))
    assert (gang.min_member, gang.roles) == (2, first)


@pytest.mark.parametrize(
    "found",
    [
        decode_set(jobset(job("node", 2), job("launcher", 1, node="Ready"))),
        decode_set(
            jobset(
                job("node", 2),
                job("launcher", 1),
                startupPolicy={"startupPolicyOrder": "InOrder"},
            )
        ),
    ],
    ids=["dependsOn", "startupPolicy"],
)
def test_jobs_that_wait_until_others_are_ready_are_extras_of_the_same_stage(found: Any) -> None:
    assert found.stages == ((Role("launcher", 0), Role("node", 2)),)
    assert found.min_member == 2


def test_what_comes_after_a_later_stage_is_in_it() -> None:
    gang_object = decode_set(
        jobset(job("first", 1), job("node", 2, first="Complete"), job("last", 1, node="Ready"))
    )
    assert gang_object.stages == ((Role("first", 1),), (Role("last", 0), Role("node", 2)))


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"completions": 3}, 1),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"parallelism": 0}, 0),
    ],
)
def test_pods_are_counted_as_jobs_make_them(spec: dict[str, Any], pods: int) -> None:
    body = {"name": "work", "template": {"spec": spec}}
    gang_object = decode_set(jobset(body))
    assert (gang_object.roles, gang_object.min_member) == ((Role("work", pods),), max(1, pods))


def test_fields_of_newer_versions_change_nothing() -> None:
    known = job("work", 2)
    later = known | {"groupName": "a", "template": {"spec": {**known["template"]["spec"], "b": 1}}}
    newer = {"failurePolicy": {"rules": [{}]}, "startupPolicy": {"more": {"c": 1}}}
    assert decode_set(jobset(later, **newer)) == decode_set(jobset(known))


def test_odd_sets_are_read_all_the_same() -> None:
    assert decode_set(jobset()).min_member == 1
    loop = decode_set(jobset(job("a", 1, b="Complete"), job("b", 1, a="Complete")))
    assert [len(stage) for stage in loop.stages] == [1, 1]
    many = decode_set(jobset(*(job(f"j{i}", 1) for i in range(101))))
    assert (many.unsupported_fields, many.stages) == (("more than 100 replicatedJobs",), ())
    assert len(many.roles) == 100


@pytest.mark.parametrize(
    ("labels", "gang", "role", "run"),
    [
        (LABELS, KEY, "node", 0),
        ({**LABELS, f"{PREFIX}restart-attempt": "2"}, KEY, "node", 2),
        ({**LABELS, f"{PREFIX}restart-attempt": "-2"}, KEY, "node", 0),
        ({}, GangKey("ml", "a-0", POD), "", 0),
        ({**LABELS, "tutti.dev/pod-group": "own"}, GangKey("ml", "own", POD_GROUP), "node", 0),
        (
            {**LABELS, "tutti.dev/pod-group": "own", f"{PREFIX}restart-attempt": "1"},
            GangKey("ml", "own", POD_GROUP),
            "node",
            1,
        ),
    ],
)
def test_pods_name_the_set_their_role_and_their_run(
    labels: dict[str, str], gang: GangKey, role: str, run: int
) -> None:
    member = decode_member(pod(labels), gang_sources.chosen([NAME]))
    assert (member.gang, member.role, member.run) == (gang, role, run)


@pytest.mark.parametrize(
    ("labels", "uid"),
    [({}, None), ({"jobset-uid": ""}, None), ({"jobset-uid": "u"}, "u")],
)
def test_pods_name_the_uid_of_the_set_that_made_them(
    labels: dict[str, str], uid: str | None
) -> None:
    names = {f"{PREFIX}{name}": value for name, value in labels.items()}
    member = decode_member(pod({**LABELS, **names}), gang_sources.chosen([NAME]))
    made_for = None if uid is None else MadeFor(KIND.api, Uid(uid))
    assert member.made_for == made_for
    in_a_group = pod({**LABELS, **names, "tutti.dev/pod-group": "own"})
    assert decode_member(in_a_group, gang_sources.chosen([NAME])).made_for == made_for


def test_the_pod_group_of_its_train_job_is_no_other_gang() -> None:
    """It counts the pods of all stages."""
    sources = gang_sources.chosen([NAME, PLUGINS])
    labels = {**LABELS, "scheduling.x-k8s.io/pod-group": "tune"}
    member = decode_member(pod(labels), sources)
    assert (member.gang, member.other_gangs) == (KEY, ())


def holding(seconds: str, cpu: str = "2", pods: int = 2, **spec: Any) -> JobSet:
    """An initializer, and nodes after it, for which room is held."""
    later = job("node", pods, load="Complete")
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    later["template"]["spec"]["template"] = {"spec": {"containers": [container], **spec}}
    metadata = {"name": "tune", "namespace": "ml", "uid": "u", "annotations": {HOLD: seconds}}
    body = {"metadata": metadata, "spec": {"replicatedJobs": [job("load", 1), later]}}
    return wire.parse_one(body, JobSet)


def test_a_stage_may_hold_the_room_of_the_stages_after_it() -> None:
    """The last stage holds nothing. Jobs that start one by one are not needed, so not held."""
    gang = decode_set(holding("3600"))
    (load,), (node,) = gang.stages
    assert (load, node.min_member) == (Role("load", 1), 2)
    assert node.template is not None
    assert dict(node.template.shape.requests.amounts)["cpu"] == 2000
    assert (gang.holds_later_stages, gang.absent_seconds, gang.unsupported_fields) == (
        True,
        3600,
        (),
    )
    late = job("side", 1, load="Ready") | {"template": {"spec": {"parallelism": 1}}}
    body = {"annotations": {HOLD: "60"}, "name": "tune", "namespace": "ml", "uid": "u"}
    jobs = [job("load", 1), late, job("end", 1, load="Complete")]
    gang = decode_set(wire.parse_one({"metadata": body, "spec": {"replicatedJobs": jobs}}, JobSet))
    assert gang.holds_later_stages
    assert [role.template is None for stage in gang.stages for role in stage] == [True, True, False]


@pytest.mark.parametrize(("pods", "is_held"), [(5_000, True), (5_001, False), (2**31 - 1, False)])
def test_room_is_held_for_so_many_pods_of_later_stages_and_no_more(
    pods: int, *, is_held: bool
) -> None:
    gang = decode_set(holding("60", pods=pods))
    assert (not gang.unsupported_fields) is is_held
    assert all("at most 5000 are held" in field for field in gang.unsupported_fields)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seconds": "0"}, "'0' is no number from 1 to 86400"),
        ({"seconds": "86401"}, "'86401' is no number"),
        ({"seconds": "1h"}, "'1h' is no number"),
        ({"seconds": "9" * 5_000}, "is no number"),
        ({"seconds": "60", "cpu": "much"}, "the template of replicated job node cannot be read"),
        (
            {"seconds": "60", "schedulingGroup": {"podGroupName": "x"}},
            "the template of replicated job node uses spec.schedulingGroup",
        ),
    ],
)
def test_an_annotation_or_a_template_that_cannot_be_used_is_named(changed: Any, words: str) -> None:
    (field,) = decode_set(holding(**changed)).unsupported_fields
    assert words in field
