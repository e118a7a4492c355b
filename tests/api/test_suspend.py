"""A PodGroup that its users suspend, on a real API server."""

from __future__ import annotations

from tests.harness.rig import Rig, members, pod_group
from tutti.gang.refusals import SUSPENDED


def test_a_suspended_gang_starts_once_it_is_not_suspended_any_more() -> None:
    with Rig.start() as rig:
        rig.nodes(1, cpu=2, memory="16Gi")
        suspended = pod_group("a", 2)
        suspended["spec"]["suspend"] = True
        rig.create(suspended, *members("a", 2, cpu=1))
        assert rig.until_waiting("a", "Paused") == SUSPENDED
        rig.until(lambda: rig.pod_says("a-1").get("reason") == "Paused", "pods say so too")
        rig.create(pod_group("b", 1), *members("b", 1, cpu=1))
        rig.until_bound("b", 1)
        assert rig.bound("a") == 0
        rig.plane.kubectl("delete", "pod", "b-0", "-n", "ml")
        patch = '{"spec": {"suspend": false}}'
        rig.plane.kubectl("patch", "ptg", "a", "-n", "ml", "--type=merge", "-p", patch)
        rig.until_bound("a", 2)
