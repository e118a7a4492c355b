"""Processes that end when they should: with their parent, or when told, and no others.

A process is known by pid and start time together, so a pid that the kernel gave to somebody
else in the meantime is never signalled.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    _Start = tuple[Future[int], Callable[[], int]]

_WRAPPER = Path(__file__).with_name("die_with_parent.py")
_POLL_SECONDS = 0.02
_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Process:
    """One process that was started here; its output is in `log`."""

    name: str
    pid: int
    started: int
    log: str

    @property
    def is_alive(self) -> bool:
        """Whether this very process, not another of its pid, still runs."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        return self.started in _started(self.pid)

    def tail(self) -> str:
        """The last lines of its output."""
        return "\n".join(Path(self.log).read_text(errors="replace").splitlines()[-_TAIL_LINES:])

    def send(self, number: signal.Signals) -> None:
        """Signal it if it is still there."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


def spawn(
    name: str,
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str],
    detached: bool,
) -> Process:
    """Start a process in a session of its own, so that Ctrl-C reaches only who stops it."""
    wrapper = [] if detached else [sys.executable, "-I", "-S", str(_WRAPPER), str(os.getpid())]
    arguments = [*wrapper, *command]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    answer: Future[int] = Future()
    start = partial(
        os.posix_spawn,
        arguments[0],
        arguments,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        # Somebody may have started us with these ignored; the children must hear them.
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
    )
    _spawner().put((answer, start))
    pid = answer.result()
    # Zero, never a real start time, if it is gone already: then it is simply not alive.
    return Process(name, pid, next(iter(_started(pid)), 0), str(log))


@cache
def _spawner() -> SimpleQueue[_Start]:
    """The queue of a thread that starts processes, and lives as long as the program.

    The kernel's "parent died" means the thread that forked. The thread is a daemon: a signal may
    come before the program has noted that it runs, and then nobody would ever tell it to end.
    """
    starts: SimpleQueue[_Start] = SimpleQueue()
    threading.Thread(target=_start_all, args=(starts,), daemon=True, name="spawner").start()
    return starts


def _start_all(starts: SimpleQueue[_Start]) -> None:
    while True:
        answer, start = starts.get()
        try:
            answer.set_result(start())
        except Exception as problem:  # noqa: BLE001 - it is for who waits
            answer.set_exception(problem)


def stop(process: Process, *, seconds: float) -> None:
    """End a process: asked first, then forced; returns when it is gone."""
    process.send(signal.SIGTERM)
    if not _gone(process, seconds):
        process.send(signal.SIGKILL)
        _gone(process, seconds)


def _gone(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.is_alive:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _started(pid: int) -> tuple[int, ...]:
    """When the process began, in clock ticks; empty if there is none, or only its zombie.

    A first thread that has ended is a zombie, too, while others still hold memory and ports.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    # The second field, the name, may hold anything; what follows its last parenthesis is plain.
    state, *fields = stat.rpartition(")")[2].split()
    threads, began = int(fields[16]), int(fields[18])
    return () if state in "ZX" and threads <= 1 else (began,)
