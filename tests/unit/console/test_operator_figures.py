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
PODS, OWN_PODS = "/api/v1/pods", "/api/v1/namespaces/ml/pods"
FORBIDDEN = errors.Refused("it is forbidden", status=403)


def pod(name: str = "tutti-0", phase: str = "Running", port: str = "probes") -> dict[str, Any]:
    ports = [{"name": port, "containerPort": 8080}]
    return {
        "metadata": {"name": name, "namespace": "tutti-system"},
        "spec": {"containers": [{"name": "sidecar"}, {"name": "tutti", "ports": ports}]},
        "status": {"phase": phase},
    }


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
        self.answers = answers
        self.selectors: list[str] = []

    async def get(self, right: Right, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """See ``Reader.get``."""
        assert right.verb in ("list", "get")
        self.selectors += (query or {}).values()
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()


async def test_the_leader_says_its_cycles_stages_plans_and_gap() -> None:
    api = Api({PODS: {"items": [pod(), pod("old", "Failed")]}, PROXY: metrics()})
    (replica,) = await operator_figures.read(api, "ml")
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
    assert api.selectors == ["app.kubernetes.io/name=tutti"]


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
    """Any pod may have the labels of the operator."""
    stage = 'stage="plan"'
    text = "\n".join(
        (
            f"tutti_cycle_stage_seconds_count{{{stage}}} 2",
            f"tutti_cycle_stage_seconds_sum{{{stage}}} NaN",
            f"tutti_cycle_stage_seconds_bucket{{{stage}}} 1",
            f'tutti_cycle_stage_seconds_bucket{{{stage},le="often"}} 1',
            f'tutti_cycle_stage_seconds_bucket{{{stage},le="0.5"}} 2',
            'tutti_cycles_total{result="done"} +Inf',
        )
    )
    figures = operator_figures.figures(text)
    assert figures["stages"] == [{"stage": "plan", "times": 2, "seconds": 0.0, "within": 0.5}]
    assert figures["cycles"] == {}
    json.dumps(figures, allow_nan=False)


async def test_the_right_that_is_missing_is_named() -> None:
    api = Api({PODS: {"items": [pod()]}, PROXY: FORBIDDEN})
    (replica,) = await operator_figures.read(api, "ml")
    assert replica["right"] == "get pods/proxy in namespace tutti-system"
    assert replica["figures"] is None
    away = Api({PODS: {"items": [pod()]}, PROXY: errors.Unavailable("no answer", status=503)})
    (replica,) = await operator_figures.read(away, "ml")
    assert (replica["right"], replica["problem"]) == ("", "no answer")


async def test_who_may_list_pods_of_one_namespace_sees_those() -> None:
    api = Api({PODS: FORBIDDEN, OWN_PODS: {"items": [pod(port="http")]}})
    (replica,) = await operator_figures.read(api, "ml")
    assert replica["problem"] == "The pod has no port named probes."
    for answers in ({PODS: FORBIDDEN, OWN_PODS: FORBIDDEN}, {PODS: errors.Unavailable("away")}):
        with pytest.raises(WrongQuestion, match="pods cannot be listed"):
            await operator_figures.read(Api(answers), "ml")
