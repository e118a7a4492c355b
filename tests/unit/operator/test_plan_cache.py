"""When a plan is made again, and when not."""

from dataclasses import replace

import pytest

from tutti.model.cluster import ApiRefusal, Phase, SlotReservation, Snapshot
from tutti.model.decisions import Eviction, Plan
from tutti.model.keys import NodeName
from tutti.model.volumes import Claim, ClaimKey, Storage
from tutti.operator.plan_cache import UNPROVED_SECONDS, PlanCache
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness.builders import gang, node, peers, reservation, snapshot_of, space, term

WAITING = gang("a").of(2, cpu=8)
SEEN = snapshot_of(node("n1", cpu=4), WAITING)
NOTHING = Plan()
ALL = peers()


def kept(of: Snapshot, plan: Plan = NOTHING) -> PlanCache:
    memory = PlanCache()
    memory.keep(of, plan)
    return memory


def later(of: Snapshot, seconds: float = 5.0) -> Snapshot:
    return replace(of, taken_at=of.taken_at + seconds)


def test_a_plan_that_was_cut_short_is_made_again_soon_after_the_clock_went_back() -> None:
    seen = replace(SEEN, taken_at=10_000.0)
    memory = kept(seen, Plan(shortfall="the budget"))
    assert memory.plan(later(seen, -1.0)) is not None
    assert memory.plan(later(seen, -3600.0)) is None


def test_nothing_is_kept_at_first() -> None:
    assert PlanCache().plan(SEEN) is None


def test_where_nothing_has_changed_the_plan_is_the_same() -> None:
    made = plan(SEEN, BestFit(), BestFit(), Budget())
    assert kept(SEEN, made).plan(later(SEEN)) is made


@pytest.mark.parametrize(
    "changed",
    [
        snapshot_of(node("n1", cpu=5), WAITING),
        snapshot_of(node("n1", cpu=4), node("n2", cpu=1), WAITING),
        snapshot_of(node("n1", cpu=4), WAITING, gang("b").of(1, cpu=1)),
        snapshot_of(node("n1", cpu=4), WAITING.only("a-0", phase=Phase.FAILED)),
        snapshot_of(node("n1", cpu=4), WAITING, reservation(WAITING, ("a-0", "n1"))),
        snapshot_of(node("n1", cpu=4), WAITING, strays=gang("s").of(1).members),
        replace(SEEN, lost_reservations=frozenset({WAITING.made.uid})),
        replace(SEEN, api_refusals={WAITING.made.uid: ApiRefusal("no", 9.0)}),
        replace(SEEN, storage=Storage(claims=(Claim(ClaimKey("ml", "data")),))),
    ],
    ids=[
        "room",
        "node",
        "gang",
        "member",
        "reservation",
        "stray",
        "deleted reservation",
        "refusal",
        "claim",
    ],
)
def test_whatever_a_plan_is_made_of_makes_a_new_one(changed: Snapshot) -> None:
    assert kept(SEEN).plan(changed) is None


HOST = node("n1", cpu=4).labelled(hostname="n1")
APART = WAITING.apart("hostname")


@pytest.mark.parametrize(
    "changed",
    [
        snapshot_of(HOST.hosting("db", app="db"), APART, space("ml", team="a")),
        snapshot_of(HOST.hosting("db", app="web"), APART, space("ml", team="b")),
        snapshot_of(HOST.hosting("db", term("zone", ALL), app="web"), APART, space("ml", team="a")),
    ],
    ids=["labels", "namespace", "anti-affinity"],
)
def test_whom_a_rule_may_count_makes_a_new_plan(changed: Snapshot) -> None:
    before = snapshot_of(HOST.hosting("db", app="web"), APART, space("ml", team="a"))
    assert kept(before).plan(later(before)) is NOTHING
    assert kept(before).plan(changed) is None


def test_what_happens_to_settled_gangs_changes_no_plan() -> None:
    running = gang("b").of(1, cpu=1).bound_on("n1")
    settled = frozenset({running.made.uid})
    before = replace(snapshot_of(node("n1", cpu=4), WAITING, running), settled=settled)
    runs = running.only("b-0", phase=Phase.RUNNING)
    after = replace(snapshot_of(node("n1", cpu=4), WAITING, runs), settled=settled)
    assert kept(before).plan(after) is NOTHING


def test_what_happens_to_a_settled_gang_that_holds_room_makes_a_new_plan() -> None:
    running = gang("b").of(1, cpu=1).bound_on("n1")
    held = reservation(running, slots=[SlotReservation(NodeName("n1"), "", 1)])
    settled = frozenset({running.made.uid})
    before = replace(snapshot_of(node("n1", cpu=4), WAITING, running, held), settled=settled)
    fewer = running.but(absent_seconds=5.0)
    after = replace(snapshot_of(node("n1", cpu=4), WAITING, fewer, held), settled=settled)
    assert kept(before).plan(later(before)) is NOTHING
    assert kept(before).plan(after) is None


def test_a_plan_that_starts_or_evicts_something_is_not_kept() -> None:
    started = plan(snapshot_of(node("n1", cpu=16), WAITING), BestFit(), BestFit(), Budget())
    assert started.placements
    evicting = Plan(evictions=(Eviction(WAITING.made.key, WAITING.made.uid, 1, ()),))
    for made in (started, evicting):
        assert kept(SEEN, made).plan(SEEN) is None


def test_a_plan_is_kept_no_longer_than_to_the_moment_it_names() -> None:
    memory = kept(SEEN, Plan(next_change_at=SEEN.taken_at + 10.0))
    assert memory.plan(later(SEEN, 9.0)) is not None
    assert memory.plan(later(SEEN, 10.0)) is None


def test_a_search_that_was_cut_short_is_tried_again() -> None:
    memory = kept(SEEN, Plan(proved=False, shortfall="the budget ended"))
    assert memory.plan(later(SEEN, UNPROVED_SECONDS - 1.0)) is not None
    assert memory.plan(later(SEEN, UNPROVED_SECONDS)) is None


def test_what_was_kept_before_does_not_come_back() -> None:
    memory = kept(SEEN)
    memory.keep(SEEN, Plan(evictions=(Eviction(WAITING.made.key, WAITING.made.uid, 1, ()),)))
    assert memory.plan(SEEN) is None
