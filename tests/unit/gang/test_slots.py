"""Members that do not exist yet: what is reserved for them, who takes it, what is given back."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tutti.commit.progress import Await, Bind, Finish, Release, Trim, next_steps
from tutti.gang import demand, finding_text, slots
from tutti.model.cluster import Phase, Reservation, SlotReservation
from tutti.model.decisions import Placement, Plan, Reason
from tutti.model.inter_pod import InterPodRules, TopologySpread
from tutti.model.keys import NodeName, Uid
from tutti.planning.plan import plan
from tutti.reporting import status
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify import plan_checks

from ...harness import builders
from ...harness.builders import GangBuilder, Part, gang, node, reservation, snapshot_of

TERM = "term"
N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
BEST_FIT = BestFit()


def driven(workers: int = 0, *, least: int = 3, cpu: float = 1) -> GangBuilder:
    """A driver, and so many of its workers of 1 CPU that are declared."""
    base = gang("a").role("driver", 1, cpu=1).role("worker", least, workers, cpu=cpu)
    return base.declaring(cpu=1).needing(1 + least)


def planned(*parts: Part, at: float = 0.0, bereft: Sequence[GangBuilder] = ()) -> Plan:
    """The plan, which breaks no promise."""
    seen = replace(
        snapshot_of(*parts, at=at), lost_reservations=frozenset(one.made.uid for one in bereft)
    )
    made = plan(seen, BEST_FIT, BEST_FIT, Budget())
    assert plan_checks.violations(seen, made) == ()
    assert plan_checks.upheld(seen, made.placements) == made.placements
    return made


def only(plan: Plan) -> Placement:
    (placement,) = plan.placements
    return placement


def names(placement: Placement) -> dict[str, str]:
    return {assignment.pod.name: assignment.node for assignment in placement.assignments}


def held(of: GangBuilder, *entries: tuple[str, str], **where: int) -> Reservation:
    """A standing Reservation with slots of workers, so many by node."""
    room = [SlotReservation(NodeName(name), "worker", n) for name, n in where.items()]
    return reservation(of, *entries, slots=room)


def test_room_is_reserved_for_those_that_do_not_exist_yet() -> None:
    placement = only(planned(node("n1", cpu=2), node("n2", cpu=2), driven()))
    assert len(placement.assignments) == 1
    assert sum(slot.count for slot in placement.slots) == 3
    assert {slot.role for slot in placement.slots} == {"worker"}


def test_a_gang_that_does_not_fit_with_its_absent_members_waits_whole() -> None:
    plan = planned(node("n1", cpu=3), driven())
    assert plan.placements == ()
    (rejection,) = plan.rejections
    assert rejection.reason is Reason.NOT_ENOUGH_ROOM
    assert finding_text.sentence(rejection).startswith("4 members need 1 cpu each")


def test_absent_members_that_no_node_could_hold_are_named_by_their_role() -> None:
    picky = driven()
    template = picky.roles[1].template
    assert template is not None
    choosy = replace(template, shape=replace(template.shape, node_selector=(("pool", "x"),)))
    picky = replace(picky, roles=(picky.roles[0], replace(picky.roles[1], template=choosy)))
    (rejection,) = planned(node("n1", cpu=9), picky).rejections
    assert rejection.reason is Reason.NO_NODE_FITS
    assert "an absent member of role worker" in finding_text.sentence(rejection)


def test_nothing_is_reserved_while_nobody_exists() -> None:
    nobody = replace(driven(), members=())
    (rejection,) = planned(node("n1", cpu=9), nobody).rejections
    assert rejection.reason is Reason.WAITING_FOR_MEMBERS
    assert finding_text.sentence(rejection).startswith(
        "role driver: 0 of 1 exist; role worker: 0 of 3 exist"
    )


def test_a_role_without_a_template_must_exist() -> None:
    worker = driven(1).where(lambda m: m)
    alone = replace(worker, members=tuple(m for m in worker.members if m.role == "worker"))
    (rejection,) = planned(node("n1", cpu=9), alone).rejections
    assert finding_text.sentence(rejection).startswith("role driver: 0 of 1 exist")
    assert "worker" not in finding_text.sentence(rejection)


def test_what_the_gang_needs_beyond_its_roles_comes_from_roles_that_may_have_more() -> None:
    more = driven(least=2).needing(6)
    assert slots.absent(more.made, {"driver": 1}) == {"worker": 5}
    assert slots.absent(more.at_most(4).made, {"driver": 1}) == {"worker": 4}
    assert slots.absent(more.at_most(2).made, {"driver": 1}) == {"worker": 2}
    assert slots.absent(more.made, {"driver": 1, "worker": 5}) == {}


def test_those_that_came_take_their_slots_and_the_others_are_still_awaited() -> None:
    came = driven(2).bound_on("n1")
    placement = only(planned(node("n1", cpu=2), node("n2", cpu=2), came, held(came, n1=1, n2=2)))
    assert names(placement) == {"a-1": "n1", "a-2": "n2"}
    assert placement.slots == (SlotReservation(N2, "worker", 1),)
    assert placement.remark == ""


def test_nobody_else_gets_the_room_that_is_held() -> None:
    came = driven().bound_on("n1")
    other = gang("b").of(1, cpu=1).priority(9)
    plan = planned(node("n1", cpu=2), node("n2", cpu=2), came, other, held(came, n1=1, n2=2))
    assert plan.placements == ()
    assert plan.next_change_at == 600.0


def test_one_that_asks_for_more_is_placed_anew_and_that_is_said() -> None:
    came = driven(1, cpu=2).bound_on("n1")
    nodes = node("n1", cpu=3), node("n2", cpu=2)
    placement = only(planned(*nodes, came, held(came, n1=2, n2=1)))
    assert names(placement) == {"a-1": "n2"}
    assert placement.slots == (SlotReservation(N1, "worker", 2),)
    assert placement.remark == (
        "a-1 asks for 2 cpu, and the template of role worker declares 1 cpu: it is placed again"
    )


def test_two_that_ask_for_more_are_counted() -> None:
    came = driven(2, cpu=2).bound_on("n1")
    placement = only(planned(node("n1", cpu=9), came, held(came, n1=3)))
    assert placement.slots == (SlotReservation(N1, "worker", 1),)
    assert placement.remark.endswith("it is placed again, and 1 more member likewise")


def test_one_that_asks_for_more_and_finds_no_room_gives_its_slot_back() -> None:
    came = driven(1, cpu=2).bound_on("n1")
    plan = planned(node("n1", cpu=4), came, held(came, n1=3))
    assert only(plan).slots == (SlotReservation(N1, "worker", 2),)
    assert only(plan).assignments == ()
    (rejection,) = plan.rejections
    assert finding_text.sentence(rejection).startswith("1 member to replace lost ones needs 2 cpu")
    after = planned(node("n1", cpu=4), came, held(came, n1=2))
    assert after.placements == ()


def test_one_that_may_not_run_on_the_nodes_of_its_slots_is_placed_again() -> None:
    came = driven(1).bound_on("n1").only("a-1", shape=builders.shape(cpu=1))
    elsewhere = replace(came.members[1].shape, node_selector=(("pool", "x"),))
    came = came.only("a-1", shape=elsewhere)
    nodes = node("n1", cpu=4), node("n2", cpu=1).labelled(pool="x")
    placement = only(planned(*nodes, came, held(came, n1=3)))
    assert names(placement) == {"a-1": "n2"}
    assert placement.slots == (SlotReservation(N1, "worker", 2),)


def test_one_that_fits_several_slots_leaves_the_only_one_to_one_that_fits_no_other() -> None:
    came = driven(2).bound_on("n1")
    choosy = replace(came.members[2].shape, node_selector=(("pool", "x"),))
    came = came.only("a-2", shape=choosy)
    nodes = node("n1", cpu=2).labelled(pool="x"), node("n2", cpu=2)
    placement = only(planned(*nodes, came, held(came, n1=1, n2=2)))
    assert names(placement) == {"a-1": "n2", "a-2": "n1"}
    assert placement.slots == (SlotReservation(N2, "worker", 1),)


def test_a_slot_whose_node_will_not_do_is_held_elsewhere() -> None:
    came = driven().bound_on("n1")
    nodes = node("n1", cpu=2), node("n2", cpu=2).cordoned(), node("n3", cpu=2)
    placement = only(planned(*nodes, came, held(came, n1=1, n2=2)))
    assert placement.slots == (SlotReservation(N1, "worker", 1), SlotReservation(N3, "worker", 2))


def test_a_lost_slot_without_other_room_is_kept_and_that_is_said() -> None:
    came = driven().bound_on("n1")
    nodes = node("n1", cpu=2), node("n2", cpu=2).using(cpu=2), node("n3", cpu=1)
    placement = only(planned(*nodes, came, held(came, n1=1, n2=2)))
    kept = (
        SlotReservation(N1, "worker", 1),
        SlotReservation(N2, "worker", 1),
        SlotReservation(N3, "worker", 1),
    )
    assert placement.slots == kept
    plan = planned(*nodes, came, held(came, n1=1, n2=1, n3=1))
    assert plan.placements == ()
    (rejection,) = plan.rejections
    assert rejection.reason is Reason.NOT_ENOUGH_ROOM


def test_no_more_slots_are_held_than_members_are_lacking() -> None:
    came = driven(2).bound_on("n1", "n1", "n1")
    placement = only(planned(node("n1", cpu=9), node("n2", cpu=2), came, held(came, n1=1, n2=2)))
    assert placement.slots == (SlotReservation(N1, "worker", 1),)


def test_a_gang_that_lacks_nobody_any_more_gives_its_slots_back() -> None:
    whole = driven(3).bound_on("n1", "n1", "n1", "n1")
    snapshot = snapshot_of(node("n1", cpu=5), whole, held(whole, n1=1))
    made = plan(
        replace(snapshot, settled=frozenset({whole.made.uid})), BEST_FIT, BEST_FIT, Budget()
    )
    assert only(made) == Placement(whole.made.key, whole.made.uid, 0, ())
    assert plan_checks.violations(snapshot, made) == ()


def test_the_end_of_slots_is_due_though_the_plan_gives_them_back() -> None:
    whole = driven(3).bound_on("n1", "n1", "n1", "n1").but(absent_seconds=60.0)
    assert planned(node("n1", cpu=5), whole, held(whole, n1=1), at=5.0).next_change_at == 60.0


def test_a_lost_member_is_replaced_by_the_room_that_is_held_first() -> None:
    came = driven(2).bound_on("n1").only("a-1", phase=Phase.FAILED, node=N1)
    plan = planned(node("n1", cpu=4), came, held(came, n1=2))
    assert names(only(plan)) == {"a-2": "n1"}
    assert only(plan).slots == (SlotReservation(N1, "worker", 2),)


def test_members_beyond_those_needed_may_join_while_others_are_awaited() -> None:
    base = gang("a").role("driver", 1, cpu=1).role("helper", 1, 2, cpu=1).role("worker", 2, 0)
    came = base.declaring(cpu=1).needing(4).bound_on("n1", "n1")
    plan = planned(node("n1", cpu=5), came, held(came, n1=2))
    assert names(only(plan)) == {"a-2": "n1"}
    assert only(plan).slots == (SlotReservation(N1, "worker", 2),)
    full = planned(node("n1", cpu=4), came, held(came, n1=2))
    assert full.placements == ()


def test_a_role_has_no_more_members_than_it_may_have_counting_the_awaited() -> None:
    came = driven(3).at_most(3).bound_on("n1")
    plan = planned(node("n1", cpu=9), came, held(came, ("a-1", "n1"), ("a-2", "n1"), n1=1))
    assert names(only(plan)) == {"a-3": "n1"}
    more = driven(4).at_most(3).bound_on("n1")
    plan = planned(node("n1", cpu=9), more, held(more, ("a-1", "n1"), ("a-2", "n1"), n1=1))
    assert names(only(plan)) == {"a-3": "n1"}


def test_who_takes_a_slot_does_not_lean_on_one_that_is_given_back() -> None:
    """The third asks for more than was declared, so the slot that it leaves is nobody's company."""
    own = builders.peers(group="g", role="worker")
    base = gang("g").role("driver", 1, cpu=1).role("worker", 3, 2, cpu=1).declaring(cpu=1)
    workers = base.of(1, role="worker", cpu=2).even("zone", own, by="worker").needing(4)
    driver, worker = workers.roles
    assert worker.template is not None
    rules = InterPodRules(spread=(TopologySpread("zone", own, 1),))
    ruled = replace(worker.template, shape=replace(worker.template.shape, rules=rules))
    came = replace(workers, roles=(driver, replace(worker, template=ruled))).bound_on("n0")
    zones = [node(name, cpu=cpu).labelled(zone=name) for name, cpu in (("n1", 2), ("n2", 1))]
    plan = planned(node("n0", cpu=1), *zones, came, held(came, n1=2, n2=1))
    assert sorted(names(only(plan)).values()) == ["n1", "n2"]


def test_rules_between_pods_hold_for_absent_members_too() -> None:
    own = builders.peers(group="a", role="worker")
    apart = driven()
    template = apart.roles[1].template
    assert template is not None
    rules = InterPodRules(anti_affinity=(builders.term("hostname", own),))
    alone = replace(template, shape=replace(template.shape, rules=rules))
    apart = replace(apart, roles=(apart.roles[0], replace(apart.roles[1], template=alone)))
    nodes = [node(name, cpu=9).labelled(hostname=name) for name in ("n1", "n2", "n3")]
    placement = only(planned(*nodes, apart))
    assert [slot.count for slot in placement.slots] == [1, 1, 1]
    assert planned(*nodes[:2], apart).placements == ()


def test_one_that_rules_keep_from_its_slot_is_placed_again() -> None:
    db = builders.peers(app="db")
    came = driven(1).bound_on("n2").apart("hostname", db, by="worker")
    nodes = (
        node("n1", cpu=3).labelled(hostname="n1").hosting("db", app="db"),
        node("n2", cpu=2).labelled(hostname="n2"),
    )
    placement = only(planned(*nodes, came, held(came, n1=3)))
    assert names(placement) == {"a-1": "n2"}
    assert placement.slots == (SlotReservation(N1, "worker", 2),)


def test_one_whose_rules_let_it_take_its_slot_takes_it() -> None:
    db = builders.peers(app="db")
    came = driven(1).bound_on("n2").apart("hostname", db, by="worker")
    base = gang("b").role("driver", 1, cpu=1).role("worker", 1, 1, cpu=1)
    other = base.declaring(cpu=1).bound_on("n2").apart("hostname", db, by="worker")
    nodes = (
        node("n1", cpu=3).labelled(hostname="n1").hosting("db", app="db"),
        node("n2", cpu=4).labelled(hostname="n2"),
    )
    plan = planned(*nodes, came, other, held(came, n1=3), held(other, n2=1))
    assert [names(placement) for placement in plan.placements] == [{"a-1": "n2"}, {"b-1": "n2"}]


# What a checker that shares nothing with the planner says of slots.


def faults(*parts: Part, new: Placement) -> tuple[str, ...]:
    return plan_checks.violations(snapshot_of(*parts), Plan((new,)))


def test_slots_that_break_a_promise_are_caught() -> None:
    of = driven().bound_on("n1")
    made = of.made
    placement = Placement(
        made.key, made.uid, made.generation, (), (SlotReservation(N1, "worker", 3),)
    )
    nodes = node("n1", cpu=3), node("n2", cpu=9).cordoned()
    assert "the node has too little cpu" in faults(*nodes, of, held(of, n1=2), new=placement)[0]
    assert faults(*nodes, of, held(of, n1=3), new=placement) == ()
    gone = replace(
        placement, slots=(SlotReservation(N3, "worker", 1), SlotReservation(N2, "worker", 1))
    )
    said = faults(*nodes, of, held(of, n1=1), new=gone)
    assert "on n2: the node will not do" in said[0]
    assert "on n3: there is no such node" in said[1]
    unknown = replace(placement, slots=(SlotReservation(N1, "driver", 1),))
    assert "there is no such template" in faults(*nodes, of, held(of, n1=1), new=unknown)[0]
    limited = of.at_most(3)
    many = replace(placement, slots=(SlotReservation(N1, "worker", 4),))
    said = faults(node("n1", cpu=9), limited, held(limited, n1=3), new=many)
    assert said == ("gang ml/a: 4 of at most 3 of role worker are placed",)


# What is done about a standing Reservation.


def step(*parts: Part, at: float = 0.0) -> object:
    ((_, found),) = next_steps(snapshot_of(*parts, at=at), TERM)
    return found


def test_a_reservation_stays_while_somebody_is_awaited() -> None:
    of = driven(1).bound_on("n1")
    assert step(node("n1", cpu=9), of, held(of, ("a-0", "n1"), n1=3)) == Await()
    binding = step(node("n1", cpu=9), of, held(of, ("a-0", "n1"), ("a-1", "n1"), n1=2))
    assert isinstance(binding, Bind)
    assert [assignment.pod.name for assignment in binding.assignments] == ["a-1"]


def test_room_of_members_that_never_came_is_given_back_in_time_and_said() -> None:
    of = driven().but(absent_seconds=5.0).bound_on("n1")
    standing = held(of, ("a-0", "n1"), n1=3)
    assert step(node("n1", cpu=9), of, standing, at=4.9) == Await()
    said = "3 members of role worker did not come within 5 s: their room is given back"
    assert step(node("n1", cpu=9), of, standing, at=5.0) == Finish(said)
    assert planned(node("n1", cpu=9), of, standing, at=4.0).next_change_at == 5.0


def test_others_may_come_though_the_pod_that_declared_them_has_ended() -> None:
    """As in client mode, where that is an executor like the others, and no driver."""
    of = driven(1).bound_on("n1", "n1").only("a-0", phase=Phase.FAILED).but(owner_pod="a-0")
    assert step(node("n1", cpu=9), of, held(of, ("a-0", "n1"), n1=2)) != Finish()


@pytest.mark.parametrize(
    ("phase", "terminating", "is_held"),
    [
        (Phase.SUCCEEDED, False, True),
        (Phase.FAILED, False, False),
        (Phase.SUCCEEDED, True, False),
    ],
)
def test_room_of_later_stages_is_held_though_all_of_a_stage_have_succeeded(
    phase: Phase, *, terminating: bool, is_held: bool
) -> None:
    of = driven(1).bound_on("n1", "n1").each(phase=phase)
    of = of.but(has_later_stages=True, terminating=terminating)
    assert slots.are_open(held(of, ("a-0", "n1"), n1=2), of.made, 0.0) == is_held
    assert not slots.may_come(driven().only("a-0").but(has_later_stages=True, members=()).made)


def test_a_driver_that_has_ended_well_needs_no_workers() -> None:
    of = driven().but(owner_pod="a-0").each(phase=Phase.SUCCEEDED, is_driver=True)
    member_counts = demand.count_members(of.made)
    assert (member_counts.missing, member_counts.missing_by_role) == (0, {})


def test_once_the_driver_has_ended_no_room_is_looked_for() -> None:
    of = driven().but(owner_pod="a-0").each(phase=Phase.FAILED, is_driver=True)
    assert demand.count_members(of.made).absent == ()


@pytest.mark.parametrize("ended", ["group", "driver", "maker"])
def test_nobody_is_awaited_once_the_gang_has_ended(ended: str) -> None:
    of = driven(1).bound_on("n1", "n1")
    match ended:
        case "group":
            of = of.but(terminating=True)
        case "driver":
            of = of.each(phase=Phase.SUCCEEDED)
        case _:
            of = of.only("a-0", phase=Phase.FAILED, is_driver=True).but(owner_pod="a-0")
    assert step(node("n1", cpu=9), of, held(of, ("a-0", "n1"), n1=2)) == Finish()


def test_what_cannot_be_bound_any_more_is_given_back_and_the_rest_awaited() -> None:
    of = driven(1).bound_on("n1")
    nodes = node("n1", cpu=9), node("n2", cpu=9).cordoned()
    standing = held(of, ("a-0", "n1"), ("a-1", "n2"), ("gone", "n1"), n1=2)
    found = step(*nodes, of, standing)
    assert isinstance(found, Trim)
    assert [entry.pod.name for entry in found.rest] == ["a-0"]


def test_a_reservation_that_lost_a_slot_before_anything_was_bound_is_released() -> None:
    of = driven()
    found = step(node("n1", cpu=9), of, held(of, ("a-0", "n1"), n1=2, n2=1))
    assert isinstance(found, Release)
    assert found.sentence == (
        "an absent member of role worker would have no room on n2; planning again"
    )
    late = step(node("n1", cpu=9), of, held(of, ("a-0", "n1"), n1=3), at=600.0)
    assert late == Release("the gang needs other members by now; planning again")


def test_a_slot_that_rules_forbid_by_now_is_lost_before_anything_was_bound() -> None:
    db = builders.term("hostname", builders.peers(group="a"))
    full = node("n1", cpu=9).labelled(hostname="n1").hosting("db", db, app="db")
    of = driven()
    assert isinstance(step(full, of, held(of, ("a-0", "n1"), n1=3)), Release)


# What people are told.


def test_a_gang_says_for_whom_room_is_held() -> None:
    of = driven().bound_on("n1")
    standing = held(of, ("a-0", "n1"), n1=1, n2=2)
    made = status.status_of(of.made, standing, None, {N1: True}, {}, scheduler="tutti")
    reserved = made.conditions[0]
    assert (reserved.holds, reserved.reason) == (True, "Reserved")
    assert reserved.message == (
        "1 of 4 members exist; room on 2 nodes is reserved for 3 absent members"
    )
    assert made.phase == "Reserved"


def test_a_gang_that_is_short_of_room_for_the_absent_says_so() -> None:
    of = driven(1, cpu=2).bound_on("n1")
    standing = held(of, n1=2)
    plan = planned(node("n1", cpu=3), of, standing)
    made = status.status_of(
        of.made, standing, plan.rejections[0], {N1: True}, {}, scheduler="tutti"
    )
    assert (made.conditions[0].holds, made.conditions[0].reason) == (False, "NotEnoughRoom")


def test_a_gang_that_has_its_room_says_so_though_others_wait_for_more() -> None:
    base = gang("a").role("driver", 1, cpu=1).role("helper", 1, 2, cpu=1).role("worker", 2, 0)
    of = base.declaring(cpu=1).needing(4).bound_on("n1", "n1")
    standing = held(of, n1=2)
    plan = planned(node("n1", cpu=4), of, standing)
    assert plan.rejections[0].reason is Reason.NOT_ENOUGH_ROOM
    made = status.status_of(
        of.made, standing, plan.rejections[0], {N1: True}, {}, scheduler="tutti"
    )
    assert (made.conditions[0].holds, made.conditions[0].reason) == (True, "Reserved")


def test_a_gang_whose_room_was_given_back_says_who_is_missing() -> None:
    of = driven().bound_on("n1")
    (rejection,) = planned(node("n1", cpu=9), of).rejections
    assert rejection.reason is Reason.WAITING_FOR_MEMBERS
    assert finding_text.sentence(rejection) == (
        "1 of 4 members are bound; 3 lost or never made, and no room is held for them"
    )


def test_those_that_come_after_their_time_are_placed_like_lost_ones() -> None:
    of = driven(2).bound_on("n1")
    first = gang("b").of(1, cpu=1).priority(9)
    plan = planned(node("n1", cpu=3), of, first)
    assert names(only(plan)) == {"a-1": "n1", "a-2": "n1"}


def test_a_stand_in_has_a_uid_of_its_own() -> None:
    of = driven().made
    one, two = slots.placeholders(of, "worker", 2)
    assert {one.uid, two.uid} == {Uid("ml/a-uid/worker/0"), Uid("ml/a-uid/worker/1")}
    assert one.labels == builders.labels(group="a", role="worker")
    assert slots.placeholders(of, "driver", 2) == ()
    assert slots.placeholders(of, "nobody", 2) == ()


# Time runs for those who do not exist.


def late(*parts: Part) -> Plan:
    """The plan once nobody is awaited any more."""
    return planned(*parts, at=600.0)


def test_whoever_is_there_has_a_slot_although_time_is_up() -> None:
    came = driven(1).bound_on("n1")
    standing = held(came, n1=3)
    assert step(node("n1", cpu=9), came, standing, at=600.0) == Await()
    plan = late(node("n1", cpu=4), came, standing)
    assert names(only(plan)) == {"a-1": "n1"}
    assert only(plan).slots == (SlotReservation(N1, "worker", 2),)
    after = held(came, ("a-1", "n1"), n1=2)
    assert isinstance(step(node("n1", cpu=9), came, after, at=600.0), Bind)
    bound = came.bound_on("n1")
    said = "2 members of role worker did not come within 600 s: their room is given back"
    assert step(node("n1", cpu=9), bound, after, at=600.0) == Finish(said)


@pytest.mark.parametrize(
    "changes",
    [
        {"unsupported_fields": ("spec.x",)},
        {"volume_problems": ("claim c",)},
        {"gates": ("hold",)},
        {"role": "x"},
    ],
)
def test_one_that_cannot_take_a_slot_keeps_none_for_others(changes: dict[str, object]) -> None:
    came = driven(1).bound_on("n1").only("a-1", **changes)
    found = step(node("n1", cpu=9), came, held(came, n1=3), at=600.0)
    assert isinstance(found, Finish)
    larger = driven(1, cpu=2).bound_on("n1")
    found = step(node("n1", cpu=9), larger, held(larger, n1=3), at=600.0)
    assert isinstance(found, Finish)


def test_once_time_is_up_no_slots_are_kept_for_one_that_may_not_run_there() -> None:
    came = driven(2).bound_on("n1")
    elsewhere = replace(came.members[1].shape, node_selector=(("pool", "x"),))
    came = came.only("a-1", shape=elsewhere)
    placement = only(late(node("n1", cpu=9), came, held(came, n1=3)))
    assert (names(placement), placement.slots) == ({"a-2": "n1"}, ())


def test_once_time_is_up_no_other_slots_take_the_place_of_lost_ones() -> None:
    came = driven(1).bound_on("n1")
    nodes = node("n1", cpu=4), node("n2", cpu=4).cordoned()
    placement = only(late(*nodes, came, held(came, n1=1, n2=2)))
    assert names(placement) == {"a-1": "n1"}
    assert placement.slots == (SlotReservation(N2, "worker", 2),)


# A Reservation that somebody else deletes.


def test_a_gang_whose_reservation_was_deleted_gets_room_for_the_absent_again() -> None:
    of = driven(1).bound_on("n1")
    nodes = node("n1", cpu=2), node("n2", cpu=9)
    placement = only(planned(*nodes, of, bereft=[of]))
    assert set(names(placement)) == {"a-1"}
    assert sum(slot.count for slot in placement.slots) == 2
    nobody = driven().bound_on("n1")
    placement = only(planned(*nodes, nobody, bereft=[nobody]))
    assert placement.assignments == ()
    assert sum(slot.count for slot in placement.slots) == 3


def test_that_is_no_longer_so_once_nobody_may_come_any_more() -> None:
    over = driven().bound_on("n1").each(phase=Phase.SUCCEEDED)
    assert planned(node("n1", cpu=9), over, bereft=[over]).placements == ()


def test_a_gang_that_others_are_awaited_for_hears_nothing_of_it() -> None:
    of, other = driven().bound_on("n1"), gang("b").role("driver", 1, cpu=1)
    other = other.role("worker", 2, 0).declaring(cpu=1).needing(3).bound_on("n1")
    plan = planned(node("n1", cpu=9), of, other, held(of, n1=3), bereft=[other])
    assert [
        (placement.gang.name, slots.number(placement.slots)) for placement in plan.placements
    ] == [("b", 2)]


def test_a_member_that_replaces_another_leaves_a_lost_slot_for_the_absent() -> None:
    """Its node may fit again, before the absent member comes."""
    made = gang("a").role("worker", 3, 3, cpu=1).declaring(cpu=1).needing(3)
    came = made.bound_on("n1", "n1").only("a-0", phase=Phase.FAILED)
    held_slot = reservation(came, slots=[SlotReservation(N2, "worker", 1)])
    placement = only(planned(node("n1", cpu=2), node("n2", cpu=1).cordoned(), came, held_slot))
    assert (names(placement), placement.slots) == ({"a-2": "n1"}, held_slot.slots)
