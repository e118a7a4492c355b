"""What is asked of the image without a cluster: versions, engines, and plans by each of them.

Started as the chart starts it: its user and a root that cannot be written to; and no network.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ...harness import rig as rigs
from ...harness.controlplane.nodes import node_manifest
from ..release.dependencies import PYTHON
from . import root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .building import Built

STRATEGIES = ("ilp", "ilp-highs", "bestfit")
GANG = 4
# A program that only an engine can answer: PuLP writes it, the image's engines solve it.
_SOLVE = """
from pulp import LpMaximize, LpProblem, LpVariable
from tutti.strategies.ilp.engine import Cbc, SolverLimits, Highs
for engine in (Cbc(), Highs()):
    program = LpProblem("knapsack", LpMaximize)
    x = [LpVariable(f"x{i}", cat="Binary") for i in range(3)]
    program += 5 * x[0] + 4 * x[1] + 3 * x[2]
    program += 3 * x[0] + 2 * x[1] + 2 * x[2] <= 4
    answer = engine.run(program, SolverLimits(1000, 10.0))
    print(engine.name, answer.outcome, sorted(name for name, n in answer.values.items() if n > 0.5))
"""
_PROGRAM = """\
Maximize
 obj: 5 x0 + 4 x1 + 3 x2
Subject To
 c: 3 x0 + 2 x1 + 2 x2 <= 4
Binaries
 x0 x1 x2
End
"""
_SOLVED = ["CBC proved ['x1', 'x2']", "HiGHS proved ['x1', 'x2']"]
_ELF_MACHINES = {"i64": 62, "arm64": 183}  # PuLP's names of folders; x86-64 and AArch64 in ELF


class WrongError(Exception):
    """The image does not do what it should; one sentence."""


def tried(image: Built) -> Iterator[str]:
    """Try all of it; answers a line for each thing that works.

    Raises:
        WrongError: something does not.
    """
    yield from _versions(image)
    yield from _engines(image)
    yield from _plans(image)


def _started(image: Built, *words: str, files: dict[str, str] | None = None) -> str:
    command = (*image.stage.entrypoint, *words)
    return root.start(image.root, image.stage.user, files or {}, *command)


def _versions(image: Built) -> Iterator[str]:
    said = _started(image, "version")
    for line in said.splitlines():
        yield f"version: {line}"
    if not re.search(r"(?m)^cbc [\d.]+$", said):
        raise WrongError(f"CBC cannot be run:\n{said}")
    if f"\npython {PYTHON}." not in said:
        raise WrongError(f"the lock files are for Python {PYTHON}, and this is another:\n{said}")


def _engines(image: Built) -> Iterator[str]:
    python = image.stage.entrypoint[0]
    said = root.start(image.root, image.stage.user, {}, python, "-c", _SOLVE).splitlines()
    if said != _SOLVED:
        raise WrongError(f"the engines answered {said}, not {_SOLVED}")
    yield "engines: CBC and HiGHS solve an integer program"
    (folder,) = image.root.glob("usr/local/lib/python3*/site-packages/pulp/solverdir/cbc/linux")
    for name, machine in _ELF_MACHINES.items():
        head = (folder / name / "cbc").read_bytes()[:20]
        if head[:4] != b"\x7fELF" or int.from_bytes(head[18:20], "little") != machine:
            raise WrongError(f"pulp/solverdir/cbc/linux/{name}/cbc is not a program for {name}")
    yield f"engines: CBC is there for {' and '.join(_ELF_MACHINES)}"
    yield _solved_by_arm64(folder / "arm64" / "cbc")


def _solved_by_arm64(cbc: Path) -> str:
    """The arm64 engine solves the same program, where this machine has an emulator for it."""
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if qemu is None:
        return "engines: that of arm64 is not run; it would be by qemu-aarch64 (package qemu-user)"
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "program.lp", Path(folder) / "answer.txt"
        asked.write_text(_PROGRAM)
        command = [qemu, str(cbc), str(asked), "-solve", "-solution", str(answered)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        answer = answered.read_text() if answered.exists() else ""
    if not answer.startswith("Optimal - objective value 7.0"):
        raise WrongError(f"CBC for arm64 answered {answer!r}:\n{done.stdout}{done.stderr}")
    version = re.search(r"(?m)^Version: (\S+)", done.stdout)
    return f"engines: that of arm64, {version[1] if version else '?'}, solves it too, by {qemu}"


def _plans(image: Built) -> Iterator[str]:
    cluster = yaml.safe_dump_all(_cluster())
    for strategy in STRATEGIES:
        words = ("plan", "-f", f"{root.BESIDE}/cluster.yaml", "--strategy", strategy)
        said = _started(image, *words, "-o", "json", files={"cluster.yaml": cluster})
        answers = {gang["gang"]: gang["answer"] for gang in json.loads(said)["after"]["gangs"]}
        if sorted(answers.values()) != ["starts", "waits"]:
            raise WrongError(f"{strategy} answered {answers}; one of two gangs has room")
        yield f"plan: one of two gangs starts by {strategy}"


def _cluster() -> Iterator[dict[str, Any]]:
    """Room for one of two gangs."""
    yield node_manifest("node", cpu=GANG, memory="32Gi")
    for name in ("a", "b"):
        yield rigs.pod_group(name, GANG)
        yield from rigs.members(name, GANG, cpu=1)
