"""Spark applications start whole, beside a scheduler that knows nothing of their executors.

Pods and ConfigMaps are made as Spark makes them; what Spark really asks for is compared in
`tests/sparks`. One cluster for all of these, with the judge's verdict at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..rig import Rig
from .sparkapps import App, Drivers

if TYPE_CHECKING:
    from collections.abc import Iterator

APPS, EXECUTORS, BATCH = 10, 4, 2
NODES, CPUS = 11, 2  # room for 10 drivers and 12 executors
DEADLOCK = 180.0  # seconds


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A cluster with both schedulers."""
    enabled = {"TUTTI_SPARK_ENABLED": "true"}
    with Rig.start(
        *("scheduler", "controller-manager"), values=["spark.enabled=true"], environment=enabled
    ) as started:
        yield started


def submitted(rig: Rig, scheduler: str, apps: int = APPS, nodes: int = NODES) -> Drivers:
    """Applications in a namespace and on nodes of their own."""
    pool = f"pool-{scheduler}"
    rig.plane.create_namespace(pool)
    rig.nodes(nodes, pool, cpu=CPUS, memory="16Gi", labels={"pool": pool})
    drivers = Drivers(rig)
    for number in range(apps):
        drivers.submit(App(f"app-{number}", pool, scheduler, pool, EXECUTORS, BATCH))
    return drivers


def test_ten_applications_that_deadlock_elsewhere_all_finish(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default scheduler lets every driver in, and none of them gets all its executors."""
    elsewhere = submitted(rig, "default-scheduler")
    space = "pool-default-scheduler"
    rig.until(lambda: rig.bound(namespace=space) == APPS, "every driver is bound")
    rig.until(lambda: elsewhere.stuck == APPS, "every driver runs")
    while len(rig.pods(namespace=space)) < APPS * (1 + EXECUTORS):
        finished = elsewhere.turn()
    rig.until(lambda: rig.bound(namespace=space) == NODES * CPUS, "all room is taken")
    here = submitted(rig, "tutti")
    rig.until(lambda: here.turn() == APPS, "all applications have finished", DEADLOCK)
    with capsys.disabled():
        print(
            f"\ndefault scheduler: {finished} of {APPS} finished, {elsewhere.stuck} with a driver "
            f"and no full set of executors; Tutti: {APPS} of {APPS} finished"
        )
    assert elsewhere.stuck >= 1
    assert here.stuck == 0
    rig.until(
        lambda: rig.group("spark-app-0", "pool-tutti")["status"]["phase"] == "Finished",
        "what is finished says so",
    )
