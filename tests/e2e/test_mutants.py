"""Operators with one thing wrong, run on a real control plane: the judge notices each of them.

One control plane for all; every operator finds the same five things waiting in a namespace of
its own, and is killed when it has done what it does wrong.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.chaos.mutants import catalogue, plant
from tests.harness import operator_process
from tests.harness.controlplane import ControlPlane
from tests.harness.judge import Promise, assert_clean
from tests.harness.operator_process import OperatorProcess
from tests.harness.rig import QUEUES, Rig, members, pod, pod_group, remove_queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.chaos.mutants import Mutant
    from tests.harness.judge import Verdict

GPUS = 16
KINDS = (
    "/api/v1/namespaces/{}/pods",
    "/apis/tutti.dev/v1alpha1/namespaces/{}/podgroups",
    "/apis/tutti.dev/v1alpha1/namespaces/{}/reservations",
)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Two nodes of eight GPUs, the CRDs, and the operator's rights."""
    with ControlPlane.start(components=("kwok",)) as plane:
        plane.hosts_mutants = True
        operator_process.install(plane)
        yield plane


class Trial:
    """One operator before the judge: its cluster while it runs, the verdict afterwards."""

    def __init__(self, rig: Rig, namespace: str) -> None:
        self.rig = rig
        self.namespace = namespace
        self.verdict: Verdict

    def bound(self, group: str) -> int:
        """How many pods of a group have a node."""
        return self.rig.bound(group, self.namespace)

    def is_bound(self, name: str) -> bool:
        """Whether a pod has a node."""
        return "nodeName" in self.rig.pod(name, self.namespace)["spec"]

    def logged(self, text: str) -> bool:
        """Whether the operator has said this."""
        return text in self.rig.operator.tail(1000)

    def until(self, look: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        self.rig.until(look, what)


@contextmanager
def trial(plane: ControlPlane, namespace: str, path: Path | None = None) -> Iterator[Trial]:
    """Run an operator on the scenario while the witness watches; the judge speaks at the end."""
    environment = {} if path is None else {"PYTHONPATH": str(path)}
    operator = OperatorProcess(plane, environment=environment)
    operator.log = plane.directory / f"{namespace}.log"
    rig = Rig(plane, operator)
    plane.create_namespace(namespace)
    _prepare(rig, namespace)
    trial = Trial(rig, namespace)
    try:
        with rig._witness:
            operator.start()
            yield trial
            operator.kill()
            trial.verdict = rig.verdict()
    finally:
        operator.kill()
        for kind in KINDS:
            plane.request("DELETE", kind.format(namespace) + "?gracePeriodSeconds=0")


def _prepare(rig: Rig, namespace: str) -> None:
    """Let a gang wait that fits, one that lacks a member, one that is too large, and two pods."""
    if not rig.plane.request("GET", "/api/v1/nodes")["items"]:
        rig.nodes(2, cpu=64, memory="64Gi", gpus=GPUS // 2)
    sizes = {"fits": (4, 4), "incomplete": (3, 4), "too-large": (GPUS + 4, GPUS + 4)}
    for name, (there, needed) in sizes.items():
        rig.create(pod_group(name, needed, namespace=namespace))
        rig.create(*members(name, there, namespace=namespace, gpu=1, cpu=1))
    rig.create(
        pod("alone", namespace=namespace, cpu=1),
        pod("foreign", namespace=namespace, cpu=1, scheduler="another"),
    )


class Expected(NamedTuple):
    """A mutant, when it has done it, and what the judge must find then: promise by subject."""

    mutant: Mutant
    has_sinned: Callable[[Trial], object]
    found: dict[Promise, str]


EXPECTED = (
    Expected(
        catalogue.SKIPS_THE_RESERVATION,
        lambda it: it.bound("fits") == 4,
        {Promise.RESERVED_FIRST: "{}/fits: member fits-", Promise.WHOLE: "{}/fits: 1 of 4"},
    ),
    Expected(
        catalogue.IGNORES_CAPACITY,
        lambda it: it.bound("too-large") == GPUS + 4,
        {Promise.CAPACITY: "pod {}/too-large-"},
    ),
    Expected(
        catalogue.BINDS_ONE_MEMBER_EARLY,
        lambda it: it.bound("incomplete") > 0,
        {
            Promise.RESERVED_FIRST: "{}/incomplete: member incomplete-0",
            Promise.WHOLE: "{}/incomplete: 1 of 4",
        },
    ),
    Expected(
        catalogue.STARTS_INCOMPLETE_GANGS,
        lambda it: it.bound("incomplete") > 0,
        {Promise.WHOLE: "{}/incomplete: 1 of 4"},
    ),
    Expected(
        catalogue.LOSES_A_BINDING,
        lambda it: it.bound("fits") == 3 and not it.rig.reservations(it.namespace),
        {Promise.WHOLE: "{}/fits: 3 of 4"},
    ),
    Expected(
        catalogue.BINDS_PODS_OF_OTHERS,
        # The report comes after the answer to every binding, and so after its audit.
        lambda it: it.is_bound("foreign") and it.logged("fits: Bound"),
        {Promise.HANDS_OFF: "create pods/binding {}/foreign"},
    ),
    Expected(
        catalogue.WRITES_INTO_THE_POD_GROUP,
        lambda it: it.logged('cannot patch resource "podgroups"'),
        {Promise.HANDS_OFF: "patch podgroups.tutti.dev {}/"},
    ),
)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda one: str(one.mutant))
def test_the_judge_finds_what_a_mutant_breaks_and_nothing_else(
    plane: ControlPlane, tmp_path: Path, expected: Expected
) -> None:
    path = plant(expected.mutant, tmp_path)
    namespace = str(expected.mutant).lower()
    with trial(plane, namespace, path) as it:
        it.until(lambda: expected.has_sinned(it), f"an operator {expected.mutant.name}")
    found = {finding.promise for finding in it.verdict.violations}
    assert found == set(expected.found), it.verdict.summary()
    for promise, text in expected.found.items():
        sentences = [finding.sentence for finding in it.verdict.of(promise)]
        assert any(text.format(namespace) in sentence for sentence in sentences), sentences


def test_the_same_scenario_is_clean_with_the_operator_as_it_is(plane: ControlPlane) -> None:
    with trial(plane, "unmutated") as it:
        it.until(lambda: it.bound("fits") == 4 and it.is_bound("alone"), "what fits is bound")
        it.rig.until_waiting("incomplete", "WaitingForMembers", it.namespace)
        it.rig.until_waiting("too-large", "NotEnoughRoom", it.namespace)
    assert_clean(it.verdict)
    assert it.verdict.bindings == 5
    assert it.verdict.gangs == 3
    assert it.verdict.writes > 5


def test_a_plan_that_breaks_a_promise_is_not_carried_out_and_called_a_bug(
    plane: ControlPlane, tmp_path: Path
) -> None:
    path = plant(catalogue.PLANS_BEYOND_CAPACITY, tmp_path)
    with trial(plane, "verifies", path) as it:
        it.until(lambda: it.logged("this is a bug"), "the plan is refused")
        it.until(lambda: it.bound("fits") == 4, "the sound part of the plan is carried out")
        assert it.bound("too-large") == 0
    assert_clean(it.verdict)


def test_a_gang_left_half_bound_under_its_reservation_is_told_as_unfinished(
    plane: ControlPlane, tmp_path: Path
) -> None:
    path = plant(catalogue.LEAVES_THE_LAST_MEMBER_WAITING, tmp_path)
    with trial(plane, "unfinished", path) as it:
        it.until(lambda: it.bound("fits") == 3, "all but one are bound")
    assert_clean(it.verdict)
    (left,) = it.verdict.unfinished
    assert "unfinished/fits: 3 of 4 members bound" in left.sentence


def _queue(name: str, **spec: object) -> dict[str, object]:
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"namespaces": {}, **spec},
    }


def test_the_judge_finds_starts_beyond_limits_and_in_held_queues_and_queues_that_go_too_early(
    plane: ControlPlane, tmp_path: Path
) -> None:
    path, queues = QUEUES, ("small", "held", "going")
    with trial(plane, "queues", plant(catalogue.FORGETS_QUEUES, tmp_path)) as it:
        it.rig.create(
            _queue("small", resources=[{"name": "cpu", "limit": 1}]),
            _queue("held", stop="Hold"),
            _queue("going"),
        )
        try:
            for name in queues:
                group = pod_group(name, 2, namespace="queues")
                group["spec"]["queue"] = name
                it.rig.create(group, *members(name, 2, namespace="queues", cpu=1))
            it.until(lambda: all(it.bound(name) == 2 for name in queues), "all are bound")
            plane.request("DELETE", f"{path}/going")
            it.until(
                lambda: (
                    "going"
                    not in {
                        item["metadata"]["name"] for item in plane.request("GET", path)["items"]
                    }
                ),
                "the queue is let go",
            )
        finally:
            it.rig.operator.kill()
            remove_queues(plane.request)
    assert {finding.sentence for finding in it.verdict.violations} == {
        "gang queues/small holds more, and queue small is then charged 2 of 1 cpu",
        "gang queues/held starts, although queue held is stopped",
        "queue going was let go while gangs were charged to it",
    }
