"""Operators that begin after their imports, which would be nine tenths of a short run's time.

A process that has imported everything and done nothing else forks one operator for each start;
from then on it is like any other. Run as a program, this file is that process.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from tests.harness.operator_process import ROOT, OperatorProcess

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from tests.harness.controlplane import ControlPlane
    from tests.harness.operator_process import Process

READY = "ready"  # what the process says once it has imported everything
_PR_SET_PDEATHSIG = 1


class Origin:
    """The process that operators are forked from; a context manager."""

    def __init__(self, source: Path) -> None:
        """``source`` is the folder with the package: the operator's, or a mutant's."""
        self._source = source

    def __enter__(self) -> Self:
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{self._source}:{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(os.getpid())],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == READY
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def fork(self, kubeconfig: Path, log: Path, environment: Mapping[str, str]) -> Forked:
        """Start an operator."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"kubeconfig": str(kubeconfig), "log": str(log), "environment": {**environment}}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()))


class Forked:
    """A process that is not a child of ours; see `operator_process.Process`.

    Its exit code is not to be had: it is 0 by definition. A thread may wait for its end while
    another asks for it, so its handle stays open as long as this object is there.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._is_over = False
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self._is_over = True
        else:
            weakref.finalize(self, os.close, self._handle)

    def poll(self) -> int | None:
        """See `Process`."""
        return 0 if self._has_ended(0.0) else None

    def wait(self, timeout: float | None = None) -> int:
        """See `Process`."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("tutti run", timeout or 0.0)
        return 0

    def send_signal(self, sig: int, /) -> None:
        """See `Process`."""
        if not self._has_ended(0.0):
            with suppress(ProcessLookupError):  # it has ended since, by a fault in another thread
                os.kill(self.pid, sig)

    def kill(self) -> None:
        """See `Process`."""
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout: float | None) -> bool:
        if not self._is_over:
            self._is_over = bool(select.select([self._handle], [], [], timeout)[0])
        return self._is_over


class ForkedOperator(OperatorProcess):
    """`tutti run`, begun after its imports."""

    def __init__(
        self,
        origin: Origin,
        plane: ControlPlane,
        kubeconfig: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(plane, kubeconfig=kubeconfig, environment=environment)
        self._origin = origin

    def _launch(self, environment: Mapping[str, str]) -> Process:
        return self._origin.fork(self._kubeconfig, self.log, environment)


def _serve() -> None:
    """Fork an operator for each line of input; end with the input."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    print(READY, flush=True)
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            _become_the_operator(**json.loads(line))
        print(pid, flush=True)


def _become_the_operator(kubeconfig: str, log: str, environment: Mapping[str, str]) -> None:
    from tutti.cli import main  # noqa: PLC0415 - as in the operator's own start

    die_with(os.getppid())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.environ.clear()
    os.environ.update(environment)
    main(["run", "--kubeconfig", kubeconfig])


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent dies."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    import pulp  # noqa: F401

    import tutti.operator.main  # noqa: F401

    die_with(int(sys.argv[1]))
    _serve()
