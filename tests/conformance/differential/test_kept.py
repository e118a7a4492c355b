"""What once disagreed with kube-scheduler agrees for good; and what a disagreement is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .comparing import Case, differs
from .controls import CONTROLS
from .kept import keep, kept
from .oracle import Answer
from .ours import Ours, Reading
from .scenes import scene
from .telling import sentences

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in kept()])
def test_what_once_disagreed_agrees(case: Case) -> None:
    ours = Reading(case.objects).answer(case.pod)
    assert not ours.unmodelled
    assert not differs(case, ours), "\n".join(sentences(case, ours))


def _case(answer: Answer | None, **spec: Any) -> Case:
    about = {"namespace": "red", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    pod = {
        "metadata": {"name": "one", **about},
        "spec": {"schedulerName": "differential", "containers": [], **spec},
        "status": {},
    }
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {"rack": rack}},
            "spec": {},
            "status": {
                "allocatable": {"cpu": "4", "pods": "3"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name, rack in (("n0", "r1"), ("n1", "r2"))
    ]
    return Case("one", ("node selector",), nodes, pod, answer)


def test_the_same_nodes_agree_and_others_do_not() -> None:
    case = _case(Answer(frozenset({"n0"})), nodeSelector={"rack": "r1"})
    assert Reading(case.objects).answer(case.pod) == Ours(frozenset({"n0"}))
    assert not differs(case, Ours(frozenset({"n0"})))
    assert differs(case, Ours(frozenset({"n0", "n1"})))
    assert differs(case, Ours(frozenset()))


def test_nodes_that_are_a_bound_may_be_fewer_and_not_more() -> None:
    case = _case(Answer(frozenset({"n0", "n1"})))
    assert not differs(case, Ours(frozenset({"n0"}), is_bound=True))
    assert differs(case, Ours(frozenset({"n0", "n2"}), is_bound=True))


def test_what_is_not_modelled_is_no_disagreement_and_what_raises_is_one() -> None:
    case = _case(Answer(frozenset({"n0"})))
    assert not differs(case, Ours(frozenset(), unmodelled=("spec.some",)))
    assert differs(case, Ours(frozenset({"n0"}), broken="ValueError: no"))


def test_a_gated_pod_is_one_for_both() -> None:
    case = _case(None, schedulingGates=[{"name": "tests/wait"}])
    ours = Reading(case.objects).answer(case.pod)
    assert ours.gated
    assert not differs(case, ours)
    assert differs(case, Ours(frozenset({"n0"})))
    assert differs(_case(Answer(frozenset())), ours)


def test_a_case_comes_back_from_its_file(tmp_path: Path) -> None:
    case = _case(Answer(frozenset({"n0"})), nodeSelector={"rack": "r1"})
    keep(case, tmp_path)
    (found,) = kept(tmp_path)
    assert (found.name, found.rows, found.answer) == (case.name, case.rows, case.answer)
    assert Reading(found.objects).answer(found.pod) == Ours(frozenset({"n0"}))


def test_a_wrong_rule_is_noticed_where_it_matters_and_only_there() -> None:
    (ignored,) = (each for each in CONTROLS["node selector"] if each.name == "nodeSelector ignored")
    telling = _case(Answer(frozenset({"n0"})), nodeSelector={"rack": "r1"})
    silent = _case(Answer(frozenset({"n0", "n1"})))
    assert ignored.noticed([silent]) is None
    assert ignored.noticed([silent, telling]) is telling


def test_a_number_stands_for_one_scene() -> None:
    assert scene(3, 4) == scene(3, 4)
    assert scene(3, 4).probes[:2] == scene(3, 2).probes[:2]
    assert scene(3, 4) != scene(4, 4)


def test_nobody_whose_port_a_neighbour_has_as_well_has_ended() -> None:
    """In scene 88 kube-scheduler took a port for free of which one of two users had ended."""
    ports = [
        (pod["spec"]["nodeName"], port["protocol"], port["hostPort"], pod["status"]["phase"])
        for pod in scene(88, 0).residents
        for container in pod["spec"]["containers"]
        for port in container.get("ports", ())
    ]
    assert ("n1", "TCP", 81, "Succeeded") not in ports
    assert ports.count(("n1", "TCP", 81, "Running")) == 2


def test_a_disagreement_names_the_nodes_on_either_side() -> None:
    case = _case(Answer(frozenset({"n0"}), "", "0/2 nodes"))
    told = "\n".join(sentences(case, Ours(frozenset({"n1"}))))
    assert "kube-scheduler only: n0\n" in told
    assert "Tutti only:          n1\n" in told
    assert "kube-scheduler says: 0/2 nodes" in told
