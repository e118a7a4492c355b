"""The optional engines, which have broken one another before."""

import itertools
import subprocess
import sys

import pytest

ENGINES = ("import pulp", "import highspy", "from ortools.graph.python import min_cost_flow")


@pytest.mark.parametrize("order", list(itertools.permutations(ENGINES)), ids=str)
def test_all_engines_load_in_one_process(order: tuple[str, ...]) -> None:
    code = "\n".join((*order, "from ortools.sat.python import cp_model"))
    answer = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert (answer.returncode, answer.stderr) == (0, b"")
