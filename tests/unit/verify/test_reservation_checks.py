"""Standing promises under rules between pods: what is lost, and what is lost with it."""

from dataclasses import replace

import pytest

from tutti.model.cluster import STUCK_SECONDS, Phase, ReservedVictim, SlotReservation, Snapshot
from tutti.model.inter_pod import InterPodRules
from tutti.model.keys import NodeName
from tutti.planning.compile import standing_reservations
from tutti.verify import reservation_checks

from ...harness.builders import GangBuilder, gang, node, reservation, snapshot_of
from ..planning.neighbours import (
    ZONE,
    apart,
    asking,
    beside,
    even,
    labels,
    near,
    peers,
    resident,
    zones,
)

A, B, C = peers(app="a"), peers(app="b"), peers(app="c")
NODES = zones()


def lost(snapshot: Snapshot) -> list[str]:
    """The pods whose entries are lost; planning, with code of its own, finds the same."""
    found = reservation_checks.lost(snapshot)
    planned = standing_reservations.lost_parts(snapshot)
    assert {uid: frozenset(parts.entries) for uid, parts in found.items()} == {
        uid: parts.entries for uid, parts in planned.items()
    }
    return sorted(entry.pod.name for parts in found.values() for entry in parts.entries)


HELD = asking(gang("h").of(2, cpu=1), apart(B), app="a")
STANDING = reservation(HELD, ("h-0", "z0-0"), ("h-1", "z1-0"))


def test_an_entry_is_lost_when_a_pod_has_come_that_it_may_not_be_with() -> None:
    snapshot = snapshot_of(*NODES, HELD, STANDING)
    assert lost(beside(snapshot)) == []
    assert lost(beside(snapshot, resident("r", "z0-0", app="b"))) == ["h-0"]
    guard = replace(resident("r", "z1-0", app="c"), anti_affinity=apart(A).anti_affinity)
    assert lost(beside(snapshot, guard)) == ["h-1"]


def test_entries_are_judged_with_all_that_is_promised() -> None:
    workers = asking(gang("w").of(1, cpu=1), near(A), app="b")
    held = reservation(workers, ("w-0", "z1-1"))
    assert lost(snapshot_of(*NODES, HELD, STANDING, workers, held)) == []
    assert lost(snapshot_of(*NODES, workers, held)) == ["w-0"]


@pytest.mark.parametrize(
    ("rules", "if_there", "if_to_come"),
    [
        (near(A), [], ["w-0"]),
        (near(B), [], []),
        (near(peers()), ["w-0"], []),  # it is the first pod, or the third
        (even(A), ["w-0"], []),
        (apart(A, on=ZONE), ["w-0"], ["w-0"]),
    ],
)
def test_nothing_is_near_or_balanced_by_pods_that_come_once_victims_have_gone(
    rules: InterPodRules, if_there: list[str], if_to_come: list[str]
) -> None:
    """Anti-affinity counts them: the nodes are theirs."""
    plain = asking(gang("h").of(2, cpu=1), InterPodRules(), app="a")
    held = reservation(plain, ("h-0", "z0-0"), ("h-1", "z0-0"))
    on = "z1-0" if rules == near(peers()) else "z0-1"
    asks = asking(gang("w").of(1, cpu=1), rules, app="b")
    entry = reservation(asks, ("w-0", on), at=1.0)
    snapshot = snapshot_of(*NODES, plain, asks, entry, held)
    assert lost(snapshot) == if_there
    claim = replace(held, victims=())
    assert lost(snapshot_of(*NODES, plain, asks, entry, claim)) == if_to_come


def test_an_entry_that_rules_lose_takes_no_room_from_later_promises() -> None:
    late = gang("z").of(1, cpu=8)
    held = reservation(late, ("z-0", "z0-0"), at=1.0)
    snapshot = beside(
        snapshot_of(*NODES, HELD, STANDING, late, held), resident("r", "z0-1", app="b")
    )
    assert lost(snapshot) == ["z-0"]
    crowded = replace(snapshot, placed_pods=(resident("r", "z0-0", app="b"),))
    assert lost(crowded) == ["h-0"]


# Of a gang that has begun.

FOREIGN = resident("r", "z1-0", app="b")


def test_a_gang_that_has_begun_loses_what_a_rule_forbids_in_the_end_and_nothing_else() -> None:
    begun = HELD.bound_on("z0-0")
    assert lost(beside(snapshot_of(*NODES, begun, STANDING))) == []
    assert lost(beside(snapshot_of(*NODES, begun, STANDING), FOREIGN)) == ["h-1"]


def test_what_is_lost_of_a_gang_that_has_begun_takes_nothing_else_of_it_along() -> None:
    more = asking(gang("h").of(3, cpu=1), near(B), app="b").bound_on("z0-0")
    held = reservation(more, ("h-1", "z0-1"), ("h-2", "gone"))
    lonely = asking(gang("w").of(1, cpu=1), near(B, on=("host",)), app="a")
    leaning = reservation(lonely, ("w-0", "z0-1"))
    assert lost(beside(snapshot_of(*NODES, more, held, lonely, leaning))) == ["h-2"]


def test_what_leans_on_what_a_gang_that_has_begun_loses_is_lost_with_it() -> None:
    worker = asking(gang("w").of(1, cpu=1), near(A), app="c")
    leaning = reservation(worker, ("w-0", "z1-1"))
    begun = snapshot_of(*NODES, HELD.bound_on("z0-0"), STANDING, worker, leaning)
    assert lost(beside(begun)) == []
    assert lost(beside(begun, FOREIGN)) == ["h-1", "w-0"]


def test_whoever_is_bound_though_it_left_its_gang_has_begun_it() -> None:
    moved = HELD.only("h-0", node=NodeName("z0-0")).made.members[0]
    others = HELD.where(lambda m: m)
    rest = replace(others, members=tuple(m for m in others.members if m.uid != moved.uid))
    held = reservation(HELD, ("h-0", "z0-0"), ("h-1", "z1-0"))
    near_to = asking(gang("w").of(1, cpu=1), near(A), app="c")
    leaning = reservation(near_to, ("w-0", "z1-1"))
    snapshot = snapshot_of(*NODES, rest, held, near_to, leaning, strays=[moved])
    assert lost(beside(snapshot)) == []
    gone = replace(held, entries=(*held.entries, replace(held.entries[0], uid=held.uid)))
    snapshot = snapshot_of(*NODES, rest, gone, near_to, leaning, strays=[moved])
    assert len(lost(beside(snapshot))) == 1, (
        "what was reserved for nobody, of a gang that has begun"
    )


# What leans on a promise that is lost.


def leaning_on(driver: GangBuilder, *entries: tuple[str, str]) -> Snapshot:
    """A worker near to a driver, and a watcher near to that worker, all of them promised."""
    worker = asking(gang("w").of(1, cpu=1), near(B), app="c")
    watcher = asking(gang("v").of(1, cpu=1), near(C), app="d")
    held = [reservation(worker, ("w-0", "z0-1")), reservation(watcher, ("v-0", "z0-0"))]
    return snapshot_of(*NODES, driver, worker, watcher, reservation(driver, *entries), *held)


DRIVER = gang("d").of(2, cpu=1).each(labels=labels(app="b"))


def test_what_leans_on_a_promise_that_is_lost_is_lost_with_it() -> None:
    assert lost(leaning_on(DRIVER, ("d-0", "z0-0"), ("d-1", "z1-0"))) == []
    assert lost(leaning_on(DRIVER, ("d-0", "gone"), ("d-1", "z1-0"))) == ["d-0", "v-0", "w-0"]
    assert lost(leaning_on(DRIVER, ("d-0", "z0-0"), ("d-1", "gone"))) == ["d-1", "v-0", "w-0"]


@pytest.mark.parametrize("change", [{"terminating": True}, {"uid": "another"}])
def test_what_leans_on_a_gang_that_is_given_up_is_lost(change: dict[str, object]) -> None:
    snapshot = leaning_on(DRIVER, ("d-0", "z0-0"), ("d-1", "z1-0"))
    gangs = [replace(g, **change) if g.key.name == "d" else g for g in snapshot.gangs]  # type: ignore[arg-type]
    assert lost(replace(snapshot, gangs=tuple(gangs))) == ["v-0", "w-0"]
    strays = [member for g in snapshot.gangs if g.key.name == "d" for member in g.members]
    rest = tuple(g for g in snapshot.gangs if g.key.name != "d")
    assert lost(replace(snapshot, gangs=rest, strays=tuple(strays))) == ["v-0", "w-0"]


# Which of two promises is kept.


def two(*, is_begun: bool = False) -> Snapshot:
    """Two gangs that may not be on one node, and are promised one: the later one has begun."""
    early = asking(gang("x").of(1, cpu=1), apart(B), app="a")
    late = gang("y").of(2, cpu=1).each(labels=labels(app="b"))
    late = late.bound_on("z1-1") if is_begun else late
    held = reservation(early, ("x-0", "z0-0")), reservation(late, ("y-1", "z0-0"), at=1.0)
    return beside(snapshot_of(*NODES, early, late, *held))


def test_of_two_promises_that_exclude_each_other_the_older_one_is_kept() -> None:
    assert lost(two()) == ["y-1"]


def test_who_has_nothing_to_do_with_it_changes_nothing() -> None:
    bystander = gang("s").of(1, cpu=1)
    held = reservation(bystander, ("s-0", "z1-0"))
    snapshot = two()
    gangs, reservations = (*snapshot.gangs, bystander.made), (held, *snapshot.reservations)
    assert lost(replace(snapshot, gangs=gangs, reservations=reservations)) == ["y-1"]


def test_a_gang_that_has_begun_keeps_its_promise_before_older_ones() -> None:
    assert lost(two(is_begun=True)) == ["x-0"]


def test_whoever_is_lost_stands_in_nobodys_way() -> None:
    made = [asking(gang(f"g{i}").of(1, cpu=1), apart(A, on=ZONE), app="a") for i in range(4)]
    zone = [f"z{i // 2}-0" for i in range(4)]
    held = [
        reservation(one, (f"g{i}-0", on), at=float(i))
        for i, (one, on) in enumerate(zip(made, zone, strict=True))
    ]
    found = lost(snapshot_of(*NODES, *made, *held))
    assert "g0-0" not in found
    assert {"g1-0", "g3-0"} <= set(found)


def test_a_slot_is_lost_when_a_pod_has_come_that_its_member_may_not_be_with() -> None:
    declared = gang("d").role("driver", 1, cpu=1).role("worker", 2, 0, cpu=1).declaring(cpu=1)
    driver, worker = declared.roles
    assert worker.template is not None
    shape = replace(worker.template.shape, rules=apart(B))
    template = replace(worker.template, shape=shape)
    waiting = declared.needing(3).bound_on("z2-0")
    waiting = replace(waiting, roles=(driver, replace(worker, template=template)))
    room = [SlotReservation(NodeName(name), "worker", 1) for name in ("z0-0", "z1-0")]
    standing = reservation(waiting, slots=room)
    snapshot = beside(snapshot_of(*NODES, waiting, standing), resident("r", "z0-0", app="b"))
    (parts,) = reservation_checks.lost(snapshot).values()
    assert parts.slots == {(NodeName("z0-0"), "worker"): 1}
    assert standing_reservations.lost_parts(snapshot)[standing.uid].slots == parts.slots


def test_a_slot_is_lost_where_its_node_will_not_do_or_has_no_room() -> None:
    waiting = gang("d").role("driver", 1, cpu=1).role("worker", 6, 0, cpu=4).declaring(cpu=4)
    waiting = waiting.needing(7).bound_on("z2-0")
    places = ("z0-0", 1), ("z0-1", 1), ("gone", 1), ("z1-0", 3)
    room = [SlotReservation(NodeName(name), "worker", n) for name, n in places]
    standing = reservation(waiting, slots=room)
    nodes = [one.cordoned() if one.made.name == "z0-1" else one for one in NODES]
    snapshot = snapshot_of(*nodes, waiting, standing)
    (parts,) = reservation_checks.lost(snapshot).values()
    lost = {node: n for (node, _), n in parts.slots.items()}
    assert lost == {"z0-1": 1, "gone": 1, "z1-0": 1}
    assert standing_reservations.lost_parts(snapshot)[standing.uid].slots == parts.slots


# With claims: what is lost once those that leave have gone.

USE = gang("v").of(2, cpu=2).bound_on("n1", "n1")


def lost_for_good(running: GangBuilder, *, victims: int, room: int, at: float = 0.0) -> bool:
    """Whether a claim of ``room`` cores on a node of 4 is lost, of which so many members end."""
    claimant = gang("c").of(1, cpu=room)
    pods = tuple(sorted(running.made.members[index].uid for index in range(victims)))
    victim = ReservedVictim(running.made.key, running.made.uid, pods, is_whole=True)
    claim = replace(reservation(claimant, ("c-0", "n1")), victims=(victim,))
    later = reservation(gang("w").of(1, cpu=0), ("w-0", "n1"))  # a Reservation without victims
    snapshot = snapshot_of(
        node("n1", cpu=4), running, claimant, claim, gang("w").of(1, cpu=0), later, at=at
    )
    return claimant.made.uid in reservation_checks.lost_for_good(snapshot)


def test_a_claim_is_kept_for_the_room_of_all_its_victims_and_no_more() -> None:
    assert lost_for_good(USE, victims=0, room=1)
    assert not lost_for_good(USE, victims=1, room=2)
    assert lost_for_good(USE, victims=1, room=3)
    assert not lost_for_good(USE, victims=2, room=4)


def test_a_claim_is_kept_for_the_room_of_pods_that_terminate_unless_they_are_stuck() -> None:
    leaving = USE.each(terminating=True, gone_by=30.0)
    assert not lost_for_good(leaving, victims=0, room=4, at=30.0)
    assert lost_for_good(leaving, victims=0, room=4, at=30.0 + STUCK_SECONDS)
    assert lost_for_good(leaving, victims=2, room=4, at=30.0 + STUCK_SECONDS)


def test_a_claim_is_kept_for_the_room_of_pods_whose_pod_group_is_gone() -> None:
    """They terminate, or are its victims."""
    for leaving, victims in ((USE.each(terminating=True), 0), (USE, 2)):
        claimant = gang("c").of(1, cpu=4)
        pods = tuple(sorted(member.uid for member in USE.made.members[:victims]))
        victim = ReservedVictim(USE.key, USE.made.uid, pods, is_whole=True)
        claim = replace(reservation(claimant, ("c-0", "n1")), victims=(victim,))
        room = node("n1", cpu=4).using(cpu=4, pods=2)
        snapshot = snapshot_of(room, claimant, claim, strays=leaving.members)
        assert not reservation_checks.lost_for_good(snapshot)
        assert reservation_checks.lost_for_good(replace(snapshot, strays=()))


def test_a_victim_that_is_over_uses_no_room_that_it_could_leave() -> None:
    half = gang("v").of(2, cpu=2).bound_on("n1", "n1").last(1, phase=Phase.SUCCEEDED)
    full = half.made
    assert not lost_for_good(half, victims=1, room=4)
    assert [member.is_over for member in full.members] == [False, True]
    assert lost_for_good(half, victims=2, room=5)
    assert not lost_for_good(half, victims=2, room=4)
