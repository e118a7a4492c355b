"""What a gang that runs is charged."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tutti.model import ports
from tutti.model.cluster import Gang, Member, Phase, Role, SlotReservation
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import QueueRecord, RoleAtStart
from tutti.model.resources import NOTHING, Resources
from tutti.queues.charge import (
    as_started,
    covers_slot,
    gang_charge,
    requests_of,
    slot_requests,
    start_charge,
    with_lost,
    with_succeeded,
)

from ...harness.builders import GPU, GangBuilder, gang, member, reservation, resources, shape


def running(n: int, needed: int) -> GangBuilder:
    return gang("a").of(n, gpu=1).needing(needed).bound_on(*("n1" for _ in range(n)))


def record(gang: Gang, n: int) -> QueueRecord:
    return QueueRecord("q", Uid("q-uid"), 0.0, start_charge(gang, gang.members[:n]))


def gpus(n: int) -> Resources:
    return resources(gpu=n, pods=n)


def test_a_gang_is_charged_its_minimum_and_its_extras_one_by_one() -> None:
    found = gang_charge(running(5, 3).made, None, None)
    assert found.minimum == gpus(3) == found.held_minimum
    assert found.extras == (("a-3", gpus(1)), ("a-4", gpus(1)))
    assert found.total == gpus(5)


def test_a_member_that_joins_later_is_an_extra_however_old_it_is() -> None:
    both = gang("a").of(1, gpu=1).of(1, gpu=3).needing(1).bound_on("n1", "n1")
    older, younger = both.members
    started = QueueRecord("q", Uid("q-uid"), 0.0, (RoleAtStart("", 1, resources(gpu=3)),))
    later = gang_charge(both.made, None, started, (), {younger.uid: 0, older.uid: 1})
    assert (later.minimum[GPU], later.extras) == (3, (("a-0", gpus(1)),))
    assert later.total == resources(gpu=4, pods=2)
    unknown = gang_charge(both.made, None, started, (), {younger.uid: 0})
    assert unknown == later, "it joins now"
    together = gang_charge(both.made, None, started, (), {younger.uid: 0, older.uid: 0})
    assert together.extras == (("a-1", resources(gpu=3, pods=1)),), "the oldest comes first"


def test_waiting_members_cost_nothing() -> None:
    assert gang_charge(gang("a").of(2, gpu=1).made, None, None).total == resources()


def test_lost_members_are_charged_by_the_record() -> None:
    made = running(4, 4).last(1, phase=Phase.FAILED).made
    assert gang_charge(made, None, None).minimum == gpus(3)
    found = gang_charge(made, None, record(running(4, 4).made, 4))
    assert (found.minimum, found.held_minimum, found.total) == (gpus(4), gpus(3), gpus(4))
    assert found.credit == gpus(1)


def test_a_member_that_leaves_stands_for_a_lost_one_until_that_is_replaced() -> None:
    before = running(4, 4).last(1, terminating=True).made
    started = record(running(4, 4).made, 4)
    leaving = gang_charge(before, None, started)
    assert (leaving.total, leaving.credit) == (gpus(4), resources())
    replaced = running(5, 4).only("a-3", terminating=True).made
    found = gang_charge(replaced, None, started)
    assert (found.minimum, found.leaving, found.total) == (gpus(4), gpus(1), gpus(5))


def test_members_that_succeeded_are_no_longer_charged() -> None:
    made = running(4, 4).last(2, phase=Phase.SUCCEEDED).made
    started = record(running(4, 4).made, 4)
    assert gang_charge(made, None, started).total == gpus(4), "nothing is written down so far"
    now = with_succeeded(made, started)
    assert now.succeeded == (("", 2),)
    assert gang_charge(made, None, now).total == gpus(2)
    assert with_succeeded(made, now) is now
    forgotten = running(4, 4).only("a-2").only("a-3").last(2, phase=Phase.FAILED).made
    assert with_succeeded(forgotten, now) is now
    assert gang_charge(forgotten, None, now).total == gpus(2), "nobody can take that back"
    cleared = replace(running(3, 4).made, finished=("",))
    later = with_succeeded(cleared, started)
    assert gang_charge(cleared, None, later).total == gpus(3)
    over = running(2, 2).each(phase=Phase.SUCCEEDED).made
    more = replace(over, finished=("", ""))
    assert gang_charge(more, None, record(running(2, 2).made, 2)).total == resources()


def test_what_is_left_of_unequal_members_is_rounded_up() -> None:
    made = gang("a").of(1, gpu=1).of(1, gpu=2).bound_on("n1", "n1").made
    done = gang("a").of(2, gpu=1).bound_on("n1", "n1").last(1, phase=Phase.SUCCEEDED).made
    started = with_succeeded(done, record(made, 2))
    assert gang_charge(done, None, started).minimum == resources(gpu=2, pods=1)


def test_members_and_slots_with_room_in_the_reservation_count() -> None:
    made = gang("a").role("w", 2, 3, gpu=1).declaring(gpu=2).needing(3)
    slots = (SlotReservation(NodeName("n1"), "w", 1),)
    found = gang_charge(made.made, reservation(made, ("a-0", "n1"), slots=slots), None)
    assert found.minimum == resources(gpu=3, pods=2)
    assert found.extras == ()


def test_a_slot_of_a_role_without_template_counts_as_the_largest_of_the_role() -> None:
    made = gang("a").role("w", 1, 1, gpu=1).of(1, role="w", cpu=1).of(1, role="x", gpu=9).made
    assert slot_requests(made, "w") == resources(gpu=1, cpu=1, pods=1)


def test_each_role_has_its_oldest_members_in_the_minimum() -> None:
    made = gang("a").role("worker", 1, 2, gpu=1).role("driver", 1, cpu=1)
    bound = made.needing(2).bound_on("n1", "n1", "n1").made
    found = gang_charge(bound, None, None)
    assert found.minimum == resources(cpu=1, gpu=1, pods=2)
    assert [pod for pod, _ in found.extras] == ["a-1"]


def test_host_ports_are_no_quota() -> None:
    made = gang("a").of(1, gpu=1).listening(ports.HostPort(80)).bound_on("n1").made
    assert gang_charge(made, None, None).total == gpus(1)
    assert start_charge(made, made.members) == (RoleAtStart("", 1, gpus(1)),)


def test_the_record_of_a_start_has_the_minimum_by_role() -> None:
    made = gang("a").role("worker", 1, 3, gpu=1).role("driver", 1, cpu=1).needing(3).made
    expected = (
        RoleAtStart("driver", 1, resources(cpu=1, pods=1)),
        RoleAtStart("worker", 2, gpus(2)),
    )
    assert start_charge(made, made.members) == expected
    began = replace(made, finished=("worker",))
    assert start_charge(began, made.members) == (
        RoleAtStart("driver", 1, resources(cpu=1, pods=1)),
        RoleAtStart("worker", 2, gpus(2)),
    ), "one has succeeded, and its part is taken away again"


def test_members_that_have_succeeded_are_part_of_the_minimum() -> None:
    """Else the rest would be charged less, and count as extras in part."""
    over = running(4, 4).only("a-0", phase=Phase.SUCCEEDED).made
    (start,) = minimum = start_charge(over, [m for m in over.members if not m.is_over])
    assert start == RoleAtStart("", 4, gpus(4))
    later = with_succeeded(over, QueueRecord("", Uid(""), 0.0, minimum))
    assert as_started(over, later) == over
    charge = gang_charge(over, None, later)
    assert (charge.minimum, charge.extras) == (gpus(3), ())


def test_a_gang_that_runs_may_replace_what_it_lacks() -> None:
    made = gang("a").role("worker", 2, 1, gpu=1).role("driver", 1, 1, cpu=1).needing(5).made
    here = [member for member in made.members if member.role == "worker"]
    minimum = with_lost(made, start_charge(made, here))
    assert minimum == (
        RoleAtStart("", 2, resources()),
        RoleAtStart("driver", 1, resources()),
        RoleAtStart("worker", 2, gpus(1)),
    )
    assert as_started(made, QueueRecord("", Uid(""), 0.0, minimum)) == made
    assert with_lost(running(2, 3).made, ()) == (RoleAtStart("", 3, resources()),)
    whole = running(3, 3).made
    assert with_lost(whole, start_charge(whole, whole.members)) == (RoleAtStart("", 3, gpus(3)),)


def test_without_roles_what_members_name_as_theirs_counts_for_nothing() -> None:
    mixed = gang("a").of(1, role="x", gpu=1).of(1, role="y", gpu=1)
    assert start_charge(mixed.made, mixed.made.members) == (RoleAtStart("", 2, gpus(2)),)
    lost = mixed.bound_on("n1", "n1").only("a-1", phase=Phase.SUCCEEDED).made
    started = with_succeeded(lost, record(mixed.made, 2))
    assert (started.succeeded, gang_charge(lost, None, started).minimum) == ((("", 1),), gpus(1))


def test_a_record_is_not_charged_once_nobody_holds_room() -> None:
    over = running(2, 2).each(phase=Phase.FAILED).made
    assert gang_charge(over, None, record(running(2, 2).made, 2)).total == resources()


def test_a_member_of_another_role_takes_no_place_of_a_lost_one() -> None:
    """A driver is lost, and a second worker stays an extra."""
    made = gang("a").role("driver", 1, cpu=1).role("worker", 1, 2, gpu=1).needing(2)
    whole = made.bound_on("n1", "n1", "n1")
    lost = whole.only("a-0", phase=Phase.FAILED).made
    found = gang_charge(lost, None, record(whole.made, 3))
    credit = resources(cpu=1, pods=1)
    assert (found.minimum, found.credit) == (resources(cpu=1, gpu=1, pods=2), credit)
    assert found.extras == (("a-2", gpus(1)),)
    assert found.extras_in_credit.credit == resources(cpu=1), "a-2 may be the driver that was lost"
    alone = whole.only("a-0", phase=Phase.FAILED).only("a-2", phase=Phase.FAILED).made
    assert gang_charge(alone, None, record(whole.made, 3)).credit == resources(cpu=1, pods=1)


def test_a_member_with_another_role_leaves_no_credit_behind() -> None:
    """A tenant may change the label of a pod that runs."""
    made = gang("a").role("driver", 1, gpu=1).role("worker", 1, gpu=1).needing(2)
    whole = made.bound_on("n1", "n1")
    relabelled = gang_charge(whole.only("a-0", role="worker").made, None, record(whole.made, 2))
    assert (relabelled.total, relabelled.extras_in_credit.credit) == (gpus(3), resources())


def test_a_gang_that_does_not_show_who_succeeded_has_no_credit() -> None:
    """Its replacements get no places: those of the members that succeeded have ended."""
    made = running(3, 3)
    started = replace(record(made.made, 3), succeeded=(("", 1),))
    hidden = replace(made.made, members=made.members[1:])
    waiting = (member("x", shape(gpu=1)), member("y", shape(gpu=1)))
    lost = replace(hidden, members=(*hidden.members[1:], *waiting))
    assert gang_charge(lost, None, started).credit == resources()
    shown = replace(lost, finished=("",))
    assert gang_charge(shown, None, started).credit == gpus(1)


def test_a_slot_is_for_members_that_request_what_it_was_charged() -> None:
    """Its tenant may change the template of the role later."""
    started = QueueRecord("q", Uid("q"), 0.0, (RoleAtStart("d", 2, resources(cpu=4, pods=2)),))
    sizes = {"fits": shape(cpu=2), "is larger": shape(cpu=3), "has more": shape(cpu=1, gpu=1)}
    assert [
        n for n, size in sizes.items() if covers_slot(started, member("x", size, role="d"))
    ] == ["fits"]
    assert not covers_slot(started, member("x", shape(cpu=1), role="later"))
    assert covers_slot(None, member("x", shape(cpu=99), role="d"))
    plain = replace(started, minimum=(replace(started.minimum[0], role=""),))
    assert covers_slot(plain, member("x", shape(cpu=2), role="d"))


ROLES = ("", "a", "b")


@st.composite
def started_gangs(draw: st.DrawFn) -> tuple[Gang, QueueRecord]:
    """A gang that started with all its members, with roles or without, and its record."""
    has_roles = draw(st.booleans())
    mins = {role: draw(st.integers(0, 2)) for role in ROLES[1:]} if has_roles else {}
    need = sum(mins.values()) + draw(st.integers(0 if sum(mins.values()) else 1, 2))
    roles = [role for role, n in mins.items() for _ in range(n)]
    roles += draw(st.lists(st.sampled_from(ROLES), min_size=need, max_size=need + 2))
    members = [_drawn(draw, n, role) for n, role in enumerate(roles)]
    made = replace(gang("g").needing(need).made, members=tuple(members))
    made = replace(made, roles=tuple(Role(role, n) for role, n in mins.items()))
    return made, QueueRecord("q", Uid("q"), 0.0, start_charge(made, made.members))


def _drawn(draw: Callable[[st.SearchStrategy[int]], int], number: int, role: str) -> Member:
    size = shape(cpu=draw(st.integers(1, 4)), gpu=draw(st.integers(0, 3)))
    return replace(
        member(f"{number:03}", size, role=role),
        created=float(draw(st.integers(0, 9))),
        node=NodeName("n1"),
    )


@given(started_gangs(), st.data())
def test_a_loss_never_raises_the_charge_and_a_member_adds_at_most_what_it_requests(
    start: tuple[Gang, QueueRecord], chance: st.DataObject
) -> None:
    draw = chance.draw
    made, record = start
    for number in range(100, 100 + draw(st.integers(1, 8))):
        joined = {one.uid: n for n, one in enumerate(made.members)}
        before = gang_charge(made, None, record, (), joined)
        needed = sum(places.members for places in record.minimum)
        made = replace(made, min_member=draw(st.integers(1, needed)))  # lowered by its tenant
        if draw(st.booleans()) and len(made.members) > 1:
            lost = draw(st.sampled_from(made.members))
            made = replace(made, members=tuple(one for one in made.members if one is not lost))
            most = before.total
        else:
            added = _drawn(draw, number, draw(st.sampled_from(ROLES)))
            made = replace(made, members=(*made.members, added))
            most = before.total + requests_of(added)
        after = gang_charge(made, None, record, (), joined)
        assert (after.total - most).at_least(NOTHING) == NOTHING
        held = Resources.total(requests_of(one) for one in made.members)
        assert (held - after.total).at_least(NOTHING) == NOTHING
