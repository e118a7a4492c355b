"""P8: the closed list of writes."""

import pytest

from ...harness.judge import Promise, Standpoint
from ...harness.judge.audit import entry_of
from ...harness.judge.hands_off import judge_hands
from .writing import KUBE, US, Story, two_nodes, whole_gang


def _faults(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.HANDS_OFF)]


def test_the_writes_of_a_usual_cycle_are_on_the_list() -> None:
    story = whole_gang(two_nodes())
    story.wrote("create", "reservations", "uid-train", api_group="tutti.dev", code=201)
    story.wrote("patch", "podgroups/status", "train", api_group="tutti.dev")
    story.wrote("patch", "pods/status", "train-0")
    story.wrote("create", "events", "train.1", code=201)
    story.wrote("update", "leases", "tutti", api_group="coordination.k8s.io")
    verdict = story.verdict()
    assert not verdict.violations
    assert verdict.writes == 4 + 1 + 5


@pytest.mark.parametrize(
    ("verb", "resource", "api_group"),
    [
        ("update", "pods", ""),
        ("delete", "pods", ""),
        ("delete", "pods/eviction", ""),
        ("patch", "nodes", ""),
        ("patch", "podgroups", "tutti.dev"),
        ("deletecollection", "reservations", "tutti.dev"),
        ("create", "pods/binding", "example.com"),
    ],
)
def test_any_other_write_is_a_violation(verb: str, resource: str, api_group: str) -> None:
    story = two_nodes()
    story.pod("x")
    story.wrote(verb, resource, "x", api_group=api_group)
    (fault,) = _faults(story)
    assert fault.startswith(f"{verb} {resource}")
    assert "not on the closed list" in fault


@pytest.mark.parametrize(
    ("body", "is_fine"),
    [
        ({"status": {"phase": "Inqueue"}, "metadata": {"resourceVersion": "7"}}, True),
        ({"status": {"phase": "Inqueue"}}, False),
        ({"status": {}, "metadata": {"resourceVersion": "7", "labels": {}}}, False),
        ({"status": {}, "metadata": {"resourceVersion": "7"}, "spec": {}}, False),
        ({}, False),
    ],
)
def test_of_volcanos_groups_nothing_but_the_status_is_written(
    body: dict[str, object], *, is_fine: bool
) -> None:
    """And only on condition that the group is as it was seen."""
    entry = entry_of(
        {
            "user": {"username": US},
            "verb": "patch",
            "objectRef": {"resource": "podgroups", "apiGroup": "scheduling.volcano.sh"},
            "responseStatus": {"code": 200},
            "requestObject": body,
        }
    )
    findings = judge_hands((), (entry,), Standpoint(operator_user=US))
    assert (not findings.violations) is is_fine


def test_of_a_queue_the_finalizers_and_the_status_are_written_and_nothing_else() -> None:
    story = two_nodes()
    finalizers = frozenset({"metadata.uid", "metadata.finalizers"})
    story.wrote("patch", "queues", "q", api_group="tutti.dev", fields=finalizers)
    story.wrote("patch", "queues/status", "q", api_group="tutti.dev")
    assert not _faults(story)
    raised = finalizers | {"spec.resources"}
    story.wrote("patch", "queues", "q", api_group="tutti.dev", fields=raised)
    (fault,) = _faults(story)
    assert "writes spec.resources of queues" in fault


def test_of_claims_and_volumes_the_binding_is_written_and_nothing_else() -> None:
    story = two_nodes()
    version = {"metadata.resourceVersion", "metadata.annotations"}
    story.wrote("patch", "persistentvolumeclaims", "c", fields=frozenset(version))
    story.wrote("patch", "persistentvolumes", "v", fields=frozenset({*version, "spec.claimRef"}))
    assert not _faults(story)
    story.wrote("patch", "persistentvolumeclaims", "c", fields=frozenset({"spec.volumeName"}))
    story.wrote("patch", "persistentvolumes", "v", fields=frozenset({"spec.capacity"}))
    story.wrote("delete", "persistentvolumes", "v")
    assert len(_faults(story)) == 3


def test_of_a_claim_the_finalizer_and_the_status_are_written_and_nothing_else() -> None:
    story, group = two_nodes(), "resource.k8s.io"
    same = frozenset({"metadata.uid", "metadata.resourceVersion"})
    finalizers = same | {"metadata.finalizers"}
    story.wrote("patch", "resourceclaims", "c", api_group=group, fields=finalizers)
    status = same | {"status.allocation", "status.reservedFor"}
    story.wrote("patch", "resourceclaims/status", "c", api_group=group, fields=status)
    assert not _faults(story)
    for resource, field in (
        ("resourceclaims", "spec.devices"),
        ("resourceclaims/status", "status.devices"),
    ):
        other = two_nodes()
        other.wrote("patch", resource, "c", api_group=group, fields=same | {field})
        (fault,) = _faults(other)
        assert f"writes {field} of resourceclaims" in fault


def test_a_claim_is_made_for_the_pod_that_owns_it_and_otherwise_not() -> None:
    metadata = {"name", "namespace", "annotations", "ownerReferences"}
    fields = {"apiVersion", "kind", "spec.devices", *(f"metadata.{name}" for name in metadata)}

    def faults(*fields: str) -> list[str]:
        story = two_nodes()
        told = frozenset(fields)
        story.wrote("create", "resourceclaims", "c", api_group="resource.k8s.io", fields=told)
        return _faults(story)

    assert not faults(*fields)
    (fault,) = faults(*fields, "status.allocation")
    assert "writes status.allocation of resourceclaims" in fault
    (fault,) = faults(*(fields - {"metadata.ownerReferences"}))
    assert "makes a claim without metadata.ownerReferences" in fault


def test_others_may_write_what_they_like() -> None:
    story = two_nodes()
    story.wrote("delete", "pods", "x", user=KUBE)
    assert not _faults(story)


@pytest.mark.parametrize(("verb", "resource"), [("create", "binding"), ("patch", "status")])
def test_a_pod_of_another_scheduler_is_not_touched(verb: str, resource: str) -> None:
    story = two_nodes()
    story.pod("theirs", scheduler="default-scheduler")
    story.wrote(verb, f"pods/{resource}", "theirs", uid="uid-theirs")
    assert "names scheduler default-scheduler, not us" in _faults(story)[0]


def test_a_denial_is_a_violation_and_a_refusal_by_admission_is_not() -> None:
    story = two_nodes()
    story.wrote("list", "configmaps", "", code=403, denied=True)
    story.wrote("create", "events", "x", code=403, denied=False)
    (fault,) = _faults(story)
    assert "list configmaps" in fault


def test_the_status_of_kubernetes_own_groups_may_be_written_and_nobody_elses() -> None:
    story = two_nodes()
    story.wrote("patch", "podgroups/status", "x", api_group="scheduling.k8s.io")
    assert _faults(story) == []
    story.wrote("patch", "podgroups", "x", api_group="scheduling.k8s.io")
    story.wrote("patch", "podgroups/status", "x", api_group="scheduling.x-k8s.io")
    assert len(_faults(story)) == 2


HAND_OVER = frozenset(
    {
        "metadata.uid",
        "metadata.resourceVersion",
        "metadata.annotations",
        "spec.affinity",
        "spec.schedulingGates",
    }
)


def _handed_over(story: Story, *gates: str, left: tuple[str, ...] = (), pin: str = "n1") -> None:
    """Tutti hands a gated pod over; these gates are left, and it is pinned to that node."""
    story.gated("x", "train", *gates)
    story.wrote("patch", "pods", "x", uid="uid-x", fields=HAND_OVER)
    story.gated("x", "train", *left, pin=pin)


def test_a_gated_pod_of_kube_scheduler_is_pinned_and_ungated_and_nothing_else() -> None:
    story = two_nodes()
    _handed_over(story, "tutti.dev/gang")
    assert not _faults(story)
    story.wrote("patch", "pods", "x", uid="uid-x", fields=HAND_OVER | {"metadata.labels"})
    assert "changes metadata.labels of a pod otherwise" in _faults(story)[0]


def test_gates_of_others_stay_and_a_gate_goes_with_a_pin_alone() -> None:
    story = two_nodes()
    _handed_over(story, "tutti.dev/gang", "example.com/quota")
    assert "lost the gates example.com/quota with Tutti's" in _faults(story)[0]
    loose = two_nodes()
    _handed_over(loose, "tutti.dev/gang", pin="")
    assert "is pinned to no node" in _faults(loose)[0]


def test_a_pod_of_kube_scheduler_that_never_had_the_gate_is_not_touched() -> None:
    story = two_nodes()
    story.pod("theirs", scheduler="default-scheduler")
    story.wrote("patch", "pods", "theirs", uid="uid-theirs", fields=HAND_OVER)
    assert "names scheduler default-scheduler, not us" in _faults(story)[0]


def test_a_gang_that_is_handed_over_is_judged_like_one_that_is_bound() -> None:
    """Half of it ungated, and the rest reserved by nothing, is a gang that is not whole."""
    story = two_nodes()
    story.group("train", 2)
    for name in ("x", "y"):
        story.gated(name, "train", "tutti.dev/gang")
    story.reserve("train", {"x": "a", "y": "a"})
    story.wrote("patch", "pods", "x", uid="uid-x", fields=HAND_OVER)
    story.gated("x", "train", pin="a")
    assert not story.verdict().violations
    story.release("train")
    assert {finding.promise for finding in story.verdict().violations} == {Promise.WHOLE}
