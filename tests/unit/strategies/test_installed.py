"""A strategy of an installed package, end to end: a real dist-info, a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAN = """
from tutti.planning.plan import plan
from tutti.operator.settings import Settings
from tutti.strategies import load
from tutti.strategies.problem import Budget
from tests.harness.builders import gang, node, snapshot_of

chosen = load(Settings.from_environment({"TUTTI_STRATEGY": "alphabetical"}).strategy)
snapshot = snapshot_of(node("n1", cpu=4), gang("a").of(3, cpu=1))
made = plan(snapshot, chosen, load("bestfit"), Budget())
print(chosen.name, made.proved, [(p.gang.name, len(p.assignments)) for p in made.placements])
"""
SOUND = """
from tutti.strategies.best_fit import BestFit

class Alphabetical:
    name = "alphabetical"

    def solve(self, problem, budget):
        return BestFit().solve(problem, budget)
"""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package and its metadata, as an installer leaves them."""
    return _install(tmp_path, SOUND)


def _install(folder: Path, code: str) -> Path:
    (folder / "someones_strategies.py").write_text(code)
    metadata = folder / "someones_strategies-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: someones-strategies\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[tutti.strategies]\nalphabetical = someones_strategies:Alphabetical\n"
    )
    return folder


def _run(installed: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (installed, ROOT / "operator", ROOT)))
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **settings},
        check=False,
        capture_output=True,
        text=True,
    )


def test_a_strategy_of_an_installed_package_plans(installed: Path) -> None:
    answer = _run(installed, "-c", PLAN)
    assert answer.stdout == "alphabetical True [('a', 3)]\n", answer.stderr


def test_its_name_is_among_those_that_settings_list(installed: Path) -> None:
    answer = _run(installed, "-m", "tutti", "settings")
    assert "one of alphabetical, bestfit, firstfit, flow, ilp, ilp-highs, spread" in answer.stdout


def test_an_unknown_name_stops_the_start_with_the_names(installed: Path) -> None:
    answer = _run(installed, "-m", "tutti", "run", TUTTI_STRATEGY="alphabetic")
    assert answer.returncode == 2
    assert answer.stderr == (
        "tutti run: TUTTI_STRATEGY: 'alphabetic' is not one of alphabetical, bestfit, firstfit, "
        "flow, ilp, ilp-highs, spread; did you mean alphabetical?\n"
    )


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("nonsense =", "cannot be made: SyntaxError: invalid syntax (someones_strategies.py"),
        ("import nowhere", "cannot be made: ModuleNotFoundError: No module named 'nowhere'"),
        ("x = 1", "cannot be made: AttributeError: module 'someones_strategies' has no attribute"),
        ("1 / 0", "cannot be made: ZeroDivisionError: division by zero"),
        ("class Alphabetical: pass", "cannot be made: AttributeError: 'Alphabetical' object has"),
    ],
)
def test_a_broken_package_stops_the_start_with_a_sentence(
    code: str, sentence: str, tmp_path: Path
) -> None:
    broken = _install(tmp_path, code)
    answer = _run(broken, "-m", "tutti", "run", TUTTI_STRATEGY="alphabetical")
    assert answer.returncode == 2
    assert answer.stderr.startswith(
        "tutti run: strategy 'alphabetical' of entry point 'someones_strategies:Alphabetical' "
        + sentence
    ), answer.stderr
    assert answer.stderr.count("\n") == 1
