"""Counts that files bring along are bounded: as the CRDs have it, and all pods-to-be together."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti import dump
from tutti.dump import defaults, documents, limits, load
from tutti.gang import slots
from tutti.kube import kinds
from tutti.kube.gang_sources import base, pod_group
from tutti.planning.plan import plan
from tutti.planning.queueing import preemption
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify.preemption import judge

CRDS = Path(__file__).parents[3] / "charts" / "tutti" / "crds"
API = "tutti.dev/v1alpha1"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0"},
    "status": {"capacity": {"cpu": "4"}},
}


def schema(name: str) -> Any:
    crd = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def group(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}


def role(name: str = "u", least: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "minMember": least, "template": {"resources": {"cpu": "1"}}, **more}


def reservation(*placement: dict[str, Any]) -> dict[str, Any]:
    reference = {"name": "g", "uid": "PodGroup/default/g", "generation": 0}
    spec = {
        "schedulerName": "tutti",
        "term": "t",
        "reservedAt": "2026-01-01T00:00:00Z",
        "podGroup": reference,
        "placement": list(placement),
    }
    return {"apiVersion": API, "kind": "Reservation", "metadata": {"name": "r"}, "spec": spec}


def job(name: str, parallelism: int) -> dict[str, Any]:
    labels = {"tutti.dev/pod-group": "g", "tutti.dev/role": "u"}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    template = {
        "metadata": {"labels": labels},
        "spec": {"schedulerName": "tutti", "containers": containers},
    }
    spec = {"parallelism": parallelism, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def read(*objects: dict[str, Any]) -> dump.Objects:
    return dump.read([dump.Text("some.yaml", yaml.safe_dump_all(objects).encode())])


def test_the_limits_are_those_of_the_crds() -> None:
    spec = schema("podgroup")
    roles = spec["roles"]
    sizes = (
        spec["minMember"],
        *(roles["items"]["properties"][f"{m}Member"] for m in ("min", "max")),
    )
    assert {size["maximum"] for size in sizes} == {limits.MOST_MEMBERS}
    assert roles["maxItems"] == limits.MOST_ROLES
    assert spec["scheduleTimeoutSeconds"]["maximum"] == limits.MOST_START_SECONDS
    assert spec["absentMemberTimeoutSeconds"]["maximum"] == limits.MOST_ABSENT_SECONDS
    slot = schema("reservation")["placement"]["items"]["properties"]["slots"]
    assert slot["additionalProperties"]["maximum"] == limits.MOST_SLOTS
    minimum = schema("reservation")["queue"]["properties"]["minimum"]
    assert minimum["maxItems"] == base.MOST_ROLES + 1, "and members without a role"
    victims = schema("reservation")["claim"]["properties"]["victims"]
    assert victims["maxItems"] == preemption.MOST_VICTIMS == judge.MOST_VICTIMS


def beyond(field: str, asked: str, most: str, remedy: str = "lower it") -> str:
    return f"{field}: asks for {asked}, at most {most} are allowed: {remedy}"


LONG = "a number of more than 20 digits"
SPLIT = "lower it, or split the gang"
TOO_MUCH: dict[str, tuple[dict[str, Any], str]] = {
    "members": (
        group(minMember=10**9, roles=[role()]),
        beyond("spec.minMember", "1,000,000,000", "5,000", SPLIT),
    ),
    "digits": (
        group(minMember=int("9" * 4000)),
        beyond("spec.minMember", LONG, "5,000", SPLIT),
    ),
    "members of a role": (
        group(roles=[role(), role("v", 5_000_000)]),
        beyond("spec.roles[1].minMember", "5,000,000", "5,000", SPLIT),
    ),
    "members of a role at most": (
        group(roles=[role(maxMember=5_001)]),
        beyond("spec.roles[0].maxMember", "5,001", "5,000", SPLIT),
    ),
    "roles": (
        group(roles=[role(f"r{i}") for i in range(33)]),
        (
            "spec.roles: there are 33 roles, at most 32 are allowed: let members of equal needs "
            "share a role"
        ),
    ),
    "seconds to start": (
        group(minMember=1, scheduleTimeoutSeconds=10**400),
        beyond("spec.scheduleTimeoutSeconds", LONG, "31,536,000"),
    ),
    "seconds to come": (
        group(minMember=1, absentMemberTimeoutSeconds=86_401),
        beyond("spec.absentMemberTimeoutSeconds", "86,401", "86,400"),
    ),
    "slots": (
        reservation({"node": "n0", "slots": {"u": 2_000_000_000}}),
        beyond("spec.placement[0].slots.u", "2,000,000,000", "5,000"),
    ),
    "slots of many digits": (
        reservation({"node": "n0"}, {"node": "n0", "slots": {"u": "1" * 400}}),
        beyond("spec.placement[1].slots.u", LONG, "5,000"),
    ),
    "slots together": (
        reservation(*({"node": f"n{i}", "slots": {"u": 5_000}} for i in range(33))),
        beyond(
            "spec.placement: its slots together",
            "165,000",
            "160,000",
            "no gang has so many members, lower them",
        ),
    ),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_asks_for_more_than_is_allowed_is_refused_in_a_sentence(name: str) -> None:
    wrong, said = TOO_MUCH[name]
    with pytest.raises(dump.BadFile) as refused:
        read(NODE, group(roles=[role()]), wrong)
    assert str(refused.value).endswith(f"): {said}")


def test_what_the_crds_allow_is_read() -> None:
    objects = read(NODE, group(minMember=5_000, roles=[role(least=5_000, maxMember=5_000)]))
    assert objects.of(pod_group.KIND)[0].min_member == limits.MOST_MEMBERS


def test_all_workloads_together_make_no_more_pods_than_one_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(defaults, "MOST_PODS", 10)
    assert len(read(job("a", 6), job("b", 4)).members) == 10
    with pytest.raises(dump.BadFile) as refused:
        read(job("a", 6), job("b", 5))
    assert str(refused.value) == (
        "some.yaml, document 2 (Job b): asks for 5 pods, and workloads before it for 6; together "
        "at most 10 are allowed: lower some, or plan them apart"
    )


def test_documents_without_number_are_refused() -> None:
    content = b"---\n" * (documents.DOCUMENTS_LIMIT + 1)
    with pytest.raises(dump.BadFile, match="has more than 100,000 documents: leave out empty ones"):
        dump.read([dump.Text("some.yaml", content)])


def test_yaml_that_would_take_gigabytes_is_refused_and_the_same_as_json_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "YAML_LIMIT", 50)
    with pytest.raises(dump.BadFile, match="million characters of YAML, at most"):
        read(NODE)
    assert dump.read([dump.Text("some.json", str(NODE).replace("'", '"').encode())]).of(kinds.NODE)


COUNTS = st.sampled_from([0, 1, 3, 4_999, 5_000, 5_001, 10**6, 10**9, 10**30, -1])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(st.data())
def test_whatever_counts_a_file_says_it_is_refused_or_planned_with_few_objects(
    data: st.DataObject,
) -> None:
    def count() -> int:
        return data.draw(COUNTS)

    objects = [
        NODE,
        group(minMember=count(), roles=[role(least=count(), maxMember=count())]),
        reservation({"node": "n0", "slots": {"u": count()}}),
        job("j", data.draw(st.sampled_from([0, 1, 3, 10**6]))),
    ]
    chosen = data.draw(st.lists(st.sampled_from(objects), min_size=1, unique_by=id))
    try:
        found = read(*chosen)
    except dump.BadFile:
        return
    seen = load.snapshot_of(found)
    assert len(slots.placeholders_of_snapshot(seen)) <= limits.MOST_SLOTS_IN_ALL
    plan(seen, BestFit(), BestFit(), Budget())
