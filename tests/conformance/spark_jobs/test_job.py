"""What counts as an application that ran whole, without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from .job import Done
from .processes import Ran

DRIVER = Ran("pi-driver", "node-3", "127.64.0.1", Path("log"), {"spark-role": "driver"})
WELL = Done("4.3", 3.1412, DRIVER, {f"pi-exec-{n}": (f"node-{n}", 10) for n in range(3)})
BADLY = {
    "no pi": replace(WELL, pi=2.9),
    "too few executors": replace(WELL, executors=dict(list(WELL.executors.items())[:2])),
    "an executor without a task": replace(
        WELL, executors={**WELL.executors, "pi-exec-0": ("node-0", 0), "pi-exec-1": ("node-1", 20)}
    ),
    "a task that nobody finished": replace(
        WELL, executors={**WELL.executors, "pi-exec-0": ("node-0", 9)}
    ),
    "two on one node": replace(WELL, executors={**WELL.executors, "pi-exec-0": ("node-3", 10)}),
}


def test_three_executors_with_their_tasks_are_well() -> None:
    WELL.check()
    assert str(WELL).startswith("Spark 4.3: Pi is roughly 3.1412; driver on node-3; tasks of pi-")


@pytest.mark.parametrize("done", BADLY.values(), ids=BADLY)
def test_what_did_not_run_whole_is_refused(done: Done) -> None:
    with pytest.raises(AssertionError):
        done.check()
