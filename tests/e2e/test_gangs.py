"""Gangs on kwok nodes: whole or unbound, one after the other, until none is left."""

from __future__ import annotations

import random

from tests.harness.rig import Rig, ending, members, pod, pod_group

GPUS = 320


def test_thirty_gangs_that_do_not_fit_together_all_run_whole_in_the_end() -> None:
    """40 nodes of 8 GPUs, 30 gangs of 2 to 64 members; the judge watches every binding."""
    sizes = random.Random(7).choices(range(2, 65), k=30)
    assert sum(sizes) > 2 * GPUS
    with Rig.start() as rig:
        rig.nodes(40, cpu=64, memory="256Gi", gpus=8)
        gangs = {f"gang-{i:02}": n for i, n in enumerate(sizes)}
        rig.create(*(pod_group(name, n) for name, n in gangs.items()))
        rig.create(
            *(member for name, n in gangs.items() for member in members(name, n, gpu=1, cpu="1"))
        )
        rig.until(lambda: rig.bound() >= GPUS * 0.9, "the cluster fills up")
        waiting = [name for name in gangs if rig.bound(name) == 0]
        assert waiting, "more was asked for than fits, so some gang must wait"
        # Only now may anybody end: those who wait could have started before somebody looked.
        rig.plane.apply(ending(pod, seconds=4) for pod in rig.pods())

        def all_finished() -> bool:
            path = "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups"
            groups = rig.plane.request("GET", path)["items"]
            return all(group.get("status", {}).get("phase") == "Finished" for group in groups)

        rig.until(all_finished, "every gang has finished", seconds=240)
        assert not rig.reservations()


def test_two_gangs_of_sixty_percent_half_start_by_default_and_run_in_turn_with_tutti() -> None:
    """The deadlock that gang scheduling is for, with kube-scheduler and with Tutti."""
    with Rig.start("scheduler") as rig:
        rig.nodes(5, cpu=32, memory="64Gi", gpus=4)
        half_started = _alternately(rig, "default-scheduler")
        assert half_started == {"left": 10, "right": 10}, "kube-scheduler starts both by half"
        rig.plane.request("DELETE", "/api/v1/namespaces/ml/pods?gracePeriodSeconds=0")
        rig.until(lambda: not rig.pods(), "the pods are gone")

        rig.create(pod_group("left", 12), pod_group("right", 12))
        started = _alternately(rig, "tutti")
        assert sorted(started.values()) == [0, 12], "Tutti starts one whole, the other not at all"
        rig.plane.apply(ending(pod, seconds=1) for pod in rig.pods())
        rig.until(lambda: _finished(rig) == 24, "one gang runs after the other")


def _alternately(rig: Rig, scheduler: str) -> dict[str, int]:
    """Create two gangs of 12 in turn, and answer how many of each start at first."""
    sides = ("left", "right")
    for i in range(12):
        for side in sides:
            group = side if scheduler == "tutti" else ""
            about = pod(f"{side}-{i}", group, scheduler=scheduler, gpu=1)
            rig.create(about)
    bound = dict.fromkeys(sides, 0)

    def has_started() -> bool:
        placed = [pod["metadata"]["name"] for pod in rig.pods() if "nodeName" in pod["spec"]]
        bound.update((side, sum(name.startswith(side) for name in placed)) for side in sides)
        return sum(bound.values()) >= 12 and (scheduler == "tutti" or sum(bound.values()) == 20)

    rig.until(has_started, "what can start has started")
    return bound


def _finished(rig: Rig) -> int:
    return sum(pod["status"]["phase"] == "Succeeded" for pod in rig.pods())
