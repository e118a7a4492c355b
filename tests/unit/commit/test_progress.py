"""When a Reservation comes to its end, and whether anybody waits for that."""

from dataclasses import replace

from tutti.commit import steps
from tutti.commit.progress import (
    Await,
    Bind,
    BindVolumes,
    Clear,
    Finish,
    Preempt,
    Release,
    Step,
    Trim,
    VictimProgress,
    members_by_uid,
    next_steps,
)
from tutti.model.cluster import (
    STUCK_SECONDS,
    ApiRefusal,
    Member,
    Phase,
    ReservedVictim,
    Role,
    SlotReservation,
    Snapshot,
)
from tutti.model.keys import NodeName, Uid
from tutti.model.queues import Queue, QueueRecord
from tutti.model.shapes import Template
from tutti.model.volumes import Claim, ClaimKey, Storage, Volume, VolumeChoice, VolumeRequest

from ...harness.builders import GangBuilder, Part, gang, node, reservation, snapshot_of, space

ROOM = node("n1", cpu=9)
TWO = gang("a").of(2, cpu=1)
WHOLE = TWO.bound_on("n1", "n1")
TERM = "t"


def step(
    of: GangBuilder, *, is_refused: bool = False, slots: tuple[SlotReservation, ...] = ()
) -> Step:
    held = replace(reservation(TWO, ("a-0", "n1"), ("a-1", "n1")), term=TERM, slots=slots)
    refused = {held.uid: ApiRefusal("deletion of its Reservation refused: no", 30.0)}
    picture = replace(snapshot_of(ROOM, of, held), api_refusals=refused if is_refused else {})
    ((_, found),) = next_steps(picture, TERM)
    return found


def test_that_of_a_whole_gang_is_deleted_whenever() -> None:
    assert step(WHOLE) == Clear()


def test_that_of_a_gang_that_is_not_whole_by_now_is_deleted_before_anything_is_said() -> None:
    assert step(WHOLE.only("a-1", phase=Phase.FAILED)) == Finish()
    assert step(WHOLE.but(min_member=3)) == Finish()


def test_that_of_members_which_have_ended_too_for_it_says_of_which_run_they_are() -> None:
    assert step(WHOLE.only("a-1", phase=Phase.SUCCEEDED)) == Finish()


def test_that_of_a_member_which_may_have_been_bound_unseen_is_not_deleted_without_a_look() -> None:
    """Who is whole without it may be whole with it: its room is free once it is known."""
    gone = WHOLE.but(members=WHOLE.made.members[:1], min_member=1)
    assert step(gone) == Finish()


def test_one_that_holds_room_for_others_too_is_deleted_before_anything_is_said() -> None:
    ended = WHOLE.but(terminating=True)
    assert step(ended, slots=(SlotReservation(NodeName("n1"), "worker", 1),)) == Finish()
    assert step(ended) == Clear()


def test_one_that_could_not_be_deleted_twice_comes_before_the_reports_which_speak_of_it() -> None:
    assert step(WHOLE, is_refused=True) == Finish()


N1 = NodeName("n1")


def claim(name: str, **changes: object) -> Claim:
    key, request = ClaimKey("ml", name), VolumeRequest("disk", 1)
    made = Claim(key, storage_class="disk", request=request, uid=f"u-{name}", version="7")
    return replace(made, **changes)  # type: ignore[arg-type]


CHOICES = tuple(VolumeChoice(name, f"u-{name}", "7", N1) for name in ("a-0", "a-1"))
SELECTED = {"selected_node": N1, "version": "8"}


def with_claims(of: GangBuilder, *claims: Claim, now: float = 0.0) -> Snapshot:
    """A Reservation for both members, of which those without a node have a claim of their name."""

    def wait(member: Member) -> Member:
        name = member.key.name
        is_open = member.node is None and any(c.key.name == name for c in claims)
        return replace(member, claims=(name,), unbound_claims=(name,) if is_open else ())

    held = replace(reservation(TWO, ("a-0", "n1"), ("a-1", "n1")), term=TERM, volumes=CHOICES)
    picture = snapshot_of(ROOM, of.where(wait), held)
    return replace(picture, storage=Storage(claims), taken_at=now)


def test_a_claim_that_members_share_is_bound_once() -> None:
    def share(member: Member) -> Member:
        return replace(member, claims=("a-0",), unbound_claims=("a-0",))

    held = reservation(TWO, ("a-0", "n1"), ("a-1", "n1"))
    held = replace(held, term=TERM, volumes=CHOICES[:1])
    picture = replace(snapshot_of(ROOM, TWO.where(share), held), storage=Storage((claim("a-0"),)))
    ((_, found),) = next_steps(picture, TERM)
    assert found == BindVolumes(CHOICES[:1])


def test_claims_are_bound_before_any_pod_is() -> None:
    ((_, found),) = next_steps(with_claims(TWO, claim("a-0"), claim("a-1", **SELECTED)), TERM)
    assert found == BindVolumes(CHOICES[:1])
    ((_, found),) = next_steps(with_claims(TWO, claim("a-1", **SELECTED)), TERM)
    assert found == BindVolumes(())
    bound = claim("a-1", is_bound=True, volume="pv")
    waiting = with_claims(TWO, bound)
    ((_, found),) = next_steps(waiting, TERM)
    assert found == BindVolumes(())
    shown = replace(waiting, storage=Storage((bound,), (Volume("pv"),)))
    ((_, found),) = next_steps(shown, TERM)
    assert isinstance(found, Bind)


def test_a_gang_of_which_a_claim_gets_no_volume_is_released_and_its_member_backs_off() -> None:
    given_up = with_claims(TWO, claim("a-0"), claim("a-1", version="9"))
    taken = next_steps(given_up, TERM)
    ((held, found),) = taken
    member = given_up.gangs[0].members[1]
    assert isinstance(found, Release)
    assert found.failed == member.uid
    sentence = "the provisioner of class disk made no volume for claim a-1 on n1; planning again"
    assert steps.failures(taken) == [(held.gang, member.uid, sentence)]
    assert steps.choices(taken) == []


def test_claims_have_a_time_limit() -> None:
    waiting = with_claims(TWO, claim("a-0", **SELECTED), now=20.0)
    ((_, found),) = next_steps(waiting, TERM, volume_seconds=21.0)
    assert found == BindVolumes(())
    ((_, found),) = next_steps(waiting, TERM, volume_seconds=20.0)
    assert isinstance(found, Release)
    assert found.sentence.endswith("has not made a volume for claim a-0 in time; planning again")


def test_a_repair_without_its_volume_ends_and_the_members_that_run_stay() -> None:
    half = TWO.where(lambda m: replace(m, node=N1) if m.key.name == "a-0" else m)
    given_up = with_claims(half, claim("a-1", version="9"))
    taken = next_steps(given_up, TERM)
    ((held, found),) = taken
    assert isinstance(found, Finish)
    assert found.failed == given_up.gangs[0].members[1].uid
    (ended,) = steps.ended(taken)
    assert ended.rest is None
    assert [*ended.ended_volumes] == [*held.volumes]


def _awaiting_a_third(of: GangBuilder) -> GangBuilder:
    """The gang, of which each member is a worker, and one more may come."""
    template = Template(of.made.members[0].shape)
    worker = Role("worker", 3, template=template)
    return of.where(lambda m: replace(m, role="worker")).but(roles=(worker,), min_member=3)


def test_room_for_absent_members_stays_when_one_that_came_gets_no_volume() -> None:
    half = TWO.where(lambda m: replace(m, node=N1) if m.key.name == "a-0" else m)
    given_up = with_claims(_awaiting_a_third(half), claim("a-1", version="9"))
    slots = (SlotReservation(N1, "worker", 1),)
    (held,) = given_up.reservations
    taken = next_steps(replace(given_up, reservations=(replace(held, slots=slots),)), TERM)
    ((_, found),) = taken
    assert isinstance(found, Trim)
    assert found.failed is not None
    (ended,) = steps.ended(taken)
    assert ended.rest is not None
    assert ended.rest.volumes == ()
    assert [*ended.ended_volumes] == [*held.volumes]
    assert steps.failures(taken)[0][2] == steps.UNFIT


def test_a_victim_that_has_gone_and_runs_again_is_not_ended_again() -> None:
    """Its later members end with those that a claim names, as long as one of these holds room."""
    low = gang("low").of(4, cpu=1).bound_on("n1", "n1", "n1", "n1")
    first, second, *later = low.made.members
    victim = ReservedVictim(low.key, low.made.uid, (first.uid, second.uid), is_whole=True)

    def progress(*members: Member) -> VictimProgress:
        return VictimProgress.of(victim, snapshot_of(low.but(members=members)))

    leaving = replace(first, terminating=True)
    assert progress(leaving, *later) == VictimProgress((*later,), (leaving,), is_begun=True)
    assert progress(*later) == VictimProgress((), (), is_begun=True)
    over = replace(first, phase=Phase.FAILED)
    assert progress(over, *later) == VictimProgress((), (), is_begun=True)
    extra = replace(victim, is_whole=False)
    of = snapshot_of(low)
    assert VictimProgress.of(extra, of) == VictimProgress((first, second), (), is_begun=False)


def test_room_is_looked_at_only_if_a_gang_has_enough_members_once_all_are_bound() -> None:
    """Failed members are still named by the Reservation, and a bound member is not."""
    four = gang("a").of(4, cpu=1).needing(3)
    held = reservation(four, ("a-0", "n1"), ("a-1", "n1"), ("a-3", "n1"))

    def starts(of: GangBuilder) -> list[list[str]]:
        picture = snapshot_of(ROOM, of, replace(held, term=TERM))
        of_all = next_steps(picture, TERM)
        (bind,) = (found for _, found in of_all)
        assert isinstance(bind, Bind)
        assert bind.relies_on is None
        known = members_by_uid(picture)
        return [
            [member.key.name for member, _ in start.members]
            for start in steps.starts(of_all, picture, known)
        ]

    assert starts(four) == [["a-0", "a-1", "a-3"]]
    runs = four.only("a-2", node=NodeName("n1"), bound_at=0.0)
    assert starts(runs) == [["a-0", "a-1", "a-3"]]
    failed = runs.only("a-0", phase=Phase.FAILED).only("a-1", phase=Phase.FAILED)
    assert starts(failed) == []


def limited(*parts: Part, limit: int = 2) -> Step:
    """The step of the claim of the gang, of which each member has a node, below a limit."""
    held = replace(reservation(TWO, ("a-0", "n1"), ("a-1", "n1")), term=TERM, victims=())
    held = replace(held, record=QueueRecord("q", Uid("q-1"), 1.0, ()))
    queue = Queue("q", Uid("q-1"), limits=(("cpu", limit * 1000),))
    victims = [part for part in parts if isinstance(part, GangBuilder) and part.key.name == "low"]
    if victims:
        (low,) = victims
        uids = tuple(member.uid for member in low.members)
        victim = ReservedVictim(low.key, low.made.uid, uids, is_whole=True)
        held = replace(held, victims=(victim,))
    picture = snapshot_of(ROOM, space("ml"), queue, TWO.but(queue="q"), *parts, held)
    return next(step for of, step in next_steps(picture, TERM) if of.uid == held.uid)


def test_victims_end_where_a_limit_has_no_room_beside_them() -> None:
    low = gang("low").of(2, cpu=1).bound_on("n1", "n1").but(queue="q")
    step = limited(low)
    assert isinstance(step, Preempt)
    assert {member.key.name for member in step.members} == {"low-0", "low-1"}
    assert isinstance(limited(low, limit=4), Bind), "they are spared"


def test_a_claim_waits_for_what_leaves_below_its_limit_and_not_for_stuck_pods() -> None:
    leaves = gang("w").of(1, cpu=1).bound_on("n1").but(queue="q")
    assert isinstance(limited(leaves.each(terminating=True, gone_by=9.0)), Await)
    stuck = leaves.each(terminating=True, gone_by=-STUCK_SECONDS)
    step = limited(stuck)
    assert isinstance(step, Release)
    assert step.sentence.startswith("VictimStuck: pod ml/w-0 should have gone from n1 by now")
    assert isinstance(limited(stuck, limit=3), Bind)


def test_a_stuck_pod_of_a_victim_keeps_no_claim_that_has_room_without_it() -> None:
    low = gang("low").of(1, cpu=1).bound_on("n1").but(queue="q")
    low = low.each(terminating=True, gone_by=9.0)
    assert isinstance(limited(low, limit=3), Await)
    assert isinstance(limited(low.each(gone_by=-STUCK_SECONDS), limit=3), Bind)
