"""The wheel, installed where nothing of the checkout is in reach: as krew's plugin does it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from ..packaging.krew import packing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
PIP = {"PIP_CACHE_DIR": str(Path.home() / ".cache/pip"), "PIP_NO_COMPILE": "1"}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of the environment that the plugin's first call makes."""
    place = tmp_path_factory.mktemp("wheel")
    wheel = ("wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), ".")
    _run(sys.executable, "-m", "pip", *wheel, cwd=ROOT, more=PIP)
    (built,) = place.glob("*.whl")
    with tarfile.open(packing.pack(built, place)) as tar:
        tar.extractall(place / "store", filter="data")
    (place / "kubectl-tutti").symlink_to("store/kubectl-tutti")
    cache = {"XDG_CACHE_HOME": str(place / "cache"), "TUTTI_PYTHON": sys.executable}
    said = _run(str(place / "kubectl-tutti"), "version", cwd=place, more={**cache, **PIP})
    assert said.startswith("tutti ")
    (made,) = (place / "cache/tutti").glob("kubectl-*")
    return made / "bin"


def _run(*command: str, cwd: Path | None = None, more: Mapping[str, str] | None = None) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), **(more or {})}
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
    kept = [
        yaml.safe_load(path.read_text())
        for path in sorted((ROOT / "charts" / "tutti" / "crds").glob("*.yaml"))
    ]
    assert printed == kept


def test_the_installed_wheel_plans_with_both_strategies(clean: Path) -> None:
    """The bundled engine and every import of the planner are there."""
    program = (
        "import numpy as np\n"
        "from tutti.strategies import STRATEGIES\n"
        "from tutti.strategies.problem import Budget, Demand, DemandLevel, Part, Problem\n"
        "demands = tuple(Demand(3, (Part(0, 0, 3),), (0,), DemandLevel(0), 3) for _ in range(2))\n"
        "problem = Problem(np.array([[2], [2]]), np.array([[1]]), np.ones((1, 2), bool), demands)\n"
        "for name in ('bestfit', 'ilp'):\n"
        "    print(STRATEGIES[name]().solve(problem, Budget()).outcome)\n"
    )
    said = _run(str(clean / "python"), "-c", program, cwd=clean)
    assert said.split() == ["heuristic", "proved"]
