"""Which components each case needs, and what it checks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import kubeflow, kubernetes, volcano
from .ground import ground

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .ground import Ground

_MANAGER = "controller-manager"  # makes pods of Jobs, and collects what lost its owner
# Components, and the checks that share them.
CASES: Mapping[str, tuple[tuple[str, ...], tuple[Callable[[Ground], None], ...]]] = {
    "mpi-operator": ((_MANAGER, "mpi-operator"), (kubeflow.mpi_job,)),
    "volcano": ((_MANAGER, "volcano"), (volcano.vcjob,)),
    "workload-with-job": (
        (_MANAGER, "workload-with-job"),
        (kubernetes.job, kubernetes.plain_job),
    ),
}


def play(name: str) -> str:
    """Play a case; answers how long it took, or raises an AssertionError."""
    components, checks = CASES[name]
    began = time.monotonic()
    with ground(components) as stage:
        ready = time.monotonic()
        for check in checks:
            check(stage)
    done = time.monotonic()
    return f"{name}: ready after {ready - began:.1f} s, checked in {done - ready:.1f} s"
