"""A verdict within limits of time and memory: what a file makes of the planner is judged, too."""

from __future__ import annotations

import multiprocessing
import resource
from typing import TYPE_CHECKING

from . import cases
from .judge import Verdict

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SECONDS = 20  # for two plans, a picture and the explanations
BYTES = 2**30


def judged(text: str, seconds: float = SECONDS) -> Verdict:
    """Judge a file in a process of its own; ``work`` where it does not come to an end."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(target=_judge, args=(text, theirs))
    child.start()
    theirs.close()
    try:
        if ours.poll(seconds):
            verdict = ours.recv()
            if isinstance(verdict, Verdict):
                return verdict
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
    late = Verdict()
    late.add("work", f"no answer within {seconds:.0f} s and {BYTES / 2**30:.0f} GiB")
    return late


def _judge(text: str, answer: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    answer.send(cases.judged_file(text))
