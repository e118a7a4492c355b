"""A gang that has others ended so that it starts: what is written when, and what crashes leave."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from tutti.kube import errors
from tutti.kube.codec import encode
from tutti.model.cluster import OnPartial, Phase, Reservation
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.keys import GangKey, PodKey, Uid
from tutti.model.owners import Owner
from tutti.model.queues import Preemption, Queue
from tutti.reporting.metrics import Metrics
from tutti.reporting.reporter import GROUPS_PER_CYCLE

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life

FULL = Preemption.FULL
JOB = Owner("Job", "low", "batch")
moments = pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])


def prioritized(owner: Owner | None = None) -> FakeCluster:
    """No queues: ``high`` waits for the room of ``low``, which lost less than ``other``."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4), node("n2", cpu=4))
    cluster.add(gang("small").of(2, cpu=1).bound_on("n1", "n1"))
    cluster.add(gang("low").of(2, cpu=2).bound_on("n1", "n2").each(owner=owner))
    cluster.add(gang("other").of(1, cpu=2).bound_on("n2"))
    cluster.add(gang("high").of(2, cpu=2).priority(5))
    return cluster


def guaranteed() -> FakeCluster:
    """Queue ``b`` borrows what ``a`` guarantees; then a gang of ``a`` comes."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4))
    for name in ("a", "b"):
        cluster.add_queue(Queue(name, Uid(f"queue-{name}"), guaranteed=(("cpu", 2000),)))
    return cluster


def waits(cluster: FakeCluster, name: str, queue: str, *, at: float) -> None:
    cluster.add(gang(name).of(2, cpu=1).but(created=at).each(created=at))
    cluster.change_group(name, queue=queue)


def terminating(cluster: FakeCluster) -> list[str]:
    return sorted(pod.key.name for pod in cluster.pods.values() if pod.terminating)


def on_nodes(cluster: FakeCluster) -> list[str]:
    return sorted(pod.key.name for pod in cluster.pods.values() if pod.node)


def calls(cluster: FakeCluster, name: str) -> int:
    return cluster.calls.count(name)


def told(cluster: FakeCluster, name: str) -> str:
    """What the ``Reserved`` condition of a gang says."""
    lines = cluster.groups[GangKey(NAMESPACE, name)].status["conditions"]
    return next(str(line["message"]) for line in lines if line["type"] == "Reserved")


def preempted(cluster: FakeCluster, name: str) -> str:
    """What the ``Preempted`` condition of a gang says; empty if it has none."""
    lines = cluster.groups[GangKey(NAMESPACE, name)].status.get("conditions", [])
    return next((str(line["message"]) for line in lines if line["type"] == "Preempted"), "")


def go(cluster: FakeCluster) -> None:
    """What terminates goes."""
    for name in terminating(cluster):
        cluster.delete_pod(name)


def dying_at(number: int, *, is_committed: bool) -> Callable[[int, str], Fault | None]:
    return lambda at, _: Fault(Crash(), is_committed) if at == number else None


async def turns(life: Life, *, number: int = 6) -> None:
    life.watch.catch_up()
    for _ in range(number):
        await life.turn()


async def live(
    cluster: FakeCluster, clock: Clock | None = None, preemption: Preemption = FULL
) -> Life:
    """Cycle until nothing is left to do but wait."""
    life = Life(cluster, clock or Clock(), preemption=preemption)
    await turns(life)
    return life


async def whole_life(cluster: FakeCluster, clock: Clock) -> FakeCluster:
    """From the claim to the start of the claimant."""
    await live(cluster, clock)
    go(cluster)
    await live(cluster, clock)
    return cluster


async def after_crashes(
    whole: FakeCluster, *, is_committed: bool
) -> AsyncIterator[tuple[int, FakeCluster, Clock]]:
    """The same life once for each call, with a crash at this call, and another leader after it."""
    for number in range(1, len(whole.calls) + 1):
        cluster, clock = prioritized(), Clock()
        cluster.fault = dying_at(number, is_committed=is_committed)
        with pytest.raises(Crash):
            await whole_life(cluster, clock)
        await whole_life(cluster, clock)
        yield number, cluster, clock


async def test_the_claim_is_written_down_before_the_first_victim_goes() -> None:
    cluster = prioritized()
    await live(cluster)
    assert terminating(cluster) == ["low-0", "low-1"]
    first = cluster.calls.index("evict")
    assert cluster.calls.index("reserve") < cluster.calls.index("read_lease") < first
    (claim,) = cluster.reservations.values()
    assert claim.victims is not None
    assert [victim.gang.name for victim in claim.victims] == ["low"]
    told_of = [(e["involvedObject"]["name"], e["reason"]) for e in cluster.events.values()]
    assert told_of.count(("low", "Preempted")) == 1
    (told_to_victim,) = [
        e["message"] for e in cluster.events.values() if e["reason"] == "Preempted"
    ]
    assert told_to_victim.startswith(
        "2 pods to evict, so that gang ml/high starts: its priority is higher; all that end for it "
    )
    assert told_to_victim.endswith(" s of the whole cluster's work, proved least")
    assert calls(cluster, "evict") == 2
    assert not cluster.broken


async def test_nobody_is_bound_before_all_victims_have_gone() -> None:
    cluster = prioritized()
    life = await live(cluster)
    cluster.delete_pod("low-0")
    await turns(life)
    assert not any(name.startswith("high") for name in on_nodes(cluster))
    cluster.delete_pod("low-1")
    await turns(life)
    assert on_nodes(cluster) == ["high-0", "high-1", "other-0", "small-0", "small-1"]
    assert not cluster.reservations
    assert not cluster.broken


async def test_the_room_of_a_claim_is_offered_to_nobody() -> None:
    cluster = prioritized()
    life = await live(cluster)
    cluster.add(gang("thief").of(1, cpu=2).priority(9).each(created=2000.0))
    cluster.delete_pod("low-0")
    await turns(life)
    assert "thief-0" not in on_nodes(cluster)
    go(cluster)
    await turns(life)
    assert {"high-0", "high-1"} <= {*on_nodes(cluster)}


async def test_a_guarantee_ends_the_gang_that_borrows_and_no_other() -> None:
    cluster, clock = guaranteed(), Clock()
    waits(cluster, "covered", "b", at=10.0)
    waits(cluster, "loan", "b", at=20.0)
    life = await live(cluster, clock, Preemption.RECLAIM)
    assert len(on_nodes(cluster)) == 4
    clock.now += 60
    waits(cluster, "new", "a", at=clock.now)
    await turns(life)
    assert terminating(cluster) == ["loan-0", "loan-1"]
    go(cluster)
    await turns(life)
    assert on_nodes(cluster) == ["covered-0", "covered-1", "new-0", "new-1"]
    assert [
        reservation.record.queue
        for reservation in cluster.reservations.values()
        if reservation.record
    ] == [*("b", "a")]
    assert not cluster.broken


async def test_nobody_starts_above_a_limit_because_nodes_have_room() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=30))
    cluster.add_queue(Queue("a", Uid("queue-a"), limits=(("cpu", 2000),)))
    life = Life(cluster, clock, preemption=FULL)
    for number in range(3):
        waits(cluster, f"g{number}", "a", at=clock.now)
        raised = GangKey(NAMESPACE, f"g{number}")
        cluster.groups[raised] = replace(cluster.groups[raised], priority_value=number)
        await turns(life)
        clock.now += 60
        await turns(life)
        assert len(on_nodes(cluster)) == 2
        assert len(terminating(cluster)) == (2 if number else 0)
        go(cluster)
        await turns(life)
        assert on_nodes(cluster) == [f"g{number}-0", f"g{number}-1"]
    assert not cluster.broken


@pytest.mark.parametrize("by_queue", [False, True])
async def test_with_the_setting_off_nobody_ends(*, by_queue: bool) -> None:
    cluster = guaranteed()
    waits(cluster, "covered", "b", at=10.0)
    waits(cluster, "loan", "b", at=20.0)
    setting = FULL if by_queue else Preemption.OFF
    cluster.change_queue("a", preemption=Preemption.OFF if by_queue else FULL)
    life = await live(cluster, None, setting)
    waits(cluster, "new", "a", at=1000.0)
    await turns(life)
    assert not calls(cluster, "evict")
    assert not terminating(cluster)


async def test_shadow_mode_says_who_would_end_and_ends_nobody() -> None:
    cluster = prioritized()
    limits = RolloutLimits(Mode.PAUSED)
    life = Life(cluster, Clock(), rollout_limits=limits, preemption=FULL)
    await turns(life)
    assert "it starts once 2 pods of ml/low have ended: its priority is higher" in told(
        cluster, "high"
    )
    assert not calls(cluster, "reserve")


@moments
async def test_a_crash_at_any_call_ends_the_same_gangs_and_starts_the_claimant(
    *, is_committed: bool
) -> None:
    whole = await whole_life(prioritized(), Clock())
    async for number, cluster, _ in after_crashes(whole, is_committed=is_committed):
        assert on_nodes(cluster) == on_nodes(whole), number
        assert not cluster.reservations, number
        assert calls(cluster, "evict") <= 4, number
        assert not cluster.broken, number


@moments
@pytest.mark.parametrize("status", [0, 429, 500])
async def test_a_call_without_a_good_answer_ends_as_if_it_had_one(
    status: int, *, is_committed: bool
) -> None:
    whole = prioritized()
    await whole_life(whole, Clock())
    for number in range(1, len(whole.calls) + 1):
        cluster, clock = prioritized(), Clock()
        away = errors.Unavailable("away.", status=status)
        cluster.fault = lambda at, _, n=number, why=away: (  # type: ignore[misc]
            Fault(why, is_committed) if at == n else None
        )
        for _ in range(4):
            life = await live(cluster, clock)
            go(cluster)
            clock.now += 40
            await turns(life)
        assert on_nodes(cluster) == on_nodes(whole), number
        assert not cluster.reservations, number
        assert not cluster.broken, number


async def test_another_replica_goes_on_with_a_claim() -> None:
    cluster, clock = prioritized(), Clock()
    first = Life(cluster, clock, preemption=FULL)
    cluster.before = lambda name: (
        None if name != "evict" or cluster.lease.holder != "tutti-0" else _take_over(cluster)
    )
    await first.turn()
    second = Life(cluster, clock, identity="tutti-1", preemption=FULL)
    await turns(second)
    go(cluster)
    await turns(second)
    assert {"high-0", "high-1", "other-0"} <= {*on_nodes(cluster)}
    assert not cluster.broken


def _take_over(cluster: FakeCluster) -> None:
    cluster.take_lease("tutti-1")


async def test_a_replica_that_preempts_nobody_gives_the_claim_up() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    assert cluster.reservations
    cluster.fault = lambda _number, _name: None
    await live(cluster, clock, Preemption.OFF)
    assert not cluster.reservations
    assert not terminating(cluster)


async def test_a_budget_that_refuses_the_first_member_makes_the_plan_choose_others() -> None:
    cluster = prioritized()
    cluster.protected = {"low-0", "low-1"}
    await live(cluster)
    assert terminating(cluster) == ["other-0", "small-0", "small-1"]
    (claim,) = cluster.reservations.values()
    assert [victim.gang.name for victim in claim.victims or ()] == ["other", "small"]


async def test_a_budget_that_refuses_a_later_member_is_asked_once_more() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.protected = {"low-1"}
    life = await live(cluster, clock)
    assert terminating(cluster) == ["low-0"]
    assert calls(cluster, "evict") == 2
    clock.now += 30
    cluster.protected = set()
    await turns(life)
    assert terminating(cluster) == ["low-0", "low-1"]


async def test_a_victim_is_waited_for_until_it_is_asked_once_more_and_not_longer() -> None:
    """Otherwise the next cycle would be due at once, again and again."""
    cluster, clock = prioritized(), Clock()
    cluster.protected = {"low-1"}
    life = await live(cluster, clock)
    retry = life.cycle._commit.evictor.next_retry
    assert retry() == 30
    clock.now += 30
    cluster.protected = set()
    due_in = await life.turn()
    assert terminating(cluster) == ["low-0", "low-1"]
    assert retry() is None
    assert due_in is None or due_in > 0


async def test_a_claim_is_given_up_if_the_budget_refuses_again() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.protected = {"low-1"}
    life = await live(cluster, clock)
    clock.now += 30
    await turns(life)
    assert "low-1" in on_nodes(cluster)
    claims = [reservation.victims for reservation in cluster.reservations.values()]
    assert all(victim.gang.name != "low" for victims in claims for victim in victims or ())


@pytest.mark.parametrize("is_planned", [False, True], ids=["before", "after"])
async def test_no_eviction_is_sent_to_a_gang_of_which_a_budget_would_keep_a_part(
    *, is_planned: bool
) -> None:
    """A tenant may write the budget before the claim is written down, or after it."""
    cluster, clock = prioritized(), Clock()
    for name in ("low-0", "low-1"):
        cluster.change_pod(name, labels=builders.labels(app="low"))
    if is_planned:
        cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
        with pytest.raises(Crash):
            await live(cluster, clock)
        cluster.fault = lambda _number, _name: None
        assert [v.gang.name for v in next(iter(cluster.reservations.values())).victims or ()] == [
            "low"
        ]
    cluster.put_budget("keep", 1, app="low")
    await live(cluster, clock)
    assert terminating(cluster) == ["other-0", "small-0", "small-1"]
    assert {"low-0", "low-1"} <= {*on_nodes(cluster)}
    assert not cluster.broken


async def test_a_victim_of_which_a_pod_has_succeeded_by_itself_has_not_begun_to_end() -> None:
    """A budget that would keep a part of it keeps all of it."""
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=3))
    cluster.add(gang("low").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    cluster.add(gang("high").of(3, cpu=1).priority(5))
    for name in ("low-0", "low-1", "low-2"):
        cluster.change_pod(name, labels=builders.labels(app="low"))
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    cluster.fault = lambda _number, _name: None
    cluster.change_pod("low-0", phase=Phase.SUCCEEDED)
    cluster.put_budget("keep", 1, app="low")
    await live(cluster, clock)
    assert terminating(cluster) == []
    assert not cluster.reservations


async def test_what_a_tenant_declares_after_the_start_protects_no_borrower() -> None:
    """Neither an edit of the PodGroup does, nor another PodGroup of the same name."""
    for is_made_again in (False, True):
        cluster, clock = guaranteed(), Clock()
        for name in ("base", "loan"):  # the first by name is covered
            waits(cluster, name, "b", at=1000.0)
        await live(cluster, clock)
        if is_made_again:
            cluster.delete_group("loan")
            cluster.collect()
            cluster.add_group(gang("loan").of(2, cpu=1))
        cluster.change_group("loan", queue="b", is_protected=True)
        waits(cluster, "claims", "a", at=clock.now)
        await live(cluster, clock)
        assert terminating(cluster) == ["loan-0", "loan-1"]
        assert not cluster.broken


async def test_a_gang_that_said_never_at_its_start_runs_on_and_its_record_says_so() -> None:
    cluster, clock = guaranteed(), Clock()
    waits(cluster, "keeps", "b", at=1000.0)
    cluster.change_group("keeps", is_protected=True)
    await live(cluster, clock)
    (held,) = cluster.reservations.values()
    assert held.record is not None
    assert held.record.is_protected
    waits(cluster, "large", "b", at=999.0)
    cluster.change_group("large", is_protected=True)
    await live(cluster, clock)
    assert {"large-0", "large-1"}.isdisjoint(on_nodes(cluster))
    assert "queue b does not cover it by its own guarantee" in told(cluster, "large")
    cluster.change_group("large", is_protected=False)
    cluster.change_group("keeps", is_protected=False)
    await live(cluster, clock)
    assert {"large-0", "large-1"} <= {*on_nodes(cluster)}
    waits(cluster, "claims", "a", at=clock.now)
    await live(cluster, clock)
    assert terminating(cluster) == ["large-0", "large-1"]


async def test_a_gang_ends_whole_within_its_budget() -> None:
    cluster = prioritized()
    for name in ("low-0", "low-1"):
        cluster.change_pod(name, labels=builders.labels(app="low"))
    cluster.put_budget("keep", 2, app="low")
    await live(cluster)
    assert terminating(cluster) == ["low-0", "low-1"]
    assert cluster.budgets["keep"].value.allowed == 0


def two_victims(*budgeted: str) -> FakeCluster:
    """A gang that needs the room of ``a`` and of ``b``, which have budgets that allow their end."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4), node("n2", cpu=4))
    cluster.add(gang("a").of(1, cpu=4).bound_on("n1"), gang("b").of(1, cpu=4).bound_on("n2"))
    for name in budgeted:
        cluster.change_pod(f"{name}-0", labels=builders.labels(app=name))
        cluster.put_budget(name, 1, app=name)
    cluster.add(gang("high").of(2, cpu=4).priority(5))
    return cluster


async def crashed_at_the_first_eviction(cluster: FakeCluster, clock: Clock) -> None:
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    cluster.fault = lambda _number, _name: None
    assert [len(claim.victims or ()) for claim in cluster.reservations.values()] == [2]


async def test_no_victim_goes_if_a_budget_keeps_a_later_one() -> None:
    """The budget of the second victim is tightened after the claim is written down."""
    cluster, clock = two_victims("b"), Clock()
    await crashed_at_the_first_eviction(cluster, clock)
    cluster.put_budget("b", 0, app="b")
    await live(cluster, clock)
    assert not terminating(cluster)
    assert not cluster.reservations


async def test_no_victim_goes_if_a_budget_no_longer_allows_the_end_of_all() -> None:
    cluster, clock = two_victims(), Clock()
    for name in ("a", "b"):
        cluster.change_pod(f"{name}-0", labels=builders.labels(app="both"))
    cluster.put_budget("both", 2, app="both")
    await crashed_at_the_first_eviction(cluster, clock)
    cluster.put_budget("both", 1, app="both")
    await live(cluster, clock)
    assert not terminating(cluster)


async def test_a_budget_that_is_tightened_between_two_victims_keeps_the_second_one_whole() -> None:
    cluster, clock = two_victims("b"), Clock()
    await crashed_at_the_first_eviction(cluster, clock)
    cluster.put_budget("a", 1, app="a")
    cluster.change_pod("a-0", labels=builders.labels(app="a"))

    life = Life(cluster, clock, preemption=FULL)

    def tighten(name: str) -> None:
        if name == "evict" and not terminating(cluster):
            cluster.put_budget("b", 0, app="b")
            life.watch.catch_up()

    cluster.before = tighten
    await turns(life)
    assert terminating(cluster) == ["a-0"]
    assert not cluster.reservations


async def test_victims_with_budgets_are_asked_first() -> None:
    """The API server may refuse what the watch does not show yet."""
    cluster = two_victims("b")
    cluster.protected = {"b-0"}
    await live(cluster)
    assert not terminating(cluster)
    assert not cluster.reservations


async def test_no_other_victim_goes_while_one_that_has_not_begun_is_to_be_asked_once_more() -> None:
    cluster, clock = two_victims("b"), Clock()
    busy = errors.Unavailable("busy.", status=500)
    cluster.fault = lambda _, name: Fault(busy) if name == "evict" else None
    life = await live(cluster, clock)
    assert calls(cluster, "evict") == 1
    cluster.fault = lambda _number, _name: None
    await turns(life)
    assert not terminating(cluster)
    clock.now += 30
    await turns(life)
    assert terminating(cluster) == ["a-0", "b-0"]


async def test_no_other_victim_begins_to_end_while_a_part_of_one_stays() -> None:
    """If that part is refused again, the claim is given up, and the others have lost nothing."""
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=4), node("n2", cpu=4))
    cluster.add(gang("a").of(2, cpu=2).bound_on("n1", "n1"), gang("b").of(1, cpu=4).bound_on("n2"))
    for n in range(2):
        cluster.change_pod(f"a-{n}", labels=builders.labels(app="a"))
    cluster.put_budget("a", 2, app="a")
    cluster.add(gang("high").of(2, cpu=4).priority(5))
    cluster.protected = {"a-1"}
    life = await live(cluster, clock)
    await turns(life)
    assert terminating(cluster) == ["a-0"]
    clock.now += 30
    await turns(life)
    assert terminating(cluster) == ["a-0"]
    assert not cluster.reservations


async def test_victims_of_one_job_do_not_end_together_if_the_job_would_fail() -> None:
    cluster = two_victims()
    for name in ("a-0", "b-0"):
        cluster.change_pod(name, owner=Owner("Job", "both", "batch"))
    cluster.put_job("both", 2)
    await live(cluster)
    assert not terminating(cluster)
    cluster.put_job("both", 3)
    await live(cluster, Clock())
    assert terminating(cluster) == ["a-0", "b-0"]


async def test_a_gang_that_is_refused_stays_protected_when_its_queue_reaches_a_limit() -> None:
    cluster = FakeCluster()
    state = Life(cluster, Clock()).state
    state.protect(Uid("x"), 3600.0)
    state.protect(Uid("x"), 30.0)
    assert state.protected == {"x": 3600.0}


async def test_evictions_count_also_where_an_old_crd_drops_the_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics, cluster, encoded = Metrics(), prioritized(), encode.reservation

    def without_right(reservation: Reservation) -> dict[str, Any]:
        body = dict[str, Any](encoded(reservation))
        body["spec"].get("claim", {}).pop("right", None)
        return body

    monkeypatch.setattr(encode, "reservation", without_right)
    await Life(cluster, Clock(), preemption=FULL, metrics=metrics).settle()
    assert counted(metrics) == len(terminating(cluster)) > 0


def counted(metrics: Metrics) -> float:
    """How many pods have ended for others, by the metrics."""
    lines = metrics.text().decode().splitlines()
    name = "tutti_queue_evictions_total{"
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def limited(cluster: FakeCluster, clock: Clock, **limits: Any) -> Life:
    return Life(cluster, clock, preemption=FULL, rollout_limits=RolloutLimits(**limits))


async def test_a_cycle_ends_no_more_pods_than_its_limit_and_the_next_one_goes_on() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=2), node("n2", cpu=2))
    for at, name in enumerate(("x", "y"), start=1):
        cluster.add(gang(name).of(2, cpu=1).bound_on(f"n{at}", f"n{at}"))
        cluster.add(gang(f"high-{name}").of(1, cpu=2).priority(5))
    life = limited(cluster, clock, evictions=2)
    assert await life.turn() == 0.1
    assert len(terminating(cluster)) == 2
    assert await life.turn() != 0.1
    assert len(terminating(cluster)) == 4
    assert not cluster.broken


async def test_of_a_queue_no_more_pods_end_within_an_hour_than_its_limit() -> None:
    """Whoever waits says so; a gang that alone is larger than the limit ends by itself."""
    cluster, clock = prioritized(), Clock()
    cluster.change_pod("other-0", bound_at=0.0)  # it has lost more than the larger gang
    life = limited(cluster, clock, hourly_evictions=1)
    await turns(life)
    assert terminating(cluster) == ["low-0", "low-1"]
    go(cluster)
    await turns(life)
    cluster.add(gang("more").of(1, cpu=2).priority(9).each(created=clock.now))
    await turns(life)
    assert not terminating(cluster)
    clock.now += 3600
    await turns(life)
    assert terminating(cluster) == ["small-0", "small-1"]


async def test_a_claim_that_is_not_written_down_counts_for_no_limit() -> None:
    """Whether the API server refuses it or is away; "an hour" would be said of pods that run."""
    for problem in (errors.Refused("no.", status=403), errors.Unavailable("away.", status=0)):
        cluster, clock, metrics = two_victims(), Clock(), Metrics()
        for name in ("a-0", "b-0"):
            cluster.change_pod(name, bound_at=clock.now - 60)
        cluster.fault = lambda _, name, why=problem: (  # type: ignore[misc]
            Fault(why) if name == "reserve" else None
        )
        rollout_limits = RolloutLimits(hourly_evictions=2)
        life = Life(cluster, clock, preemption=FULL, rollout_limits=rollout_limits, metrics=metrics)
        await turns(life)
        assert not counted(metrics)
        cluster.fault = lambda _number, _name: None
        clock.now += 60
        await turns(life)
        assert terminating(cluster) == ["a-0", "b-0"]
        assert counted(metrics) == 2
        assert "ended within the last hour" not in told(cluster, "high")


async def test_what_ends_for_a_claim_of_another_leader_is_counted() -> None:
    cluster, clock, metrics = two_victims(), Clock(), Metrics()
    await crashed_at_the_first_eviction(cluster, clock)
    rollout_limits = RolloutLimits(hourly_evictions=2)
    life = Life(cluster, clock, preemption=FULL, rollout_limits=rollout_limits, metrics=metrics)
    await turns(life)
    assert counted(metrics) == 2
    cluster.add(node("n3", cpu=4))
    cluster.add(gang("c").of(1, cpu=4).bound_on("n3"))
    cluster.add(gang("more").of(1, cpu=4).priority(5).each(created=clock.now))
    await turns(life)
    assert terminating(cluster) == ["a-0", "b-0"]
    go(cluster)
    clock.now += 3600
    await turns(life)
    assert terminating(cluster) == ["c-0"]


async def test_a_paused_operator_does_not_go_on_for_a_limit() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=2))
    for name in ("x", "y"):
        cluster.add(gang(name).of(1, cpu=1).bound_on("n1"))
        cluster.add(gang(f"high-{name}").of(1, cpu=1).priority(5))
    rollout_limits = RolloutLimits(Mode.PAUSED, evictions=1)
    life = Life(cluster, clock, preemption=FULL, rollout_limits=rollout_limits)
    assert await life.turn() != 0.1
    assert "but not yet: this cycle ends 1 pod already, and at most 1 may" in " ".join(
        told(cluster, f"high-{name}") for name in ("x", "y")
    )


async def test_a_job_that_would_fail_is_no_victim() -> None:
    cluster = prioritized(JOB)
    cluster.put_job("low", 2)
    await live(cluster)
    assert "low-0" not in terminating(cluster)
    assert terminating(cluster) == ["other-0", "small-0", "small-1"]


async def test_a_gang_whose_job_would_fail_borrows_only_once_the_job_tolerates_it() -> None:
    """Whether the Job has a limit that is too low, or does not exist."""
    for left in (2, None):
        cluster, clock = guaranteed(), Clock()
        for name in ("base", "loan"):  # the first by name is covered
            waits(cluster, name, "b", at=1000.0)
        for name in ("loan-0", "loan-1"):
            cluster.change_pod(name, owner=Owner("Job", "loan", "batch"))
        if left is not None:
            cluster.put_job("loan", left)
        life = await live(cluster, clock)
        clock.now += 60
        await turns(life)
        assert on_nodes(cluster) == ["base-0", "base-1"]
        assert told(cluster, "loan").startswith("Job loan ")
        cluster.put_job("loan", 3)
        await live(cluster, clock)
        assert len(on_nodes(cluster)) == 4
        waits(cluster, "new", "a", at=2000.0)
        await live(cluster, clock)
        assert terminating(cluster) == ["loan-0", "loan-1"]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["its PodGroup stays", "goes, too"])
async def test_a_claim_exceeds_no_limit_while_other_pods_of_its_queue_terminate(
    *, is_deleted: bool
) -> None:
    """The node has room for both."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=6))
    amounts = (("cpu", 2000),)
    cluster.add_queue(Queue("a", Uid("queue-a"), guaranteed=amounts, limits=amounts))
    cluster.add_queue(Queue("b", Uid("queue-b"), limits=(("cpu", 9000),)))
    for name, queue, size in (("old", "a", 2), ("lent", "b", 4)):
        cluster.add(gang(name).of(size, cpu=1).but(created=0.0).each(created=0.0))
        cluster.change_group(name, queue=queue)
    await live(cluster)
    assert len(on_nodes(cluster)) == 6
    for name in ("old-0", "old-1"):
        cluster.change_pod(name, terminating=True, gone_by=1e9)
    if is_deleted:
        cluster.delete_group("old")
    for name in ("lent-0", "lent-1"):
        cluster.delete_pod(name)
    waits(cluster, "new", "a", at=5.0)
    life = await live(cluster)
    assert "new-0" not in on_nodes(cluster)
    for name in ("old-0", "old-1"):
        cluster.delete_pod(name)
    await turns(life)
    assert {"new-0", "new-1"} <= {*on_nodes(cluster)}
    assert not cluster.broken


async def test_a_claimant_that_goes_ends_nobody() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    cluster.fault = lambda _number, _name: None
    cluster.delete_pod("high-0")
    await live(cluster, clock)
    assert not terminating(cluster)
    assert not cluster.reservations


async def test_victims_that_have_begun_to_go_go_whole_if_the_claimant_goes() -> None:
    cluster, clock = prioritized(), Clock()
    evictions = 0

    def dies(_: int, name: str) -> Fault | None:
        nonlocal evictions
        evictions += name == "evict"
        return Fault(Crash()) if evictions == 2 else None

    cluster.fault = dies
    with pytest.raises(Crash):
        await live(cluster, clock)
    assert len(terminating(cluster)) == 1
    cluster.fault = lambda _number, _name: None
    cluster.delete_pod("high-0")
    await live(cluster, clock)
    assert terminating(cluster) == ["low-0", "low-1"]
    assert not cluster.reservations


async def test_a_victim_says_for_whom_it_ends_until_it_has_started_again() -> None:
    cluster, clock = prioritized(), Clock()
    life = await live(cluster, clock)
    clock.now += 10
    await turns(life)
    sentence = preempted(cluster, "low")
    assert sentence.startswith(
        "2 pods evicted, so that gang ml/high starts: its priority is higher; all that end for it "
    )
    assert sentence.endswith(" s of the whole cluster's work, proved least")
    assert [preempted(cluster, name) for name in ("high", "small", "other")] == [""] * 3
    go(cluster)
    for member in gang("low").of(2, cpu=2).each(created=clock.now).made.members:
        cluster.add_pod(member)
    clock.now += 10
    await turns(life)
    assert not cluster.reservations
    assert preempted(cluster, "low") == sentence
    for name in ("high-0", "high-1"):
        cluster.change_pod(name, phase=Phase.SUCCEEDED)
    clock.now += 10
    await turns(life)
    assert preempted(cluster, "low") == ""
    events = [e for e in cluster.events.values() if e["involvedObject"]["name"] == "low"]
    assert [e["reason"] for e in events].count("Preempted") == 1


async def test_a_gang_that_has_lost_extras_says_so_until_none_waits_for_room() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=4))
    cluster.add(gang("wide").of(4, cpu=1).needing(2).bound_on("n1", "n1", "n1", "n1"))
    cluster.add(gang("high").of(2, cpu=1).priority(5))
    life = await live(cluster, clock)
    assert len(terminating(cluster)) == 2
    clock.now += 10
    await turns(life)
    sentence = preempted(cluster, "wide")
    assert sentence.startswith("2 extra pods evicted, so that gang ml/high starts: ")
    go(cluster)
    again = builders.member("wide-9", builders.shape(cpu=1))
    cluster.add_pod(replace(again, group="wide", created=clock.now))
    clock.now += 10
    await turns(life)
    assert not cluster.reservations
    assert preempted(cluster, "wide") == sentence
    for name in ("high-0", "high-1"):
        cluster.change_pod(name, phase=Phase.SUCCEEDED)
    clock.now += 10
    await turns(life)
    assert "wide-9" in on_nodes(cluster)
    assert preempted(cluster, "wide") == ""


async def test_a_victim_is_told_right_guarantee_and_cost_by_whichever_leader() -> None:
    cluster, clock = guaranteed(), Clock()
    waits(cluster, "covered", "b", at=10.0)
    waits(cluster, "loan", "b", at=20.0)
    await live(cluster, clock, Preemption.RECLAIM)
    clock.now += 60
    waits(cluster, "new", "a", at=clock.now)
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock, Preemption.RECLAIM)
    cluster.fault = lambda _number, _name: None
    cluster.events.clear()
    life = Life(cluster, clock, identity="tutti-1", preemption=Preemption.RECLAIM)
    await turns(life)
    clock.now += 10
    await turns(life)
    why = (
        "so that gang ml/new of queue a starts: a guarantee covers it (its queue guarantees 2 "
        "cpu); all that end for it lose 30.0 s of the whole cluster's work, proved least"
    )
    assert preempted(cluster, "loan") == f"2 pods evicted, {why}"
    (told_to_victim,) = [
        e["message"] for e in cluster.events.values() if e["reason"] == "Preempted"
    ]
    assert told_to_victim == f"2 pods to evict, {why}"


async def test_room_that_others_free_spares_the_victims() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    cluster.fault = lambda _number, _name: None
    for name in ("small-0", "small-1", "other-0"):
        cluster.change_pod(name, phase=Phase.SUCCEEDED)
    await live(cluster, clock)
    assert {"high-0", "high-1", "low-0", "low-1"} <= {*on_nodes(cluster)}
    assert not terminating(cluster)
    assert not cluster.reservations
    assert preempted(cluster, "low") == "", "it is not told that it has ended"


@pytest.mark.parametrize(
    ("finalizers", "words"),
    [
        ((), "its kubelet has not ended it: look at the node"),
        (("example.com/keep",), "it is held by example.com/keep, in its metadata.finalizers"),
    ],
    ids=["kubelet", "finalizer"],
)
@pytest.mark.parametrize("is_stray", [False, True])
async def test_a_pod_that_does_not_go_in_time_is_not_waited_for(
    finalizers: tuple[str, ...],
    words: str,
    *,
    is_stray: bool,
) -> None:
    """Also if its PodGroup has gone by then; until it is late, the claim stands."""
    cluster, clock = prioritized(), Clock()
    life = await live(cluster, clock)
    for name in ("low-0", "low-1"):
        cluster.change_pod(name, gone_by=clock.now + 30, finalizers=finalizers)
    if is_stray:
        cluster.delete_group("low")
    await turns(life)
    assert cluster.reservations
    clock.now += 95
    await turns(life)
    reasons = {event["message"] for event in cluster.events.values()}
    stuck = "VictimStuck: pod ml/low-0 should have gone from n1 by now"
    assert any(f"{stuck}; {words}" in message for message in reasons)
    assert terminating(cluster) == ["low-0", "low-1", "other-0", "small-0", "small-1"]


async def test_a_victim_is_not_repaired_while_it_goes_and_waits_afterwards() -> None:
    cluster = prioritized()
    cluster.change_group("low", on_partial=OnPartial.RELEASE)
    life = await live(cluster)
    cluster.delete_pod("low-0")
    again = builders.member("low-2", builders.shape(cpu=2))
    cluster.add_pod(replace(again, group="low", created=1500.0))
    await turns(life)
    assert cluster.pods[PodKey(NAMESPACE, "low-2")].node is None
    go(cluster)
    await turns(life)
    assert cluster.pods[PodKey(NAMESPACE, "low-2")].node is None
    assert {"high-0", "high-1"} <= {*on_nodes(cluster)}


async def test_a_pod_without_a_pod_group_that_claims_has_a_reservation() -> None:
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=4), gang("low").of(2, cpu=2).bound_on("n1", "n1"))
    cluster.add(builders.single("one", cpu=3).priority(7))
    life = await live(cluster)
    (claim,) = cluster.reservations.values()
    assert claim.gang.name == "one"
    go(cluster)
    await turns(life)
    assert on_nodes(cluster) == ["one"]
    assert not cluster.reservations


async def reclaimed(cluster: FakeCluster, clock: Clock) -> None:
    """From the claim by a guarantee to the start of the claimant."""
    for _ in range(2):
        await live(cluster, clock, Preemption.RECLAIM)
        go(cluster)
    await live(cluster, clock, Preemption.RECLAIM)


async def borrowed() -> FakeCluster:
    """Queue ``b`` runs on all of the cluster, and a gang of ``a`` waits."""
    cluster = guaranteed()
    waits(cluster, "covered", "b", at=10.0)
    waits(cluster, "loan", "b", at=20.0)
    await live(cluster, Clock(), Preemption.RECLAIM)
    waits(cluster, "new", "a", at=1000.0)
    return cluster


@moments
async def test_a_crash_at_any_call_of_a_reclaim_leaves_the_same_gangs_and_records(
    *, is_committed: bool
) -> None:
    whole = await borrowed()
    before = len(whole.calls)
    await reclaimed(whole, Clock())
    assert on_nodes(whole) == ["covered-0", "covered-1", "new-0", "new-1"]
    for number in range(before + 1, len(whole.calls) + 1):
        cluster, clock = await borrowed(), Clock()
        cluster.fault = dying_at(number, is_committed=is_committed)
        with pytest.raises(Crash):
            await reclaimed(cluster, clock)
        await reclaimed(cluster, clock)
        assert on_nodes(cluster) == on_nodes(whole), number
        queues = [
            reservation.record.queue
            for reservation in cluster.reservations.values()
            if reservation.record
        ]
        assert sorted(queues) == ["a", "b"], number
        assert all(reservation.is_spent for reservation in cluster.reservations.values()), number
        assert not cluster.broken, number


def lost(cluster: FakeCluster, name: str) -> int:
    """What ends of a gang have lost, as its status says."""
    return cluster.groups[GangKey(NAMESPACE, name)].lost_milliseconds


def returns(cluster: FakeCluster, clock: Clock, name: str) -> None:
    """The controller of a gang makes its pods again."""
    for member in gang(name).of(2, cpu=2).each(created=clock.now).made.members:
        cluster.add_pod(member)


async def test_what_an_end_loses_is_in_the_status_once_the_first_pod_goes() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.fault = lambda _, name: Fault(Crash()) if name == "evict" else None
    with pytest.raises(Crash):
        await live(cluster, clock)
    (claim,) = cluster.reservations.values()
    (victim,) = claim.victims or ()
    assert lost(cluster, "low") == 0
    cluster.fault = lambda _number, _name: None
    life = await live(cluster, clock)
    assert lost(cluster, "low") == victim.lost_milliseconds > 0
    go(cluster)
    returns(cluster, clock, "low")
    clock.now += 10
    await turns(life)
    assert not cluster.reservations
    assert lost(cluster, "low") == victim.lost_milliseconds
    assert [lost(cluster, name) for name in ("high", "small", "other")] == [0] * 3


async def test_a_gang_that_was_ended_is_spared_for_an_equal_one() -> None:
    """Without that the first by name would end, again and again."""
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=4))
    cluster.add(gang("x").of(2, cpu=2).bound_on("n1", "n1"))
    cluster.add(gang("first").of(1, cpu=4).priority(5).each(created=clock.now))
    life = await live(cluster, clock)
    assert terminating(cluster) == ["x-0", "x-1"]
    go(cluster)
    await turns(life)
    cluster.change_pod("first-0", phase=Phase.SUCCEEDED)
    for name in ("x", "y"):
        for member in gang(name).of(2, cpu=1).each(created=clock.now).made.members:
            cluster.add_pod(member)
    cluster.add_group(gang("y").of(2, cpu=1).but(created=clock.now))
    await turns(life)
    assert {"x-0", "x-1", "y-0", "y-1"} <= {*on_nodes(cluster)}
    clock.now += 450
    cluster.add(gang("second").of(2, cpu=1).priority(5).each(created=clock.now))
    await turns(life)
    assert terminating(cluster) == ["y-0", "y-1"]
    assert not cluster.broken


async def test_a_gang_that_ends_again_is_told_what_it_has_lost_before() -> None:
    cluster, clock = FakeCluster(), Clock()
    cluster.add(node("n1", cpu=4))
    cluster.add(gang("x").of(2, cpu=2).bound_on("n1", "n1"))
    cluster.add(gang("first").of(1, cpu=4).priority(5).each(created=clock.now))
    life = await live(cluster, clock)
    before = lost(cluster, "x")
    go(cluster)
    await turns(life)
    cluster.change_pod("first-0", phase=Phase.SUCCEEDED)
    returns(cluster, clock, "x")
    await turns(life)
    for name in ("x-0", "x-1"):
        cluster.change_pod(name, bound_at=clock.now)
    clock.now += 60
    cluster.add(gang("second").of(1, cpu=4).priority(5).each(created=clock.now))
    life = await live(cluster, clock)  # another leader, which creates another Event
    assert terminating(cluster) == ["x-0", "x-1"]
    assert lost(cluster, "x") == before + 60_000
    told_of = [e["message"] for e in cluster.events.values() if e["reason"] == "Preempted"]
    words = (
        f"lose 60.0 s of the whole cluster's work, and have lost {before / 1000:.1f} s by earlier"
    )
    assert any(words in message for message in told_of)


@moments
async def test_a_crash_at_any_call_counts_no_end_twice(*, is_committed: bool) -> None:
    whole = await whole_life(prioritized(), Clock())
    counted = []
    async for number, cluster, clock in after_crashes(whole, is_committed=is_committed):
        counted.append(lost(cluster, "low"))
        clock.now += 3600
        await live(cluster, clock)
        assert lost(cluster, "low") == counted[-1], number
    assert {*counted} == {lost(whole, "low")}


async def test_the_ends_of_many_gangs_are_counted_while_their_claim_stands() -> None:
    """A cycle writes few statuses, but those of all victims."""
    cluster, names = FakeCluster(), [f"v{number:02}" for number in range(3 * GROUPS_PER_CYCLE)]
    cluster.add(node("n1", cpu=len(names)))
    for name in names:
        cluster.add(gang(name).of(1, cpu=1).bound_on("n1"))
    cluster.add(gang("high").of(1, cpu=len(names)).priority(5))
    life = Life(cluster, Clock(), preemption=FULL)
    life.watch.catch_up()
    await life.turn()
    go(cluster)
    await life.turn()
    assert all(lost(cluster, name) for name in names)


async def test_an_end_is_counted_on_the_newest_version_of_the_status() -> None:
    """A user edits the PodGroup whenever it is written: that is tried again later."""
    cluster, clock = prioritized(), Clock()
    edits = 0

    def edit(name: str) -> None:
        nonlocal edits
        if name == "write_status" and clock.now == Clock().now:
            edits += 1
            cluster.change_group("low", generation=edits)

    cluster.before = edit
    life = await live(cluster, clock)
    assert edits
    assert lost(cluster, "low") == 0
    clock.now += 2
    await turns(life)
    assert lost(cluster, "low") > 0


async def test_a_claim_that_is_given_up_before_any_pod_went_counts_for_nothing() -> None:
    cluster, clock = prioritized(), Clock()
    cluster.protected = {"low-0", "low-1"}
    await live(cluster, clock)
    assert lost(cluster, "low") == 0
    assert terminating(cluster) == ["other-0", "small-0", "small-1"]
    assert lost(cluster, "other") > 0


async def test_another_pod_group_of_the_same_name_has_lost_nothing() -> None:
    cluster, clock = prioritized(), Clock()
    await whole_life(cluster, clock)
    assert lost(cluster, "low") > 0
    cluster.delete_group("low")
    cluster.add_group(gang("low").of(2, cpu=2))
    await live(cluster, clock)
    assert lost(cluster, "low") == 0


async def test_a_gang_is_told_what_it_lost_although_the_watch_shows_all_bindings_at_once() -> None:
    """Its pods go before a report sees them terminate, and no call is between binding and end."""
    cluster = prioritized()
    life = Life(cluster, Clock(), preemption=FULL)
    while not calls(cluster, "evict"):
        await life.turn()
    go(cluster)
    cluster.bound = lambda _: life.watch.catch_up()
    await turns(life)
    assert {"high-0", "high-1"} <= {*on_nodes(cluster)}
    assert not cluster.reservations
    assert lost(cluster, "low") > 0
