"""What the API server will not do for one object is that object's trouble, and nobody else's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tutti.kube import backoff, errors
from tutti.model.cluster import Member, Phase, Reservation
from tutti.model.decisions import Assignment
from tutti.model.keys import GangKey, LeaderTerm, Uid
from tutti.model.queues import Queue

from ..harness import builders
from ..harness.builders import NAMESPACE, GangBuilder, NodeBuilder, gang, node, single
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life
from . import scenarios

Refuse = Callable[[str, str], errors.ApiError | None]

ANSWERS: Mapping[str, errors.ApiError] = {
    "a quota": errors.Refused("exceeded quota", status=403),
    "a webhook that is down": errors.Unavailable("failed calling webhook", status=500),
    "a conflict without a cause": errors.Conflict("a webhook says no", status=409),
}
answers = pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)


def nothing(_call: str, _name: str) -> None:
    """Refuse nothing."""


@dataclass
class Choosy(FakeCluster):
    """Refuses calls by what they are about."""

    refuse: Refuse = nothing

    def _look_at(self, call: str, name: str) -> None:
        if (answer := self.refuse(call, name)) is not None:
            self.calls.append(f"{call} {name}")
            raise answer

    async def reserve(self, reservation: Reservation) -> Reservation:
        """See ``Api.reserve``."""
        self._look_at("reserve", reservation.gang.name)
        return await super().reserve(reservation)

    async def adopt(self, reservation: Reservation, term: LeaderTerm) -> Reservation:
        """See ``Api.adopt``."""
        self._look_at("adopt", reservation.gang.name)
        return await super().adopt(reservation, term)

    async def release(self, reservation: Reservation) -> None:
        """See ``Api.release``."""
        self._look_at("release", reservation.gang.name)
        await super().release(reservation)

    async def bind(self, assignment: Assignment) -> None:
        """See ``Api.bind``."""
        self._look_at("bind", assignment.pod.name)
        await super().bind(assignment)

    async def say_of_pod(self, member: Member, why: Any) -> Member:
        """See ``Api.say_of_pod``."""
        self._look_at("say_of_pod", member.key.name)
        return await super().say_of_pod(member, why)


def never(call: str, name: str, answer: errors.ApiError) -> Refuse:
    """Refuse this call for objects whose names begin so."""
    return lambda made, of: answer if made == call and of.startswith(name) else None


def a_life(*parts: NodeBuilder | GangBuilder, refuse: Refuse) -> Life:
    cluster = Choosy(refuse=refuse)
    cluster.add(*parts)
    return Life(cluster, Clock())


def relent(life: Life) -> None:
    assert isinstance(life.cluster, Choosy)
    life.cluster.refuse = nothing


def refusals_of(life: Life, call: str) -> int:
    """How often the call was refused."""
    return sum(made.startswith(call + " ") for made in life.cluster.calls)


async def turns(life: Life, n: int) -> None:
    for _ in range(n):
        await life.turn()


async def pass_time(life: Life, seconds: float) -> None:
    """Cycle whenever something is due or has changed, but ten times a second at most."""
    end = life.clock.now + seconds
    while life.clock.now < end:
        life.is_woken = False
        next_in = await life.turn()
        left = end - life.clock.now
        wait = 0.0 if life.is_woken else left if next_in is None else next_in
        life.clock.now += min(max(wait, 0.1), left)


def reserved(life: Life, name: str) -> tuple[str, str]:
    status = life.cluster.groups[GangKey(NAMESPACE, name)].status
    (line,) = [line for line in status["conditions"] if line["type"] == "Reserved"]
    return line["reason"], line["message"]


@answers
async def test_a_gang_that_may_not_reserve_takes_no_room_from_the_next(
    answer: errors.ApiError,
) -> None:
    life = a_life(
        node("n1", cpu=4),
        gang("a").of(2, cpu=2),
        gang("b").of(2, cpu=2).but(created=500.0),
        refuse=never("reserve", "a", answer),
    )
    await turns(life, 3)
    assert scenarios.places(life.cluster, "b") == ["n1", "n1"]
    await pass_time(life, 60)
    assert reserved(life, "a")[0] in ("Refused", "NotEnoughRoom")
    assert not life.problems
    assert not life.cluster.reservations


@answers
async def test_a_gang_that_may_not_reserve_is_told_so_and_starts_once_it_may(
    answer: errors.ApiError,
) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=2), refuse=never("reserve", "a", answer))
    await pass_time(life, 4)
    reason, sentence = reserved(life, "a")
    assert reason == "Refused"
    assert sentence.startswith(("Reservation refused: ", "Reservation failed: ", "a Reservation"))
    relent(life)
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "a") == ["n1", "n1"]


async def test_a_gang_that_is_refused_for_ever_is_asked_for_more_and_more_rarely() -> None:
    life = a_life(
        node("n1", cpu=4),
        gang("a").of(2, cpu=2),
        refuse=never("reserve", "a", ANSWERS["a quota"]),
    )
    await pass_time(life, 3600)
    assert 10 <= refusals_of(life, "reserve") <= 20
    relent(life)
    await pass_time(life, backoff.LONGEST_SECONDS)
    assert scenarios.places(life.cluster, "a") == ["n1", "n1"]


async def test_what_is_left_of_a_gang_that_is_gone_is_asked_for_more_and_more_rarely() -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=2), refuse=nothing)
    life.cluster.add_queue(Queue("vision", Uid("vision-1")))
    life.cluster.change_group("a", queue="vision")
    await life.settle()
    assert life.cluster.reservations, "the record of the start"
    for name in ("a-0", "a-1"):
        life.cluster.change_pod(name, phase=Phase.SUCCEEDED)
    life.cluster.delete_group("a")
    life.cluster.collect()
    assert isinstance(life.cluster, Choosy)
    life.cluster.refuse = never("release", "a", ANSWERS["a webhook that is down"])
    life.watch.catch_up()
    await pass_time(life, 3600)
    assert 10 <= refusals_of(life, "release") <= 20
    relent(life)
    await pass_time(life, backoff.LONGEST_SECONDS)
    assert not life.cluster.reservations


async def test_who_comes_while_a_refused_gang_is_asked_for_again_waits_two_cycles_at_most() -> None:
    life = a_life(
        node("n1", cpu=4),
        gang("a").of(2, cpu=2),
        refuse=never("reserve", "a", ANSWERS["a quota"]),
    )
    await turns(life, 3)
    for i in range(20):
        life.clock.now += backoff.LONGEST_SECONDS
        refused = refusals_of(life, "reserve")
        life.cluster.add(gang(f"b{i}").of(2, cpu=2).but(created=life.clock.now))
        life.watch.catch_up()
        await turns(life, 2)
        assert refusals_of(life, "reserve") == refused + 1
        assert scenarios.places(life.cluster, f"b{i}") == ["n1", "n1"]
        for pod in scenarios.members(life.cluster, f"b{i}"):
            life.cluster.delete_pod(pod.key.name)
        life.watch.catch_up()


@answers
async def test_a_gang_of_which_nothing_may_be_bound_gives_its_room_back(
    answer: errors.ApiError,
) -> None:
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=2), refuse=never("bind", "a", answer))
    await turns(life, 2)
    life.cluster.add(gang("b").of(2, cpu=2).but(created=500.0))
    life.watch.catch_up()
    await turns(life, 2)
    assert scenarios.places(life.cluster, "b") == ["n1", "n1"]
    assert not life.cluster.reservations
    assert not life.problems
    relent(life)
    life.cluster.put_node(node("n2", cpu=4).made)
    life.watch.catch_up()
    await life.settle()
    scenarios.assert_promises(life.cluster)
    assert scenarios.places(life.cluster, "a") == ["n2", "n2"]


async def test_a_gang_whose_bindings_are_refused_is_told_why() -> None:
    life = a_life(
        node("n1", cpu=4),
        gang("a").of(2, cpu=2),
        refuse=never("bind", "a", ANSWERS["a quota"]),
    )
    await pass_time(life, 4)
    assert reserved(life, "a") == ("Refused", "pod ml/a-0: binding refused: exceeded quota")
    kinds = [event["reason"] for event in life.cluster.events.values()]
    assert "Released" in kinds


async def test_a_gang_of_which_somebody_is_bound_keeps_the_room_of_the_others() -> None:
    life = a_life(
        node("n1", cpu=4),
        gang("a").of(2, cpu=2),
        refuse=never("bind", "a-1", ANSWERS["a quota"]),
    )
    await turns(life, 4)
    life.cluster.add(single("s", cpu=2))
    life.watch.catch_up()
    await pass_time(life, 100)
    assert [pod.key.name for pod in life.cluster.pods.values() if pod.node] == ["a-0"]
    relent(life)
    await life.settle()
    assert scenarios.places(life.cluster, "a") == ["n1", "n1"]


async def test_a_pod_alone_that_may_not_be_bound_takes_no_room_from_the_next() -> None:
    life = a_life(
        node("n1", cpu=4),
        single("s", cpu=4),
        single("t", cpu=4).each(created=500.0),
        refuse=never("bind", "s", ANSWERS["a quota"]),
    )
    await turns(life, 3)
    assert [pod.key.name for pod in life.cluster.pods.values() if pod.node] == ["t"]


async def left_behind() -> Choosy:
    """What a leader left that died at its first binding."""
    cluster = Choosy()
    cluster.add(node("n1", cpu=4), gang("a").of(2, cpu=1))
    cluster.fault = lambda _, name: Fault(Crash()) if name == "bind" else None
    with pytest.raises(Crash):
        await Life(cluster, Clock(), identity="tutti-0").turn()
    cluster.fault = lambda *_: None
    assert len(cluster.reservations) == 1
    return cluster


@answers
async def test_a_reservation_that_cannot_be_adopted_holds_up_nobody_else(
    answer: errors.ApiError,
) -> None:
    cluster = await left_behind()
    cluster.refuse = never("adopt", "a", answer)
    life = Life(cluster, Clock(), identity="tutti-1")
    cluster.add(gang("b").of(2, cpu=1).but(created=500.0), gang("c").of(1, cpu=1).priority(-1))
    life.watch.catch_up()
    await pass_time(life, 100)
    assert not life.problems
    assert scenarios.places(cluster, "b") == ["n1", "n1"]
    assert scenarios.places(cluster, "c") == [], "its room is counted"
    assert scenarios.places(cluster, "a") == [], "nobody carries it out"
    assert len(cluster.reservations) == 1, "nor discards it"
    assert 2 <= refusals_of(life, "adopt") <= 8
    status = cluster.groups[GangKey(NAMESPACE, "a")].status["conditions"]
    assert any("adoption of its Reservation" in line["message"] for line in status)
    relent(life)
    await life.settle()
    scenarios.assert_promises(cluster)
    assert scenarios.places(cluster, "a") == ["n1", "n1"]


async def test_a_server_that_is_away_ends_the_takeover() -> None:
    cluster = await left_behind()
    cluster.refuse = never("adopt", "a", errors.Unavailable("connection refused."))
    life = Life(cluster, Clock(), identity="tutti-1")
    await life.turn()
    assert len(life.problems) == 1
    relent(life)
    await life.settle()
    scenarios.assert_promises(cluster)


@pytest.mark.parametrize("call", ["", "read_member"])
async def test_a_reservation_that_goes_before_it_is_adopted_frees_no_room_that_is_taken(
    call: str,
) -> None:
    """Its leader wakes, binds the rest and deletes it; the watch of pods is late.

    Nothing is planned while its pods cannot be asked about.
    """
    cluster = await left_behind()
    cluster.refuse = never("adopt", "a", ANSWERS["a quota"])
    life = Life(cluster, Clock(), identity="tutti-1")
    await turns(life, 2)
    for name in ("a-0", "a-1"):
        known = cluster.pods[builders.member(name, builders.shape(cpu=1)).key]
        cluster._put_pod(replace(known, node=next(iter(cluster.nodes))))
    cluster.delete_reservation("a")
    cluster.add(gang("b").of(4, cpu=1).priority(9))
    life.watch.catch_up("reservations", "groups", "pending")
    broken = Fault(errors.Unavailable("failed calling webhook", status=500))
    cluster.fault = lambda _, name: broken if name == call else None
    for _ in range(2 * bool(call)):
        with pytest.raises(errors.Unavailable, match="not all of its pods can be looked at"):
            await life.cycle.run_once(life.term)
    cluster.fault = lambda *_: None
    await life.cycle.run_once(life.term)
    assert cluster.broken == []
    await life.settle()
    assert cluster.broken == []
    assert scenarios.places(cluster, "b") == []


async def test_a_reservation_that_cannot_be_deleted_holds_up_nobody_else() -> None:
    life = a_life(
        node("n1", cpu=4),
        gang("a").of(2, cpu=1),
        refuse=never("release", "a", ANSWERS["a webhook that is down"]),
    )
    await turns(life, 4)
    assert refusals_of(life, "release") == 2
    life.cluster.add(gang("b").of(2, cpu=1))
    life.watch.catch_up()
    await pass_time(life, 60)
    assert scenarios.places(life.cluster, "b") == ["n1", "n1"]
    assert not life.problems
    assert refusals_of(life, "release") < 10
    relent(life)
    await life.settle()
    scenarios.assert_promises(life.cluster)


@pytest.mark.parametrize("call", ["say_of_pod", "read_member"])
async def test_room_that_cannot_be_given_back_safely_is_kept_and_nobody_else_waits(
    call: str,
) -> None:
    cluster = await left_behind()
    broken = Fault(errors.Unavailable("failed calling webhook", status=500))
    cluster.fault = lambda _, name: broken if name == call else None
    if call == "say_of_pod":
        cluster.change_node("n1", unschedulable=True)
    else:
        for name in ("a-0", "a-1"):
            cluster.delete_pod(name)
    cluster.put_node(node("n2", cpu=2).made)
    life = Life(cluster, Clock(), identity="tutti-1")
    cluster.add(gang("b").of(1, cpu=2).priority(9))
    life.watch.catch_up()
    await pass_time(life, 60)
    assert not life.problems
    assert scenarios.places(cluster, "b") == ["n2"]
    assert len(cluster.reservations) == 1
    assert cluster.calls.count(call) < 40
    cluster.fault = lambda *_: None
    await life.settle()
    scenarios.assert_promises(cluster)


async def test_an_answer_of_too_many_requests_that_one_object_gets_stops_nobody_else() -> None:
    """A webhook's; a server that has too much to do says when to come back."""
    answer = errors.Unavailable("a webhook says: too many", status=429)
    for call in ("reserve", "bind"):
        life = a_life(
            node("n1", cpu=8),
            gang("a").of(2, cpu=1),
            gang("b").of(2, cpu=1).but(created=500.0),
            refuse=never(call, "a", answer),
        )
        await pass_time(life, 30)
        assert not life.problems
        assert scenarios.places(life.cluster, "b") == ["n1", "n1"]
        assert not life.cluster.reservations
        assert life.cluster.groups[GangKey(NAMESPACE, "b")].status["phase"] == "Bound"


@pytest.mark.parametrize("is_waiting", [True, False])
async def test_a_deletion_that_is_answered_with_a_conflict_without_a_cause_is_asked_for_again(
    *, is_waiting: bool
) -> None:
    """Nothing tells when it would succeed, and asking at once would go on for ever."""
    answer = ANSWERS["a conflict without a cause"]
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=2), refuse=never("release", "a", answer))

    def lose_a_member(call: str) -> None:
        if call == "reserve" and is_waiting:
            life.cluster.before = lambda _: None
            life.cluster.delete_pod("a-1")
            life.watch.catch_up()

    life.cluster.before = lose_a_member
    await pass_time(life, 60)
    assert 4 <= refusals_of(life, "release") <= 8
    assert life.cluster.calls.count("say_of_pod") < 12
    relent(life)
    await pass_time(life, 60)
    assert not life.cluster.reservations
    assert not life.state.refusals.snapshot(life.clock.now), "the gang may reserve at once"


async def test_a_binding_that_cannot_be_settled_is_asked_about_rarely() -> None:
    """Though its PodGroup is gone."""
    life = a_life(node("n1", cpu=4), gang("a").of(2, cpu=1), refuse=nothing)
    broken = Fault(errors.Unavailable("failed calling webhook", status=500))
    life.cluster.fault = lambda _, name: broken if name in ("bind", "say_of_pod") else None
    await turns(life, 2)
    life.cluster.delete_group("a")
    life.cluster.collect()
    life.watch.catch_up()
    before = life.cluster.calls.count("say_of_pod")
    await pass_time(life, 20)
    assert life.cluster.calls.count("say_of_pod") - before <= 12


async def test_a_clock_that_goes_back_by_hours_holds_nobody_off() -> None:
    life = a_life(
        node("n1", cpu=4), gang("a").of(2, cpu=1), refuse=never("bind", "a", ANSWERS["a quota"])
    )
    await pass_time(life, 20)
    reserve_calls = life.cluster.calls.count("reserve")
    relent(life)
    life.clock.now -= 2 * 3600.0
    await turns(life, 3)
    assert life.cluster.calls.count("reserve") >= reserve_calls
    assert scenarios.places(life.cluster, "a") == ["n1", "n1"]
