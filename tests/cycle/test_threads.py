"""What grows with the cluster is worked out beside the event loop, which goes on turning."""

import threading
from types import ModuleType
from typing import Any

import pytest

from tutti.commit import progress
from tutti.model.cluster import Snapshot
from tutti.planning import plan
from tutti.verify import plan_checks

from ..harness.builders import gang, node, single
from ..harness.fakes import Clock, FakeCluster, Life
from . import scenarios


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (plan, "plan"),
        (plan_checks, "violations"),
        (plan_checks, "upheld"),
        (progress, "next_steps"),
    ],
)
async def test_planning_and_looking_at_reservations_keep_no_loop_busy(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    threads = []
    original = getattr(module, name)

    def watched(snapshot: Snapshot, *others: Any, **keywords: Any) -> Any:
        if name != "next_steps" or snapshot.reservations:
            threads.append(threading.current_thread())
        return original(snapshot, *others, **keywords)

    monkeypatch.setattr(module, name, watched)
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4), gang("a").of(3, cpu=1), single("s", cpu=1))
    await Life(cluster, Clock()).settle()
    scenarios.assert_promises(cluster)
    assert threads
    assert threading.main_thread() not in threads
