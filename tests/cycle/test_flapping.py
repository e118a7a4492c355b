"""What a waiting gang is told stays as it is while nothing that matters changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tutti.kube import errors
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.keys import GangKey
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Problem, Solution

from ..harness import builders
from ..harness.builders import NAMESPACE, gang, node
from ..harness.fakes import Clock, FakeCluster, Fault, Life


@dataclass
class Fickle:
    """A strategy whose proof fails at every other time, as one does that the clock cuts."""

    name: str = "fickle"
    outcomes: list[Outcome] = field(
        default_factory=lambda: [Outcome.BUDGET_EXHAUSTED, Outcome.PROVED]
    )

    def solve(self, problem: Problem, budget: Budget) -> Solution:
        """Answer with best fit's shares and the next outcome."""
        self.outcomes.append(self.outcomes.pop(0))
        return replace(BestFit().solve(problem, budget), outcome=self.outcomes[0], detail="spent")


def reserved(life: Life, name: str) -> tuple[str, str]:
    """Why the gang waits, as it says itself."""
    status = life.cluster.groups[GangKey(NAMESPACE, name)].status
    (line,) = [condition for condition in status["conditions"] if condition["type"] == "Reserved"]
    return line["reason"], line["message"]


def events_of(life: Life, name: str) -> Sequence[str]:
    """The reasons of the Events about the gang."""
    return [
        str(event["reason"])
        for event in life.cluster.events.values()
        if event["involvedObject"]["name"] == name
    ]


async def conditions_over(life: Life, name: str, *, seconds: int) -> Sequence[tuple[str, str]]:
    """What the gang says of itself, second by second, each saying once."""
    conditions: list[tuple[str, str]] = []
    for _ in range(seconds):
        life.clock.now += 1.0
        await life.turn()
        if not conditions or conditions[-1] != reserved(life, name):
            conditions.append(reserved(life, name))
    return conditions


async def waiting() -> Life:
    """A gang that waits for the room that another holds, and a third that waits, too."""
    cluster = FakeCluster()
    cluster.add(
        node("n1", cpu=4),
        gang("a").of(1, cpu=2).bound_on("n1"),
        gang("b").of(3, cpu=1),
        gang("c").of(4, cpu=1),
    )
    life = Life(cluster, Clock())
    for _ in range(5):
        life.clock.now += 1.0
        await life.turn()
    return life


async def test_a_proof_that_comes_and_goes_is_said_once_a_minute_at_most_and_is_no_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = FakeCluster()
    gangs = [gang(name).of(3, cpu=1) for name in ("b", "c")]
    cluster.add(node("n1", cpu=4), *gangs)
    # Nothing may start, so that every cycle asks the strategy again.
    life = Life(cluster, Clock(), strategy=Fickle(), rollout_limits=RolloutLimits(Mode.SHADOW))
    for _ in range(5):
        life.clock.now += 1.0
        await life.turn()
    assert len(await conditions_over(life, "c", seconds=50)) == 1
    assert len(events_of(life, "c")) == 1
    assert len(await conditions_over(life, "c", seconds=300)) <= 6
    assert len(events_of(life, "c")) == 1
    messages = [record.message for record in caplog.records]
    assert 2 <= messages.count("the plan is not proved to be the best: spent") <= 7


async def test_a_gang_that_could_not_be_reserved_does_not_say_that_members_are_missing() -> None:
    life = await waiting()
    assert reserved(life, "b")[0] == "NotEnoughRoom"
    busy = Fault(errors.Unavailable("the server is busy", status=503))
    life.cluster.fault = lambda _, name: busy if name == "reserve" else None
    life.cluster.delete_pod("a-0")
    life.watch.catch_up()
    conditions = await conditions_over(life, "b", seconds=20)
    assert [reason for reason, _ in conditions] == ["NotEnoughRoom", "Refused"]
    life.cluster.fault = lambda _number, _name: None
    await life.settle()
    assert reserved(life, "b")[0] == "Reserved"


async def test_a_gang_whose_room_went_before_it_was_reserved_goes_on_waiting_for_room() -> None:
    life = await waiting()
    life.cluster.delete_pod("a-0")
    life.watch.catch_up()
    occupied = once_planned(life, lambda: life.cluster.occupy("n1", builders.resources(cpu=2)))
    await life.turn()
    assert occupied == ["yes"]
    assert reserved(life, "b")[0] == "NotEnoughRoom"


def once_planned(life: Life, happens: Callable[[], None]) -> list[str]:
    """Let something happen, and be seen, when the first plan is ready and nothing is written."""
    done: list[str] = []
    fallback = BestFit()

    class Slow:
        """Best fit, during which the world changes."""

        name = "slow"

        def solve(self, problem: Problem, budget: Budget) -> Solution:
            """Answer, late."""
            if not done:
                done.append("yes")
                happens()
                life.watch.catch_up()
            return fallback.solve(problem, budget)

    life.cycle._strategy = Slow()
    return done


async def test_what_is_left_of_the_room_is_told_once_a_minute_at_most() -> None:
    life = await waiting()
    before = reserved(life, "c")
    for cpu in (0.5, 0.25):
        life.cluster.occupy("n1", builders.resources(cpu=cpu))
        life.watch.catch_up()
        assert await conditions_over(life, "c", seconds=20) == [before]
    assert len(await conditions_over(life, "c", seconds=60)) == 2


async def test_after_a_restart_another_sentence_waits_for_a_minute_too() -> None:
    life = await waiting()
    before = reserved(life, "c")
    life.cluster.occupy("n1", builders.resources(cpu=0.5))
    again = Life(life.cluster, life.clock)
    assert await conditions_over(again, "c", seconds=20) == [before]
    assert len(await conditions_over(again, "c", seconds=60)) == 2


async def test_that_claims_are_being_listed_is_said_no_longer_than_it_is_so() -> None:
    cluster, clock = FakeCluster(unanswered={"storage.claims"}), Clock()
    builder = gang("data").of(2, cpu=1).each(claims=("c",), created=clock.now)
    cluster.add(node("n1", cpu=4), builder.but(created=clock.now))
    life = Life(cluster, clock)
    clock.now += 10.0
    await life.turn()
    listing = "2 pods wait for volumes: claims and volumes are still being listed"
    assert reserved(life, "data") == ("WaitingForVolumes", listing)
    cluster.unanswered.clear()
    life.watch.relist()
    clock.now += 2.0
    await life.turn()
    lacking = "2 pods wait for volumes: claim c does not exist"
    assert reserved(life, "data") == ("WaitingForVolumes", lacking)
    messages = {pod.scheduled_condition.message for pod in cluster.pods.values()}
    assert messages == {"1 pod waits for volumes: claim c does not exist"}


async def test_a_gang_that_had_no_status_before_its_start_gets_no_event() -> None:
    life = await waiting()
    assert events_of(life, "b") == ["NotEnoughRoom"]
    assert (life.cluster.groups[GangKey(NAMESPACE, "a")].status["phase"], events_of(life, "a")) == (
        "Bound",
        [],
    )
    life.cluster.add(node("n2", cpu=4))
    await life.settle()
    assert events_of(life, "b") == ["NotEnoughRoom", "Bound"]
