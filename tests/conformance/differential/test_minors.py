"""The cluster and the pod as an older kube-scheduler takes them."""

from __future__ import annotations

from typing import Any

import pytest

from .minors import allows_more, as_older, ends_kube_scheduler

OTHERS = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]}
NAMED = {"matchLabels": {"team": "red"}}
NODE = {"kind": "Node", "metadata": {"name": "n0"}}
REFUSED = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = REFUSED | {"reason": "Deferred"}
READY = {"type": "Ready", "status": "True"}


def asking(selector: dict[str, Any] | None) -> dict[str, Any]:
    term = {"topologyKey": "zone"} | ({} if selector is None else {"namespaceSelector": selector})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"spec": {"affinity": {"podAntiAffinity": required}}}


@pytest.mark.parametrize(
    ("minor", "selector", "taken"),
    [
        ("1.36", OTHERS, {}),
        ("1.36", OTHERS | NAMED, OTHERS | NAMED),
        ("1.36", NAMED, NAMED),
        ("1.36", {}, {}),
        ("1.36", None, None),
        ("1.37", OTHERS, OTHERS),
    ],
)
def test_a_selector_of_what_lacks_a_label_selects_all_namespaces_in_1_36(
    monkeypatch: pytest.MonkeyPatch,
    minor: str,
    selector: dict[str, Any] | None,
    taken: dict[str, Any] | None,
) -> None:
    monkeypatch.setenv("K8S", minor)
    assert as_older([NODE], asking(selector)) == ([NODE], asking(taken))
    assert as_older([], {"spec": {}}) == ([], {"spec": {}})


def container(name: str, cpu: str | None, **more: str) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {} if cpu is None else {"cpu": cpu}}, **more}


def running(*conditions: dict[str, str], **statuses: dict[str, Any]) -> dict[str, Any]:
    """A pod that asks for 2 in one container and 1 in another, in a sidecar and at first."""
    spec = {
        "nodeName": "n0",
        "containers": [container("a", "2"), container("b", "1")],
        "initContainers": [
            container("sidecar", "1", restartPolicy="Always"),
            container("first", "1"),
        ],
    }
    told = [{"name": name, **status} for name, status in statuses.items()]
    status = {"conditions": [READY, *conditions], "containerStatuses": told}
    return {"kind": "Pod", "spec": spec, "status": status}


def counted(pod: dict[str, Any]) -> dict[str, str | None]:
    ((found,), _) = as_older([pod], {"spec": {}})
    assert found["status"] == {"conditions": [READY]}
    return {
        each["name"]: each["resources"]["requests"].get("cpu")
        for each in (*found["spec"]["containers"], *found["spec"]["initContainers"])
    }


HAS = {"resources": {"requests": {"cpu": "500m"}}}
HAD = {"allocatedResources": {"cpu": "3"}}


def test_1_36_counts_a_resize_container_by_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S", "1.36")
    asked: dict[str, str | None] = {"a": "2", "b": "1", "sidecar": "1", "first": "1"}
    assert counted(running()) == asked
    # What a container has counts, and what it is allocated beside it; alone that does not.
    assert counted(running(a=HAS | HAD, b=HAD)) == asked | {"a": "3"}
    assert counted(running(DEFERRED, a=HAS)) == asked
    # An infeasible resize leaves a container's spec out only if its status says what it has.
    assert counted(running(REFUSED, a=HAS, b=HAD)) == asked | {"a": "500m"}
    assert counted(running(REFUSED, a={"resources": {}})) == asked | {"a": None}
    # Of init containers those that stay are resized.
    assert counted(running(REFUSED, sidecar=HAS, first=HAS)) == asked | {"sidecar": "500m"}


def test_what_is_not_placed_or_newer_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = running(REFUSED, a=HAS)
    del waiting["spec"]["nodeName"]
    monkeypatch.setenv("K8S", "1.36")
    assert as_older([waiting], {"spec": {}}) == ([waiting], {"spec": {}})
    monkeypatch.setenv("K8S", "1.37")
    assert as_older([running(REFUSED, a=HAS)], {"spec": {}})[0] == [running(REFUSED, a=HAS)]


def claim(name: str, *requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "kind": "ResourceClaim",
        "metadata": {"namespace": "ml", "name": name},
        "spec": {"devices": {"requests": list(requests), **more}},
    }


ALL = {"allocationMode": "All"}
ONE = {"allocationMode": "ExactCount", "count": 1}
USES = [{"counterSet": "card", "counters": {"cores": {"value": "1"}}}]
NAMES_MINE = {
    "metadata": {"namespace": "ml"},
    "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "mine"}]},
}
ELSEWHERE = NAMES_MINE | {"metadata": {"namespace": "web"}}
SLICE = {"kind": "ResourceSlice", "spec": {"devices": [{"name": "gpu-0"}]}}
WITH_COUNTERS = {
    "kind": "ResourceSlice",
    "spec": {"devices": [{"name": "gpu-0"}, {"name": "gpu-1", "consumesCounters": USES}]},
}
COUNTERS = {"kind": "ResourceSlice", "spec": {"sharedCounters": []}}


@pytest.mark.parametrize(
    ("minor", "device_slice", "requests", "ends"),
    [
        ("1.35", WITH_COUNTERS, [{"name": "r", "exactly": ALL}], True),
        ("1.35", WITH_COUNTERS, [{"name": "q", "exactly": ONE}, {"exactly": ALL}], True),
        ("1.35", WITH_COUNTERS, [{"name": "r", "firstAvailable": [ONE, ALL]}], True),
        ("1.35", WITH_COUNTERS, [{"name": "r", "exactly": ONE}], False),
        ("1.35", WITH_COUNTERS, [], False),
        ("1.35", SLICE, [{"name": "r", "exactly": ALL}], False),
        ("1.35", COUNTERS, [{"name": "r", "exactly": ALL}], False),
        ("1.36", WITH_COUNTERS, [{"name": "r", "exactly": ALL}], False),
    ],
)
def test_1_35_ends_at_a_request_for_all_devices_beside_counters(
    monkeypatch: pytest.MonkeyPatch,
    minor: str,
    device_slice: dict[str, Any],
    requests: list[dict[str, Any]],
    *,
    ends: bool,
) -> None:
    monkeypatch.setenv("K8S", minor)
    objects = [NODE, device_slice, claim("mine", *requests), claim("other", {"exactly": ALL})]
    assert ends_kube_scheduler(objects, NAMES_MINE) is ends
    assert not ends_kube_scheduler(objects, ELSEWHERE)
    assert not ends_kube_scheduler(objects, {"spec": {}})


DISTINCT = {"constraints": [{"distinctAttribute": "example.com/root"}]}
EQUAL = {"constraints": [{"matchAttribute": "example.com/root"}]}


@pytest.mark.parametrize(
    ("minor", "name", "constraints", "more"),
    [
        ("1.35", "mine", DISTINCT, True),
        ("1.35", "mine", EQUAL, False),
        ("1.35", "mine", {}, False),
        ("1.35", "other", DISTINCT, False),
        ("1.36", "mine", DISTINCT, False),
    ],
)
def test_1_35_may_allow_more_nodes_where_attributes_are_to_be_distinct(
    monkeypatch: pytest.MonkeyPatch,
    minor: str,
    name: str,
    constraints: dict[str, Any],
    *,
    more: bool,
) -> None:
    monkeypatch.setenv("K8S", minor)
    objects = [NODE, claim(name, {"exactly": ONE}, **constraints)]
    assert allows_more(objects, NAMES_MINE) is more
