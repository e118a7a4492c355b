"""Members that do not exist yet, on a real control plane: awaited, given up, too large, recovered.

One cluster and one operator for all of these, a namespace and a node of its own for each; the
judge looks at all of it at the end.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness import rig as rigs
from tests.harness.rig import Rig

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count(1)
LONG = 600  # seconds, more than any test takes


class App:
    """A driver and the workers that it declares, on a node that nobody else may use."""

    def __init__(self, rig: Rig, workers: int, *, cpu: int, seconds: int = LONG) -> None:
        self.rig = rig
        self.name = f"late-{next(_numbers)}"
        rig.plane.create_namespace(self.name)
        labels = {"pool": self.name}
        rig.nodes(1, self.name, cpu=cpu, memory="32Gi", labels=labels)
        body = rigs.pod_group("app", namespace=self.name, driver=1, worker=workers)
        template = {"resources": {"cpu": "1"}, "nodeSelector": labels}
        body["spec"]["roles"][1]["template"] = template
        body["spec"]["absentMemberTimeoutSeconds"] = seconds
        rig.create(body, self._pod("driver", "driver", 1))

    def _pod(self, name: str, role: str, cpu: int, group: str = "app") -> dict[str, Any]:
        spec = {"nodeSelector": {"pool": self.name}}
        return rigs.pod(name, group, role=role, namespace=self.name, spec=spec, cpu=cpu)

    def workers(self, *names: str, cpu: int = 1) -> None:
        """Make workers, as the driver would."""
        self.rig.create(*(self._pod(name, "worker", cpu) for name in names))

    def rival(self, n: int) -> None:
        """Make a gang of 1 CPU each that wants the room as well."""
        self.rig.create(rigs.pod_group("rival", n, namespace=self.name))
        self.rig.create(*(self._pod(f"rival-{i}", "", 1, "rival") for i in range(n)))

    def until_bound(self, n: int, group: str = "app") -> None:
        """Wait until so many members have a node."""
        self.rig.until_bound(group, n, self.name)

    def slots(self) -> int:
        """For how many absent members room is held."""
        held = self.rig.reservations(self.name)
        on = [entry for one in held for entry in one["spec"]["placement"]]
        return sum(n for entry in on for n in entry.get("slots", {}).values())

    def until_slots(self, n: int) -> None:
        """Wait until room is held for so many."""
        self.rig.until(lambda: self.slots() == n, f"room is held for {n}")

    def says(self, kind: str) -> str:
        """What a condition says."""
        return str(self.rig.condition("app", kind, self.name)["message"])

    def events(self, reason: str) -> list[str]:
        """What Events of a reason say of it."""
        found = self.rig.events("app", self.name)
        return [str(one["message"]) for one in found if one["reason"] == reason]


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """One cluster for all of these; judged when the last has ended."""
    with Rig.start() as made:
        yield made


def test_members_come_in_three_batches_and_nobody_else_gets_their_room(rig: Rig) -> None:
    """The driver is bound at once; the operator is killed while others are awaited."""
    app = App(rig, 4, cpu=5)
    app.until_bound(1)
    app.until_slots(4)
    app.rival(1)
    rig.until_waiting("rival", "NotEnoughRoom", app.name)
    assert "room on 1 node is reserved for 4 absent members" in app.says("Reserved")
    app.workers("w-0", "w-1")
    app.until_bound(3)
    app.until_slots(2)
    rig.operator.kill()
    app.workers("w-2")
    rig.operator.start()
    app.until_bound(4)
    app.workers("w-3")
    app.until_bound(5)
    rig.until(lambda: not rig.reservations(app.name), "nothing is held any more")
    rig.until(lambda: app.says("Bound") == "5 of 5 members are bound", "it is whole")
    assert rig.bound("rival", app.name) == 0
    app.workers("w-4")  # in case one of them should be lost
    rig.until(lambda: rig.pod_says("w-4", app.name), "it waits")
    rig.delete("pod", "w-1", app.name)
    rig.until(lambda: "nodeName" in rig.pod("w-4", app.name)["spec"], "the lost one is replaced")
    assert rig.bound("rival", app.name) == 0


def test_room_of_members_that_never_come_is_given_back(rig: Rig) -> None:
    """After 5 seconds, and those that come all the same are placed like lost ones."""
    app = App(rig, 2, cpu=3, seconds=5)
    app.until_bound(1)
    app.rival(1)
    app.until_bound(1, "rival")
    said = "2 members of role worker did not come within 5 s: their room is given back"
    rig.until(lambda: app.events("Released") == [said], "it is said")
    app.workers("w-0", "w-1")
    app.until_bound(2)
    rig.delete("pod", "rival-0", app.name)
    app.until_bound(3)


def test_a_member_that_asks_for_more_is_placed_again(rig: Rig) -> None:
    """Its slot is given back and used with what is free beside it."""
    app = App(rig, 2, cpu=4)
    app.until_slots(2)
    app.workers("w-0", cpu=2)
    app.until_bound(2)
    said = "w-0 asks for 2 cpu, and the template of role worker declares 1 cpu: it is placed again"
    rig.until(lambda: app.events("LargerThanDeclared") == [said], "it is said")
    app.until_slots(1)
    app.workers("w-1")
    app.until_bound(3)
    rig.until(lambda: not rig.reservations(app.name), "nothing is held any more")


def test_a_slot_whose_node_goes_is_held_elsewhere_and_a_deleted_group_holds_nothing(
    rig: Rig,
) -> None:
    """The node of the slots is cordoned before anybody comes for them."""
    app = App(rig, 2, cpu=3)
    app.until_bound(1)
    app.until_slots(2)
    (first,) = {pod["spec"]["nodeName"] for pod in rig.pods("app", app.name)}
    rig.nodes(1, f"{app.name}-more", cpu=2, memory="32Gi", labels={"pool": app.name})
    rig.plane.request("PATCH", f"/api/v1/nodes/{first}", {"spec": {"unschedulable": True}})

    def are_elsewhere() -> bool:
        (held,) = rig.reservations(app.name)
        on = [entry["node"] for entry in held["spec"]["placement"] if "slots" in entry]
        return bool(on) and first not in on

    rig.until(are_elsewhere, "the slots are held on the other node")
    rig.delete("podgroup", "app", app.name)
    rig.until(lambda: not rig.reservations(app.name), "nothing is held any more")
