"""Jobs without pods are told once a plan has room for them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from tutti.kube import errors
from tutti.kube.gang_sources import GangObject, JobPods
from tutti.kube.gang_sources.volcano import KIND
from tutti.model.cluster import Gang, Role
from tutti.model.keys import GangKey, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import Template
from tutti.operator import enqueuer as enqueuer_module
from tutti.operator.enqueuer import (
    AGAIN_SECONDS,
    ENQUEUED_SECONDS,
    LOOK_SECONDS,
    MOST_JOBS,
    UNREAD_SECONDS,
    Enqueuer,
)
from tutti.planning import plan as planning
from tutti.state import waiting_jobs
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget

from ...harness.builders import gang, node, shape, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.model.cluster import Snapshot
    from tutti.model.decisions import Plan

STARVATION_SECONDS = 100.0
INQUEUE = {"phase": "Inqueue"}
OURS = frozenset({"tutti"})


def job(name: str, needed: int = 2, **changes: Any) -> GangObject:
    key = GangKey("ml", name, KIND.api)
    gang_object = GangObject(
        key, Uid(name), needed, version="7", created=0.0, job_awaiting_room=(name, Uid("j"))
    )
    return replace(gang_object, **changes)


def roles(number: int, cpu: int, least: int = 0) -> tuple[Role, ...]:
    return (Role("work", least, number, Template(shape(cpu=cpu))),)


@dataclass
class World:
    """A cluster state and an API that know jobs alone."""

    roles: Mapping[str, tuple[Role, ...] | JobPods | Exception]
    jobs: list[GangObject]
    priorities: Mapping[str, int] = field(default_factory=dict)
    told: list[tuple[str, Mapping[str, Any], str]] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)
    refusal: Exception | None = None
    now: float = 10.0
    planned: int = 0
    in_plans: list[list[str]] = field(default_factory=list)  # the jobs in each plan

    def awaiting_room(self) -> list[tuple[GangObject, Gang]]:
        """As the cluster state."""
        return [(job, Gang.of(job, (), self.priorities.get(job.key.name, 0))) for job in self.jobs]

    def learn_group(self, group: GangObject) -> None:
        """As the cluster state."""
        self.jobs = [job for job in self.jobs if job.key != group.key]

    def claim_job(self, group: GangObject) -> None:
        """As the cluster state."""
        self.claimed.add(group.key.name)

    async def read_job_pods(self, group: GangObject) -> JobPods:
        """As the API."""
        self.read.append(group.key.name)
        found = self.roles[group.key.name]
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, JobPods) else JobPods(OURS, found)

    async def write_status(
        self, gang: GangKey, status: Mapping[str, Any], version: str = ""
    ) -> GangObject:
        """As the API."""
        if self.refusal is not None:
            raise self.refusal
        self.told.append((gang.name, status, version))
        return next(job for job in self.jobs if job.key == gang)

    async def plan(self, with_pods: Snapshot) -> Plan:
        """As the cycle, by best fit."""
        self.planned += 1
        jobs = [gang.key.name for gang in with_pods.gangs if gang.key.kind == KIND.api]
        self.in_plans.append(jobs)
        return planning.plan(with_pods, BestFit(), BestFit(), Budget(10, 10.0))

    def enqueuer(self) -> Enqueuer:
        """A new one."""
        return Enqueuer(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            scheduler="tutti",
            clock=lambda: self.now,
            in_flight=4,
            starvation_seconds=STARVATION_SECONDS,
        )

    @property
    def names(self) -> list[str]:
        """Who was told."""
        return sorted(name for name, _, _ in self.told)


CLUSTER = snapshot_of(node("n1", cpu=4), node("n2", cpu=4))


async def enqueued(world: World, cluster: Snapshot = CLUSTER) -> list[str]:
    await world.enqueuer().enqueue(cluster, world.plan)
    return world.names


async def test_a_job_that_fits_is_told_by_its_status_alone() -> None:
    world = World({"a": roles(4, 2)}, [job("a", 4)])
    assert await enqueued(world) == ["a"]
    assert world.told == [("a", INQUEUE, "7")]


@pytest.mark.parametrize(
    ("needed", "sizes", "is_told"),
    [
        (4, roles(4, 2), True),
        (5, roles(5, 2), False),  # five do not fit
        (4, roles(5, 2), True),  # what it needs fits
        (3, roles(3, 3), False),  # 9 of 8
        (2, roles(2, 3), True),
        (4, roles(3, 1), False),  # it will never have as many
        (2**31 - 1, roles(2**31 - 1, 1), False),
    ],
)
async def test_what_counts_is_what_it_needs_pod_by_pod(
    needed: int, sizes: tuple[Role, ...], *, is_told: bool
) -> None:
    assert await enqueued(World({"a": sizes}, [job("a", needed)])) == (["a"] if is_told else [])


async def test_two_jobs_are_not_told_of_the_same_room() -> None:
    """The one of the higher priority is."""
    sizes = roles(3, 2)
    world = World({"a": sizes, "b": sizes}, [job("a", 3), job("b", 3)], {"b": 5})
    assert await enqueued(world) == ["b"]


async def test_pods_that_wait_come_before_by_their_priority() -> None:
    cluster = snapshot_of(node("n1", cpu=4), gang("waiting").of(2, cpu=2).priority(5))
    assert await enqueued(World({"a": roles(2, 2)}, [job("a")]), cluster) == []


async def test_a_job_that_has_starved_is_told_so_that_room_is_held_for_its_pods() -> None:
    world = World({"a": roles(9, 2), "b": roles(5000, 2)}, [job("a", 9), job("b", 5000)])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.names, enqueuer.next_retry()) == ([], STARVATION_SECONDS - world.now)
    world.now = STARVATION_SECONDS
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert world.names == ["a"]


@pytest.mark.parametrize(("cpu", "is_told"), [(8000, True), (8001, False), (0, True)])
async def test_without_templates_the_sum_counts(cpu: int, *, is_told: bool) -> None:
    world = World(
        {"a": JobPods(OURS, problem="odd")}, [job("a", min_resources=Resources.of({"cpu": cpu}))]
    )
    assert await enqueued(world) == (["a"] if is_told else [])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (JobPods(OURS, problem="odd"), JobPods(OURS, problem="odd")),
        (roles(3, 2), JobPods(OURS, problem="odd")),
        (roles(3, 2), roles(3, 2)),
        (JobPods(OURS, problem="odd"), roles(3, 2)),
    ],
)
@pytest.mark.parametrize("second_created", [0.0, 11.0])
async def test_what_one_job_was_told_of_is_not_free_for_another_until_its_pods_are_there(
    first: Any, second: Any, second_created: float
) -> None:
    """Whether the other is looked at in the same round or in the next."""
    needs = Resources.of({"cpu": 6000})
    both = [
        job("a", 3, min_resources=needs),
        job("b", 3, min_resources=needs, created=second_created),
    ]
    world = World({"a": first, "b": second}, [both[0]] if second_created else both, {"a": 5})
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    if second_created:
        assert world.names == ["a"]
        world.jobs = [both[1]]
    world.now += LOOK_SECONDS
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert len(world.names) == 1
    until = enqueuer.next_retry()
    assert until is not None
    assert 0 < until <= ENQUEUED_SECONDS
    world.now += ENQUEUED_SECONDS  # no pods have come; the room is nobody's
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert world.names == ["a", "b"]


@pytest.mark.parametrize("sized", [False, True])
async def test_a_job_whose_pods_are_there_is_counted_once(*, sized: bool) -> None:
    small = JobPods(OURS, problem="odd") if sized else roles(1, 2)
    world = World({"a": roles(3, 2), "b": small}, [job("a", 3)])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.jobs = [job("b", 1, min_resources=Resources.of({"cpu": 2000}))]
    world.now += LOOK_SECONDS
    bound = gang("a").of(3, cpu=2).bound_on("n1", "n1", "n2").but(uid=Uid("a"), key=job("a").key)
    await enqueuer.enqueue(snapshot_of(node("n1", cpu=4), node("n2", cpu=4), bound), world.plan)
    assert world.names == ["a", "b"]


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue", "Running", "Unknown", "Completed"])
async def test_a_forged_phase_decides_nothing(phase: str) -> None:
    """Who may write it has the pods of the job made; what the job is told is by its room alone."""
    small = World({"a": roles(4, 2)}, [job("a", 4, status={"phase": phase})])
    large = World({"a": roles(5, 2)}, [job("a", 5, status={"phase": phase})])
    assert (await enqueued(small), await enqueued(large)) == (["a"], [])


@pytest.mark.parametrize(
    "problem",
    [
        errors.Gone("no job"),
        errors.BadObject("ml/a", "odd"),
        errors.Refused("no right", status=403),
    ],
)
async def test_a_job_that_is_gone_or_cannot_be_read_is_not_told(problem: Exception) -> None:
    """It may be another scheduler's; and it is not read again at once."""
    world = World({"a": problem}, [job("a")])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.names, world.claimed) == ([], set())
    assert enqueuer.next_retry() == UNREAD_SECONDS
    for _ in range(3):
        world.now += UNREAD_SECONDS / 3
        await enqueuer.enqueue(CLUSTER, world.plan)
    assert world.read == ["a", "a"]


@pytest.mark.parametrize(
    "names", [{"volcano"}, {"tutti", "volcano"}, {""}, set()], ids=["other", "mixed", "none", "no"]
)
async def test_a_job_of_another_scheduler_is_left_alone(names: set[str]) -> None:
    """Also where it has starved."""
    world = World({"a": JobPods(frozenset(names), roles(2, 1))}, [job("a")])
    enqueuer = world.enqueuer()
    for world.now in (10.0, 2 * STARVATION_SECONDS):
        await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.names, world.claimed, world.read, world.planned) == ([], set(), ["a"], 0)


async def test_a_job_of_ours_is_claimed_whether_or_not_it_fits() -> None:
    world = World({"a": roles(9, 2)}, [job("a", 9)])
    assert await enqueued(world) == []
    assert world.claimed == {"a"}


async def test_a_job_whose_group_cannot_be_placed_is_claimed_and_never_told() -> None:
    world = World({"a": roles(2, 1)}, [job("a", unsupported_fields=("spec.x",))])
    world.now = 2 * STARVATION_SECONDS
    assert await enqueued(world) == []
    assert world.claimed == {"a"}


async def turns(world: World, number: int) -> list[str]:
    """Who was told after so many looks."""
    enqueuer = world.enqueuer()
    for _ in range(number):
        await enqueuer.enqueue(CLUSTER, world.plan)
        assert enqueuer.next_retry() is not None
        world.now += LOOK_SECONDS
    return world.names


@pytest.mark.parametrize(
    "size",
    [roles(9, 1), errors.Gone("no job"), JobPods(frozenset({"volcano"}))],
    ids=["too large", "no job", "another scheduler's"],
)
async def test_jobs_that_do_not_fit_do_not_keep_others_from_their_turn(size: Any) -> None:
    """However old they are, and of whatever priority."""
    names = [f"v{i:03}" for i in range(2 * MOST_JOBS)]
    jobs = [*(job(name, 9) for name in names), job("small", created=5.0)]
    sizes = {**dict.fromkeys(names, size), "small": roles(2, 1)}
    world = World(sizes, jobs, dict.fromkeys(names, 5))
    assert await turns(world, 3) == ["small"]


async def test_a_clock_that_goes_back_by_hours_holds_no_job_off() -> None:
    world = World({"a": roles(2, 1)}, [job("a")])
    enqueuer = world.enqueuer()
    world.refusal = errors.Conflict("changed")
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.refusal, world.now = None, world.now - 7200.0
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert world.names == ["a"]


async def test_after_a_clock_went_back_jobs_that_were_told_take_no_room_for_hours() -> None:
    world = World({"a": roles(8, 1), "b": roles(8, 1)}, [job("a", 8)])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.jobs, world.now = [job("b", 8)], world.now - 7200.0
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert world.names == ["a", "b"]


async def test_after_a_clock_went_back_all_jobs_get_their_turn() -> None:
    names = [f"v{i:03}" for i in range(MOST_JOBS + 1)]
    world = World(dict.fromkeys(names, roles(9, 1)), [job(name, 9) for name in names])
    enqueuer = world.enqueuer()
    for _ in range(2):
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += LOOK_SECONDS
    world.now -= 7200.0
    world.roles = dict.fromkeys(names, roles(2, 1))
    world.jobs = [job(name, 2, generation=1) for name in names]
    large = snapshot_of(node("n1", cpu=999), node("n2", cpu=999))
    for _ in range(2):
        await enqueuer.enqueue(large, world.plan)
        world.now += LOOK_SECONDS
    assert world.names == names


async def test_a_job_that_has_starved_comes_before_the_others() -> None:
    names = [f"v{i:03}" for i in range(2 * MOST_JOBS)]
    jobs = [*(job(name, 9) for name in names), job("old", 99, created=-STARVATION_SECONDS)]
    sizes = {**dict.fromkeys(names, roles(9, 1)), "old": roles(99, 1)}
    assert await turns(World(sizes, jobs, dict.fromkeys(names, 5)), 1) == ["old"]


async def test_once_all_had_their_turn_the_next_look_is_later() -> None:
    names = [f"v{i:03}" for i in range(MOST_JOBS + 1)]
    world = World(dict.fromkeys(names, roles(9, 1)), [job(name, 9) for name in names])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert enqueuer.next_retry() == LOOK_SECONDS
    world.now += LOOK_SECONDS
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert enqueuer.next_retry() == AGAIN_SECONDS
    assert len(world.read) == len(names)  # each once


async def test_an_api_server_that_is_away_is_heard_of() -> None:
    with pytest.raises(errors.Unavailable):
        await enqueued(World({"a": errors.Unavailable("away")}, [job("a")]))
    world = World({"a": roles(2, 1)}, [job("a")], refusal=errors.Unavailable("away"))
    with pytest.raises(errors.Unavailable):
        await enqueued(world)


@pytest.mark.parametrize(
    ("problem", "seconds"),
    [
        (errors.Conflict("newer", status=409), LOOK_SECONDS),
        (errors.Refused("no right", status=403), AGAIN_SECONDS),
    ],
)
async def test_a_job_that_could_not_be_told_is_told_later(
    problem: Exception, seconds: float
) -> None:
    world = World({"a": roles(2, 1)}, [job("a")], refusal=problem)
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert enqueuer.next_retry() == seconds
    world.refusal, world.now = None, world.now + seconds
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.names, world.read) == (["a"], ["a"])  # what it is was read once


async def test_a_job_that_could_not_be_told_does_not_take_its_own_room() -> None:
    """It is sized by minResources, and fits once."""
    sized = job("a", min_resources=Resources.of({"cpu": 6000}))
    refusal = errors.Conflict("newer", status=409)
    world = World({"a": JobPods(OURS, problem="odd")}, [sized], refusal=refusal)
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.refusal, world.now = None, world.now + LOOK_SECONDS
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert world.names == ["a"]


async def test_a_group_that_is_gone_by_then_is_left_alone() -> None:
    world = World({"a": roles(2, 1)}, [job("a")], refusal=errors.Gone("no group", status=404))
    assert await enqueued(world) == []


async def test_it_plans_once_a_second_at_most_and_only_where_a_job_waits() -> None:
    world = World({"a": roles(9, 2)}, [])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.planned, enqueuer.next_retry()) == (0, None)
    world.jobs = [job("a", 9)]
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.now += LOOK_SECONDS / 2
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.planned, enqueuer.next_retry()) == (1, LOOK_SECONDS / 2)


async def test_of_ten_thousand_jobs_the_oldest_of_the_highest_priority_are_read() -> None:
    names = [f"j{i:05}" for i in range(10_000)]
    sizes = {name: roles(2, 1) for name in names}
    jobs = [job(name, created=float(i % 7)) for i, name in enumerate(names)]
    world = World(dict(sizes), jobs, {names[-1]: 5})
    await enqueued(world)
    assert len(world.read) == MOST_JOBS
    assert names[-1] in world.read


LARGE = 8  # pods of a large job where only twenty pods of large jobs are in one plan
FULL = roles(LARGE, 3)  # does not fit


@pytest.fixture
def _few_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two large jobs fill a plan."""
    monkeypatch.setattr(waiting_jobs, "SMALL_PODS", 2)
    monkeypatch.setattr(waiting_jobs, "MOST_PODS", 2 * LARGE + 4)


def large_jobs(number: int, **changes: Any) -> list[GangObject]:
    return [job(f"large-{i:03}", LARGE, **changes) for i in range(number)]


async def plans(world: World, looks: int) -> list[list[str]]:
    """The jobs in the plans of so many looks."""
    enqueuer = world.enqueuer()
    for _ in range(looks):
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += AGAIN_SECONDS
    return world.in_plans


@pytest.mark.usefixtures("_few_pods")
async def test_large_jobs_are_planned_in_turn_and_small_ones_always() -> None:
    names = [each.key.name for each in large_jobs(6)]
    sizes = {**dict.fromkeys(names, FULL), "small": roles(2, 9)}
    world = World(sizes, [*large_jobs(6), job("small", created=9.0)])
    seen = await plans(world, 4)
    assert [len(jobs) for jobs in seen] == [3, 3, 3, 3]
    assert all("small" in jobs for jobs in seen)
    assert sorted(name for jobs in seen[:3] for name in jobs if name != "small") == names
    assert seen[3] == seen[0], "then it begins again"


@pytest.mark.usefixtures("_few_pods")
async def test_a_large_job_that_was_left_out_comes_before_those_that_come_later() -> None:
    world = World({"old": FULL}, [])
    enqueuer = world.enqueuer()
    for look in range(8):
        new = [f"new-{look}-{i}" for i in range(3)]
        world.roles = {**world.roles, **dict.fromkeys(new, FULL)}
        world.jobs += [job(name, LARGE) for name in new] + ([job("old", LARGE)] if not look else [])
        world.priorities = dict.fromkeys(world.roles, 5) | {"old": 0}
        await enqueuer.enqueue(CLUSTER, world.plan)
        assert enqueuer.next_retry() == LOOK_SECONDS, "some were not tried yet"
        world.now += LOOK_SECONDS
    assert "old" not in world.in_plans[0]
    assert "old" in world.in_plans[1]
    late = [f"new-{look}-{i}" for look in range(3) for i in range(3)]
    assert set(late) <= {name for jobs in world.in_plans for name in jobs}, "in turn"


@pytest.mark.usefixtures("_few_pods")
async def test_large_jobs_that_change_all_the_time_do_not_come_first_for_having_been_left_out() -> (
    None
):
    many = large_jobs(2 * MOST_JOBS)
    world = World({each.key.name: FULL for each in many} | {"small": roles(2, 1)}, many)
    enqueuer = world.enqueuer()
    for look in range(1, 5):
        world.jobs = [replace(each, generation=look) for each in many]
        world.jobs += [job("small", created=9.0)] * (look > 2)
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += LOOK_SECONDS
    assert world.names == ["small"]


@pytest.mark.usefixtures("_few_pods")
async def test_large_jobs_that_change_take_turns_with_a_small_one_that_was_tried() -> None:
    many = large_jobs(2 * MOST_JOBS)
    world = World({each.key.name: FULL for each in many} | {"small": roles(2, 9)}, many)
    enqueuer = world.enqueuer()
    for look in range(1, 13):
        small = job("small", created=-1.0)
        world.jobs = [small, *(replace(each, generation=look) for each in many)]
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += LOOK_SECONDS
    assert sum("small" in jobs for jobs in world.in_plans) >= 4


@pytest.mark.usefixtures("_few_pods")
async def test_jobs_whose_templates_were_forgotten_are_read_only_in_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(enqueuer_module, "MOST_REMEMBERED", MOST_JOBS)
    many = large_jobs(3 * MOST_JOBS)
    sizes = {each.key.name: FULL for each in many} | {"small": roles(2, 9)}
    world = World(sizes, [job("small", created=-1.0), *many])
    enqueuer = world.enqueuer()
    for _ in range(20):
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += LOOK_SECONDS
    assert sum("small" in jobs for jobs in world.in_plans) >= 10
    assert len(world.read) <= len(world.jobs) + 20 * 3


@pytest.mark.usefixtures("_few_pods")
async def test_large_jobs_that_are_left_out_take_no_turn_of_a_small_one() -> None:
    """However many there are: but for the first look, at which their sizes are not known."""
    jobs = [*large_jobs(3 * MOST_JOBS), job("small", created=9.0)]
    sizes = {**{each.key.name: FULL for each in jobs}, "small": roles(2, 1)}
    assert await turns(World(sizes, jobs), 4) == ["small"]


async def test_large_jobs_leave_half_of_a_plan_to_new_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting_jobs, "SMALL_PODS", 2)
    many = large_jobs(2 * MOST_JOBS)
    sizes: dict[str, Any] = {each.key.name: FULL for each in many}
    world = World(sizes, many)
    enqueuer = world.enqueuer()
    for look in range(8):
        new = [f"small-{look}-{i}" for i in range(MOST_JOBS // 2)]
        sizes.update((name, roles(2, 9)) for name in new)
        world.jobs = [*many, *(job(name, created=9.0) for name in new)]
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += LOOK_SECONDS
    large = [sum(name.startswith("large") for name in jobs) for jobs in world.in_plans]
    assert max(large) == MOST_JOBS // 2
    assert [len(jobs) for jobs in world.in_plans[4:]] == [MOST_JOBS] * 4
    assert {name for jobs in world.in_plans for name in jobs} >= {each.key.name for each in many}


@pytest.mark.usefixtures("_few_pods")
async def test_after_a_clock_went_back_large_jobs_that_were_left_out_come_first() -> None:
    many = large_jobs(10)
    sizes: dict[str, Any] = {each.key.name: FULL for each in many}
    world = World(sizes, [*many])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.now -= 7200.0
    for look in range(5):
        new = [f"new-{look}-{i}" for i in range(3)]
        sizes.update(dict.fromkeys(new, FULL))
        world.jobs += [job(name, LARGE) for name in new]
        await enqueuer.enqueue(CLUSTER, world.plan)
        world.now += LOOK_SECONDS
    assert {name for jobs in world.in_plans for name in jobs} >= {each.key.name for each in many}


@pytest.mark.usefixtures("_few_pods")
async def test_a_job_that_no_cluster_holds_takes_no_turn_of_a_large_one() -> None:
    huge = [job(f"huge-{i}", 2**30) for i in range(5)]
    sizes = {**{each.key.name: roles(2**30, 1) for each in huge}, "large-000": roles(LARGE, 1)}
    assert await enqueued(World(sizes, [*huge, *large_jobs(1, created=9.0)])) == ["large-000"]


@pytest.mark.usefixtures("_few_pods")
async def test_large_jobs_that_are_not_planned_take_no_place_in_a_plan() -> None:
    """Tutti does not support them, or tells them without a plan."""
    jobs = [job(f"odd-{i}", LARGE, unsupported_fields=("spec.x",)) for i in range(2)]
    jobs += [job(f"starved-{i}", LARGE, created=-STARVATION_SECONDS) for i in range(2)]
    jobs += [job(f"late-{i}", LARGE, created=9.0) for i in range(2)]
    world = World({each.key.name: roles(LARGE, 1) for each in jobs}, jobs)
    assert await enqueued(world) == ["late-0", "starved-0", "starved-1"]
    assert world.in_plans == [["late-0", "late-1"]]


@pytest.mark.usefixtures("_few_pods")
async def test_a_job_of_more_pods_than_a_plan_may_have_is_never_told() -> None:
    most = waiting_jobs.MOST_PODS
    cluster = snapshot_of(node("n1", cpu=99, pods=99))
    for needed, told in ((most, ["a"]), (most + 1, [])):
        world = World({"a": roles(needed, 1)}, [job("a", needed)])
        assert await enqueued(world, cluster) == told


@pytest.mark.usefixtures("_few_pods")
async def test_jobs_that_were_told_count_first_and_one_large_job_is_planned_beside_them() -> None:
    cluster = snapshot_of(node("n1", cpu=99, pods=99))
    names = [each.key.name for each in large_jobs(5)]
    world = World(dict.fromkeys(names, roles(LARGE, 1)), large_jobs(5))
    enqueuer = world.enqueuer()
    for _ in range(3):
        await enqueuer.enqueue(cluster, world.plan)
        world.now += LOOK_SECONDS
    assert world.in_plans == [names[:2], names[:3], names[:4]]


async def test_no_plan_is_made_for_jobs_alone_that_were_told() -> None:
    world = World({"a": roles(2, 1), "huge": roles(2**30, 1)}, [job("a")])
    enqueuer = world.enqueuer()
    await enqueuer.enqueue(CLUSTER, world.plan)
    world.jobs = [job("huge", 2**30)]
    world.now += LOOK_SECONDS
    await enqueuer.enqueue(CLUSTER, world.plan)
    assert (world.names, world.planned) == (["a"], 1)
