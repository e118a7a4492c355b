"""The wheel, installed where nothing of the checkout is in reach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment's bin folder, with the wheel and its dependencies in it."""
    place = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(place), str(ROOT))
    (wheel,) = place.glob("tutti-*.whl")
    _run(sys.executable, "-m", "venv", str(place / "venv"))
    pip = str(place / "venv/bin/pip")
    _run(
        pip,
        "install",
        "--quiet",
        "--no-compile",
        "-c",
        str(ROOT / "constraints.txt"),
        str(wheel),
        cwd=place,
    )
    return place / "venv/bin"


def _run(*command: str, cwd: Path | None = None) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", [["tutti"], ["python", "-m", "tutti"], ["kubectl-tutti"]])
def test_the_installed_wheel_says_its_version(clean: Path, command: Sequence[str]) -> None:
    program, *arguments = command
    said = _run(str(clean / program), *arguments, "version", cwd=clean)
    assert said.startswith("tutti ")


def test_the_installed_wheel_prints_the_crds_of_the_checkout(clean: Path) -> None:
    printed = [each for each in yaml.safe_load_all(_run(str(clean / "tutti"), "crds")) if each]
    kept = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    assert printed == kept


def test_the_installed_wheel_plans_with_both_strategies(clean: Path) -> None:
    """The bundled engine and every import of the planner are there."""
    program = (
        "import numpy as np\n"
        "from tutti.strategies import STRATEGIES\n"
        "from tutti.strategies.problem import Budget, Demand, Part, Problem\n"
        "demands = tuple(Demand(3, (Part(0, 0, 3),), (0,), 0, 3) for _ in range(2))\n"
        "problem = Problem(np.array([[2], [2]]), np.array([[1]]), np.ones((1, 2), bool), demands)\n"
        "for name in ('bestfit', 'ilp'):\n"
        "    print(STRATEGIES[name]().solve(problem, Budget()).outcome)\n"
    )
    said = _run(str(clean / "python"), "-c", program, cwd=clean)
    assert said.split() == ["heuristic", "proved"]
