"""CBC missing, crashing or hanging: best fit answers, strictly by priority, and that is said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..harness.operator_process import OperatorProcess
from ..harness.rig import Rig
from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).with_name("broken_engine.py")
ENGINES = {
    "missing": (None, "ilp failed (CBC could not be run: [Errno 2] No such file or directory"),
    "crashing": ("kill -SEGV $$", "ilp failed (CBC ended with status -11), bestfit answered"),
    "silent": ("exit 0", "ilp failed (CBC ended without a solution file), bestfit answered"),
    "hanging": ("exec sleep 1000", "CBC used up its budget"),
}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster, with a class of pods that come first."""
    with Rig.start(operator=False) as started:
        urgent = {"metadata": {"name": "urgent"}, "value": 1000}
        started.plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent)
        yield started


@pytest.mark.parametrize("name", ENGINES)
def test_without_a_working_engine_best_fit_answers_in_strict_order_of_priority(
    rig: Rig, tmp_path: Path, name: str
) -> None:
    """The urgent gang starts though the others came first; a gang is told what is not proved."""
    (script, why), engine = ENGINES[name], tmp_path / "cbc"
    if script is not None:
        engine.write_text(f"#!/bin/sh\n{script}\n")
        engine.chmod(0o755)
    operator = OperatorProcess(
        rig.plane,
        command=(sys.executable, str(SCRIPT), str(engine)),
        # The clock is the budget of last resort; it ends the wait for the engine that hangs.
        environment={"TUTTI_BUDGET_SECONDS": "1"} if name == "hanging" else {},
    )
    operator.log.unlink(missing_ok=True)
    rig.operator = operator
    operator.start()
    try:
        _look(Place(rig), why)
    finally:
        assert operator.stop() == 0
    assert f"WARNING the plan is not proved to be the best: {why}" in operator.log.read_text()
    assert "Traceback" not in operator.log.read_text()


def _look(place: Place, why: str) -> None:
    urgent: dict[str, object] = {"priorityClassName": "urgent"}
    for name, n in (("first", 6), ("second", 5), ("third", 5), ("urgent", 6)):
        place.group(name, n)
        about = {"nodeSelector": {"pool": place.name}} | (urgent if name == "urgent" else {})
        place.members(name, n, gpu=1, spec=about)
        place.until_waiting(name, "NoNodeFits")
    place.nodes(1, cpu=64, gpus=16)
    place.until_bound("urgent", 6)
    # Second and third together would have been the better choice: this is what CBC is for.
    place.until_bound("first", 6)
    # Four GPUs are left, and each member of this gang has room. That both have none takes a search.
    place.group("unlike", 2)
    for i, gpus in enumerate((3, 2)):
        place.members("unlike", 1, first=i, gpu=gpus, spec={"nodeSelector": {"pool": place.name}})
    said = place.until_waiting("unlike", "BudgetExhausted")
    assert f"; not proved to be the best choice: {why}" in said
    assert place.bound() == 12
    for i in range(2):
        place.delete("pod", f"unlike-{i}")
