"""Controllers of other projects make the gangs that they made when their sources were written.

All of them are `python -m tests.conformance.controllers`, in `make conformance`.
"""

from __future__ import annotations

import pytest

from ..conformance.controllers.cases import play
from ..conformance.controllers.scenes import act
from ..conformance.controllers.volcano_gangs import enact


@pytest.mark.parametrize("name", ["mpi-operator", "volcano", "workload-with-job"])
def test_a_controller_makes_the_gangs_that_it_made(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = play(name)
    with capsys.disabled():
        print(f"\n{said}")


@pytest.mark.parametrize("name", ["mpi-operator", "workload-with-job"])
def test_their_gangs_start_whole_are_repaired_and_give_all_back(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = act(name)
    with capsys.disabled():
        print(f"\n{said}")


def test_a_vcjob_starts_whole_and_a_second_has_no_pods_before_it_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = enact("volcano-smoke")
    with capsys.disabled():
        print(f"\n{said}")
