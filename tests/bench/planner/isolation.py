"""Each case in a process of its own, one after the other, none longer than it may take."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from ..e2e import usage
from .child import asked
from .trials import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .trials import Case

ROOT = Path(__file__).parents[3]
_LOOK_EVERY = 0.02  # seconds
_LAST_WORDS = 300  # characters
_CHILDREN = ("tests.bench.planner.child", "tests.planbench.child")  # the latter until 0.1.0
_GUARD = ROOT / "tests" / "harness" / "controlplane" / "die_with_parent.py"
# The same, with a clock that other work on the machine does not move: this process' own seconds,
# and those of engines that have ended.
_BY_CPU = """
import resource, runpy, time
def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime
time.perf_counter = spent
runpy.run_module({child!r}, run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Where clusters and pods come from; what is not given is generated."""

    nodes: str = ""
    pods: str = ""
    seed: int = 1


def alone(case: Case, source: Source, limit: float, tree: Path | None = None) -> Figures:
    """The case's figures, measured in a new process that is ended after ``limit`` seconds.

    Of a ``tree`` it is its own benchmark with its own operator, in seconds of CPU time.
    """
    if tree is None:
        command = [sys.executable, "-m", _CHILDREN[0]]
    else:
        command = [sys.executable, "-c", _BY_CPU.format(child=_child_of(tree))]
    tree = tree or ROOT
    kept = [sys.executable, str(_GUARD), str(os.getpid()), *command]
    with TemporaryFile() as said, TemporaryFile() as complained:
        child = subprocess.Popen(
            kept,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": f"{tree / 'operator'}{os.pathsep}{tree}"},
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=complained,
            start_new_session=True,
        )
        try:
            assert child.stdin is not None
            with suppress(BrokenPipeError), child.stdin as asking:
                asking.write(asked(case, source).encode())
            largest = _watched(child, limit)
        finally:
            _end(child)
        if largest is None:
            return Figures(unfinished=f"did not finish in {limit:g} s")
        said.seek(0)
        complained.seek(0)
        if child.returncode != 0:
            why = complained.read().decode(errors="replace").strip()[-_LAST_WORDS:]
            return Figures(unfinished=f"failed: {why.splitlines()[-1] if why else 'no word'}")
        return replace(Figures(**json.load(said)), engine_megabytes=largest)


def _child_of(tree: Path) -> str:
    """The module that measures a case in this tree."""
    paths = {name: tree.joinpath(*name.split(".")).with_suffix(".py") for name in _CHILDREN}
    return next((name for name, path in paths.items() if path.exists()), _CHILDREN[0])


def _watched(child: subprocess.Popen[bytes], limit: float) -> float | None:
    """The most memory that any other program it started has held; None where it took too long."""
    until, largest = time.monotonic() + limit, 0.0
    while child.poll() is None:
        if time.monotonic() > until:
            return None
        largest = max([largest, *_others(child.pid)])
        time.sleep(_LOOK_EVERY)
    return largest


def _others(pid: int) -> Iterator[float]:
    """The peaks of processes that run another program; a fork still has its parent's memory."""
    with suppress(OSError):
        own = Path(f"/proc/{pid}/exe").readlink()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for started in (thread / "children").read_text().split():
                with suppress(OSError):
                    if Path(f"/proc/{started}/exe").readlink() != own:
                        yield usage.of(int(started)).peak_megabytes


def _end(child: subprocess.Popen[bytes]) -> None:
    """Leave nothing of it behind, neither the process nor what it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
