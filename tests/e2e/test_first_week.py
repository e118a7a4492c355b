"""docs/first-week.md: a shadow with its few rights, gangs a few at a time, a pause and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.harness import operator_process
from tests.harness.rig import Rig, members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

SHADOW = {"TUTTI_MODE": "shadow"}
NOT_SERVED = (
    "/apis/scheduling.k8s.io/v1beta1/podgroups",
    "/apis/kueue.x-k8s.io/v1beta2/topologies",
    "/apis/kai.scheduler/v1alpha1/topologies",
)
CAP = 4


def run_with(rig: Rig, settings: Mapping[str, str]) -> None:
    """Start the operator again with these settings, and with the rights that go with them."""
    rig.operator.stop()
    mode = settings.get("TUTTI_MODE", "active")
    operator_process.grant(rig.plane, f"--set=settings.mode={mode}")
    rig.operator._environment = dict(settings)
    rig.operator.start()


def calls(rig: Rig) -> Iterator[dict[str, Any]]:
    """What the operator has asked of the API server, Lease aside."""
    for said in rig.plane.audited():
        asked = said.get("objectRef", {}).get("resource", "leases")  # or for what the API has
        if said["user"]["username"] == operator_process.USER and asked != "leases":
            yield said


def test_a_shadow_then_a_few_at_a_time_then_a_pause() -> None:
    rig = Rig.start(operator=False)
    with rig:
        rig.nodes(3, cpu=4, memory="16Gi")
        rig.create(pod_group("small", 3), *members("small", 3, cpu=1))
        rig.create(pod_group("large", 6), *members("large", 6, cpu=1))
        rig.create(pod_group("huge", 20), *members("huge", 20, cpu=1), pod("alone", cpu=1))

        run_with(rig, SHADOW)
        assert "3 members would start now on" in rig.until_waiting("small", "WouldStart")
        assert "6 members would start now on" in rig.until_waiting("large", "WouldStart")
        assert "Tutti only watches" in rig.until_waiting("huge", "NotEnoughRoom")
        assert "mode shadow: no gang starts" in rig.operator.tail()
        assert (rig.bound(), rig.reservations()) == (0, [])
        assert not any(rig.pod_says(each["metadata"]["name"]) for each in rig.pods())
        made = list(calls(rig))
        wrote = {
            (each["verb"], each["objectRef"]["resource"], each["objectRef"].get("subresource"))
            for each in made
            if each["verb"] not in ("get", "list", "watch")
        }
        assert wrote == {("patch", "podgroups", "status"), ("create", "events", None)}
        # What this API server does not serve is looked for: Kubernetes' own PodGroups, and the
        # Topologies of other projects.
        missed = [each for each in made if each["responseStatus"]["code"] not in (200, 201)]
        assert {
            (each["verb"], each["requestURI"].partition("?")[0], each["responseStatus"]["code"])
            for each in missed
        } <= {("list", path, 404) for path in NOT_SERVED}, "nothing is denied"

        run_with(rig, {"TUTTI_BINDINGS_PER_CYCLE": str(CAP)})
        rig.until_bound("small", 3)
        rig.until_bound("large", 6)
        rig.until(lambda: rig.bound() == 10, "the pod of its own is bound, too")

        run_with(rig, {"TUTTI_MODE": "paused"})
        rig.create(pod_group("late", 2), *members("late", 2, cpu=1))
        for name in ("late", "huge"):
            assert "TUTTI_MODE=paused" in rig.until_waiting(name, "Paused")
        rig.until(lambda: rig.pod_says("late-0").get("reason") == "Paused", "its pods say it, too")
        assert rig.bound("late") == 0

        run_with(rig, {})
        rig.until_bound("late", 2)
        rig.until_waiting("huge", "NotEnoughRoom")


def test_a_shadow_of_kube_scheduler_sees_what_that_starts_by_half() -> None:
    """It has no pods of its own: those of another scheduler, and the PodGroups that they name."""
    name = "default-scheduler"
    rig = Rig.start(
        "scheduler", operator=False, environment={**SHADOW, "TUTTI_SCHEDULER_NAME": name}
    )
    options = ("--set=settings.mode=shadow", f"--set=settings.schedulerName={name}")
    operator_process.grant(rig.plane, *options)
    with rig:
        rig.operator.start()
        rig.nodes(1, cpu=4, memory="16Gi")
        rig.create(pod_group("train", 6), *members("train", 6, scheduler=name, cpu=1))
        rig.until_bound("train", 4)
        rig.until_says("train", "Reserved", "NotEnoughRoom", "room for none")
        assert rig.group("train")["status"]["phase"] == "Degraded"
