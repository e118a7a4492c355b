"""Jobs whose controller makes their pods once they are told that there is room."""

from dataclasses import replace

import pytest

from tutti.kube.gang_sources import GangObject
from tutti.kube.gang_sources.volcano import KIND
from tutti.model.cluster import Role
from tutti.model.decisions import Mode, RolloutLimits
from tutti.model.inter_pod import DomainRule, tier
from tutti.model.keys import GangKey, Uid
from tutti.model.queues import Queue
from tutti.model.shapes import Template

from ..harness.builders import NAMESPACE, gang, member, node, shape, topology
from ..harness.fakes import Clock, FakeCluster, Life

KEY = GangKey(NAMESPACE, "train", KIND.api)


def cluster(cpu: int) -> FakeCluster:
    """A job of two pods with two CPUs each, and a node."""
    fake = FakeCluster()
    fake.add(node("n1", cpu=cpu))
    group = GangObject(
        KEY, Uid("g"), 2, roles=(Role("work", 2),), job_awaiting_room=("train", Uid("j"))
    )
    fake._put_group(group)
    fake.roles[KEY] = (Role("work", 2, 2, Template(shape(cpu=2))),)
    return fake


def make_pods(fake: FakeCluster) -> None:
    """What the job's controller does."""
    for name in ("a", "b"):
        pod = member(name, shape(cpu=2), role="work")
        fake.add_pod(replace(pod, group="train", group_kind=KIND.api))


def phase(fake: FakeCluster) -> object:
    """What the status says."""
    return fake.groups[KEY].status.get("phase")


async def test_a_job_that_fits_has_its_pods_made_and_they_start_whole() -> None:
    fake = cluster(cpu=4)
    life = Life(fake, Clock())
    await life.settle()
    assert (phase(fake), fake.reservations, fake.calls.count("read_job_pods")) == ("Inqueue", {}, 1)
    make_pods(fake)
    life.watch.catch_up()
    await life.settle()
    assert {pod.node for pod in fake.pods.values()} == {"n1"}
    assert (phase(fake), life.problems, fake.broken) == ("Running", [], [])


async def test_a_job_that_does_not_fit_says_so_and_is_told_once_it_does() -> None:
    fake = cluster(cpu=4)
    fake.add(gang("other").of(1, cpu=3).bound_on("n1"))
    clock = Clock()
    life = Life(fake, clock)
    for _ in range(3):  # to settle would be to wait until it has starved
        await life.turn()
        clock.now += 2.0
    (line,) = fake.groups[KEY].status["conditions"]
    assert (phase(fake), line["type"]) == ("Pending", "Unschedulable")
    fake.delete_pod("other-0")
    life.watch.catch_up()
    await life.turn()
    assert phase(fake) == "Inqueue"


@pytest.mark.parametrize("mode", [Mode.SHADOW, Mode.PAUSED])
async def test_where_no_gang_starts_no_pods_are_made(mode: Mode) -> None:
    fake = cluster(cpu=4)
    await Life(fake, Clock(), rollout_limits=RolloutLimits(mode)).settle()
    assert "read_job_pods" not in fake.calls
    assert "write_status" not in fake.calls


async def test_of_groups_of_other_schedulers_nothing_is_written() -> None:
    """Whether their pods exist: these are not ours, so that no member is."""
    fake = cluster(cpu=4)
    fake.job_scheduler = "volcano"
    theirs = {"phase": "Running", "running": 3}
    other = GangKey(NAMESPACE, "other", KIND.api)
    fake._put_group(GangObject(other, Uid("o"), 3, status=theirs))
    await Life(fake, Clock()).settle()
    assert (phase(fake), fake.groups[other].status) == (None, theirs)
    assert "write_status" not in fake.calls
    assert fake.calls.count("read_job_pods") == 1


async def test_a_job_whose_group_cannot_be_placed_says_so_and_gets_no_pods() -> None:
    fake = cluster(cpu=4)
    fake._put_group(replace(fake.groups[KEY], unsupported_fields=("spec.x",)))
    await Life(fake, Clock()).settle()
    (line,) = fake.groups[KEY].status["conditions"]
    assert phase(fake) == "Pending"
    assert "spec.x" in line["message"]


TEAM = Queue("team", Uid("team-1"))


async def test_a_job_of_an_unknown_queue_has_no_pods_and_names_the_queues_that_would_do() -> None:
    fake = cluster(cpu=4)
    fake.add_queue(TEAM)
    fake._put_group(replace(fake.groups[KEY], queue="tema"))
    clock = Clock()
    life = Life(fake, clock)
    for _ in range(3):
        await life.turn()
        clock.now += 2.0
    (line,) = fake.groups[KEY].status["conditions"]
    assert phase(fake) == "Pending"
    assert "queue tema does not exist" in line["message"]
    assert "name team" in line["message"]


@pytest.mark.parametrize("queue", [TEAM, Queue("default", Uid("d"), namespaces=None)])
async def test_the_default_queue_of_volcano_counts_where_there_is_a_queue_of_its_name(
    queue: Queue,
) -> None:
    fake = cluster(cpu=4)
    fake.add_queue(queue)
    fake._put_group(replace(fake.groups[KEY], queue_if_exists="default"))
    life = Life(fake, Clock())
    await life.turn()
    await life.turn()
    assert phase(fake) == ("Inqueue" if queue is TEAM else "Pending")


async def test_a_job_that_must_be_in_one_tier_is_told_once_a_domain_has_room() -> None:
    """Two racks have room for one pod each: no rack of them will do, but their block does."""
    fake = cluster(cpu=0)
    fake.add_topology(topology("block", "rack"))
    for name in ("n2", "n3"):
        fake.add(node(name, cpu=2).labelled(block="b", rack=f"r-{name}"))
    job = fake.groups[KEY]
    fake._put_group(replace(job, same_domain=(DomainRule(tier(1)),)))
    clock = Clock()
    life = Life(fake, clock)
    for _ in range(3):  # to settle would be to wait until it has starved
        await life.turn()
        clock.now += 2.0
    assert phase(fake) == "Pending"
    fake._put_group(replace(fake.groups[KEY], same_domain=(DomainRule(tier(2)),)))
    life.watch.catch_up()
    await life.settle()
    assert phase(fake) == "Inqueue"
    make_pods(fake)
    life.watch.catch_up()
    await life.settle()
    assert {pod.node for pod in fake.pods.values()} == {"n2", "n3"}


async def test_a_job_of_an_unknown_tier_has_no_pods_and_says_so() -> None:
    fake = cluster(cpu=4)
    fake.add_topology(topology("rack"))
    fake._put_group(replace(fake.groups[KEY], same_domain=(DomainRule(tier(2)),)))
    clock = Clock()
    life = Life(fake, clock)
    for _ in range(3):
        await life.turn()
        clock.now += 2.0
    (line,) = fake.groups[KEY].status["conditions"]
    assert phase(fake) == "Pending"
    assert "no Topology has the level tier 2: the levels are rack" in line["message"]
