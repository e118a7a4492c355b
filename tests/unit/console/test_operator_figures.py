"""The operator's own figures: what its metrics say, and which right is missing to read them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tutti.console import operator_figures
from tutti.console.observation import WrongQuestion
from tutti.kube import errors
from tutti.model.decisions import Level, Plan
from tutti.reporting.metrics import CycleResult, Metrics, Stage

from ...harness.builders import gang, node, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.kube.calls import Right

PROXY = "/api/v1/namespaces/tutti-system/pods/tutti-0:8080/proxy/metrics"
PODS, OTHER_PODS = "/api/v1/namespaces/tutti-system/pods", "/api/v1/namespaces/ml/pods"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
LEASES = "/apis/coordination.k8s.io/v1/leases"
OWN_LEASES = "/apis/coordination.k8s.io/v1/namespaces/ml/leases"
FORBIDDEN = errors.Refused("it is forbidden.", status=403)
BOUND = {
    "items": [
        {"metadata": {"name": "nobody"}},
        {
            "subjects": [
                {"kind": "User", "name": "jane"},
                {"kind": "ServiceAccount", "name": "tutti", "namespace": "tutti-system"},
            ]
        },
    ]
}


def pod(
    name: str = "tutti-0",
    phase: str = "Running",
    port: str = "probes",
    account: str = "tutti",
) -> dict[str, Any]:
    ports = [{"name": port, "containerPort": 8080}]
    return {
        "metadata": {"name": name, "namespace": "tutti-system"},
        "spec": {
            "serviceAccountName": account,
            "containers": [{"name": "sidecar"}, {"name": "tutti", "ports": ports}],
        },
        "status": {"phase": phase},
    }


def lease(namespace: str, day: int, annotation: str = "tutti.dev/mode") -> dict[str, Any]:
    """A Lease that was created on this day."""
    created = f"2026-01-{day:02}T00:00:00Z"
    metadata = {"name": "tutti", "namespace": namespace, "creationTimestamp": created}
    return {"metadata": {**metadata, "annotations": {annotation: "active"}}}


def metrics() -> str:
    """The text of a leader that has made two plans, of which one is proved."""
    metrics = Metrics()
    metrics.follow(cast("Any", SimpleNamespace(term="1", transitions=0)))
    for _ in range(2):
        with metrics.stage(Stage.PLAN):
            pass
        metrics.ended(CycleResult.DONE)
    metrics.planned(Plan(proved=True))
    unproved = Plan(proved=False, levels=(Level(0, 7, 8),))
    metrics.planned(unproved)
    metrics.saw(snapshot_of(node("n1", cpu=1), gang("a").of(2, cpu=1)), unproved)
    return metrics.text().decode()


class Api:
    """Answers by path; an error is raised."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = {BINDINGS: BOUND, **answers}
        self.selectors: list[str] = []

    async def get(
        self, right: Right, path: str, query: Mapping[str, str] | None = None, *, most: int
    ) -> bytes:
        """See ``Reader.get``."""
        assert right.verb in ("list", "get")
        assert most == operator_figures.MOST_BYTES
        self.selectors += (query or {}).values()
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        if len(body) > most:
            raise errors.Unavailable(f"The answer has more than {most:,} bytes.", status=200)
        return body


async def test_the_leader_says_its_cycles_stages_plans_and_gap() -> None:
    api = Api({PODS: {"items": [pod(), pod("old", "Failed")]}, PROXY: metrics()})
    (replica,) = await operator_figures.read(api, "tutti", "ml")
    assert (replica["pod"], replica["problem"]) == ("tutti-system/tutti-0", "")
    figures = replica["figures"]
    assert (figures["leads"], figures["mode"], figures["gap"]) == (True, "active", 0.125)
    assert figures["cycles"] == {"done": 2, "failed": 0, "deposed": 0}
    assert figures["plans"] == {"proved": 1, "unproved": 1, "broken": 0}
    stages = {stage["stage"]: stage for stage in figures["stages"]}
    assert list(stages) == [stage.value for stage in Stage]
    assert stages["plan"]["times"] == 2
    assert stages["plan"]["within"] == 0.001
    assert stages["bind"]["within"] is None, "it has not happened"
    assert api.selectors == ["app.kubernetes.io/name=tutti"] * 2
    assert len(metrics()) < operator_figures.MOST_BYTES / 20


async def test_without_a_gap_none_is_said() -> None:
    text = metrics().replace("tutti_plan_gap_ratio 0.125", "tutti_plan_gap_ratio NaN")
    assert operator_figures.figures(text)["gap"] is None
    assert operator_figures.figures("nonsense {} x\n")["leads"] is False


def test_times_beyond_every_bucket_have_no_bound() -> None:
    name = 'tutti_cycle_stage_seconds_bucket{le="%s",stage="plan"} %s'
    lines = [
        name % ("60.0", 9),
        name % ("+Inf", 10),
        'tutti_cycle_stage_seconds_count{stage="plan"} 10',
    ]
    (stage,) = operator_figures.figures("\n".join(lines))["stages"]
    assert stage["within"] is None


def test_what_a_pod_invents_is_left_out() -> None:
    """Whoever may list no ClusterRoleBindings may be shown a pod of a tenant."""
    stage = 'stage="plan"'
    text = "\n".join(
        (
            f"tutti_cycle_stage_seconds_count{{{stage}}} 2",
            f"tutti_cycle_stage_seconds_sum{{{stage}}} NaN",
            f"tutti_cycle_stage_seconds_bucket{{{stage}}} 1",
            f'tutti_cycle_stage_seconds_bucket{{{stage},le="often"}} 1',
            f'tutti_cycle_stage_seconds_bucket{{{stage},le="0.5"}} 2',
            'tutti_cycles_total{result="done"} +Inf',
            'tutti_cycles_total{result="failed"} many',
        )
    )
    figures = operator_figures.figures(text)
    assert figures["stages"] == [{"stage": "plan", "times": 2, "seconds": 0.0, "within": 0.5}]
    assert figures["cycles"] == {}
    json.dumps(figures, allow_nan=False)


async def test_the_right_that_is_missing_is_named() -> None:
    api = Api({PODS: {"items": [pod()]}, PROXY: FORBIDDEN})
    (replica,) = await operator_figures.read(api, "tutti", "ml")
    assert replica["right"] == "get pods/proxy in namespace tutti-system"
    assert replica["figures"] is None
    away = Api({PODS: {"items": [pod()]}, PROXY: errors.Unavailable("no answer", status=503)})
    (replica,) = await operator_figures.read(away, "tutti", "ml")
    assert (replica["right"], replica["problem"]) == ("", "no answer")


async def test_a_pod_without_the_port_and_pods_that_cannot_be_listed_are_said() -> None:
    api = Api({PODS: {"items": [pod(port="http")]}})
    (replica,) = await operator_figures.read(api, "tutti", "ml")
    assert replica["problem"] == "The pod has no port named probes."
    for problem in (FORBIDDEN, errors.Unavailable("away")):
        with pytest.raises(WrongQuestion, match="pods cannot be listed"):
            await operator_figures.read(Api({PODS: problem}), "tutti", "ml")


async def test_no_pod_of_a_tenant_is_asked_whatever_its_labels_and_leases_are() -> None:
    """Every other path than those of the operator is unknown here, and asking for it fails."""
    forged = pod("forged", account="default")
    leases = {"items": [lease("ml", 1)]}
    everywhere = {"/api/v1/pods": {"items": [forged, pod()]}, LEASES: leases}
    api = Api({**everywhere, PODS: {"items": [forged, pod()]}, PROXY: metrics()})
    (replica,) = await operator_figures.read(api, "tutti", "ml")
    assert replica["pod"] == "tutti-system/tutti-0"
    nowhere = Api({**everywhere, BINDINGS: {"items": None}})
    assert await operator_figures.read(nowhere, "tutti", "ml") == []


async def test_who_may_not_list_bindings_sees_the_pods_of_the_oldest_lease() -> None:
    """A tenant may write a Lease of this name in a namespace of theirs, but not backdate it."""
    leases = {
        "items": [
            lease("ml", 9),
            lease("other", 1, "a/b"),
            {"metadata": {**lease("plain", 1)["metadata"], "annotations": None}},
            lease("tutti-system", 2),
        ]
    }
    pods = {"items": [pod(account="any")]}
    api = Api({BINDINGS: FORBIDDEN, LEASES: leases, PODS: pods, PROXY: metrics()})
    (replica,) = await operator_figures.read(api, "tutti", "ml")
    assert (replica["pod"], replica["problem"]) == ("tutti-system/tutti-0", "")
    assert "metadata.name=tutti" in api.selectors
    earlier = {"items": [lease("ml", 1), lease("tutti-system", 2)]}
    fooled = Api({BINDINGS: FORBIDDEN, LEASES: earlier, OTHER_PODS: {"items": []}})
    assert await operator_figures.read(fooled, "tutti", "ml") == [], "the limit of this rule"


async def test_who_may_list_leases_of_one_namespace_sees_the_operator_there() -> None:
    few = {BINDINGS: FORBIDDEN, LEASES: FORBIDDEN}
    own = Api({**few, OWN_LEASES: {"items": [lease("tutti-system", 1)]}, PODS: {"items": []}})
    assert await operator_figures.read(own, "tutti", "ml") == []
    assert own.selectors[-1] == "app.kubernetes.io/name=tutti", "its pods are looked for"
    assert await operator_figures.read(Api({**few, OWN_LEASES: {}}), "tutti", "ml") == []


async def test_leases_with_very_long_annotations_are_not_read() -> None:
    long = [lease(f"ml-{n}", n + 1, "a" * 256 * 1024) for n in range(5)]
    leases = {"items": [lease("tutti-system", 1), *long]}
    api = Api({BINDINGS: FORBIDDEN, LEASES: leases})
    with pytest.raises(WrongQuestion, match=r"cannot be said: .* has more than 1,048,576 bytes$"):
        await operator_figures.read(api, "tutti", "ml")


async def test_if_nothing_tells_whose_a_pod_is_the_rights_for_it_are_named() -> None:
    denied = Api({BINDINGS: FORBIDDEN, LEASES: FORBIDDEN, OWN_LEASES: FORBIDDEN})
    with pytest.raises(WrongQuestion) as said:
        await operator_figures.read(denied, "tutti", "ml")
    assert str(said.value) == (
        "Which pods are the operator's cannot be said: it is forbidden; you need the right to "
        "list clusterrolebindings.rbac.authorization.k8s.io, or to list "
        "leases.coordination.k8s.io in the operator's namespace"
    )


@pytest.mark.parametrize("bindings", [FORBIDDEN, errors.Unavailable("it is away.")])
async def test_if_the_server_is_away_no_right_is_said_to_be_missing(
    bindings: errors.ApiError,
) -> None:
    away = Api({BINDINGS: bindings, LEASES: errors.Unavailable("it is away.")})
    with pytest.raises(WrongQuestion, match=r"cannot be said: it is away$"):
        await operator_figures.read(away, "tutti", "ml")


def test_of_any_number_of_stages_each_bucket_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer of the largest size has tens of thousands."""
    lines = [
        f'tutti_cycle_stage_seconds_{what}{{le="1",stage="s{n}"}} 1'
        for n in range(1000)
        for what in ("count", "bucket")
    ]
    sizes: list[int] = []
    monkeypatch.setattr(operator_figures, "_within", lambda buckets, *_: sizes.append(len(buckets)))
    assert len(operator_figures.figures("\n".join(lines))["stages"]) == 1000
    assert sum(sizes) == 1000
