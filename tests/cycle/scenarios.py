"""Clusters with gangs that want to start, and how to tell that one came to rest as promised."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from tutti.model.cluster import Member
from tutti.model.keys import GangKey, NodeName

from ..harness import builders
from ..harness.builders import gang, node, single
from ..harness.fakes import FakeCluster


def fits() -> FakeCluster:
    """One gang, and room for it."""
    return _of(node("n1", cpu=4), node("n2", cpu=4), gang("a").of(3, cpu=2))


def more_than_fit() -> FakeCluster:
    """Three gangs of which two fit; the most important one is the youngest."""
    return _of(
        node("n1", cpu=4),
        node("n2", cpu=4),
        gang("a").of(3, cpu=1),
        gang("b").of(3, cpu=1).but(created=1.0),
        gang("c").of(4, cpu=1).priority(5).but(created=2.0),
    )


def roles() -> FakeCluster:
    """A driver and its workers on nodes of two kinds, and a gang that lacks its driver."""
    return _of(
        node("n1", cpu=8),
        node("n2", cpu=4, gpu=4),
        gang("a").role("driver", 1, cpu=2).role("worker", 3, gpu=1, cpu=1),
        gang("b").role("driver", 1, 0, cpu=1).role("worker", 2, cpu=1),
    )


def extras() -> FakeCluster:
    """A gang with more members than it needs, and room for one of them."""
    return _of(node("n1", cpu=3), gang("a").of(4, cpu=1).needing(2))


def singles() -> FakeCluster:
    """Gangs of one beside a gang, and one too many."""
    return _of(
        node("n1", cpu=4), single("s1", cpu=1), single("s2", cpu=1), gang("a").of(2, cpu=1),
        single("s3", cpu=1),
    )  # fmt: skip


def replacement() -> FakeCluster:
    """A bound gang that has lost a member, its successor, and a gang that wants the same room."""
    cluster = _of(node("n1", cpu=3), gang("a").of(3, cpu=1).bound_on("n1", "n1", "n1"))
    cluster.delete_pod("a-2")
    cluster.add(gang("b").of(1, cpu=1).priority(9))
    successor = builders.member("a-new", builders.shape(cpu=1))
    cluster.add_pod(replace(successor, group="a", created=50.0))
    return cluster


def stray() -> FakeCluster:
    """A pod whose PodGroup does not exist, one of an unknown role, one with an unknown rule."""
    cluster = _of(node("n1", cpu=9), gang("a").role("worker", 2, cpu=1))
    base = builders.member("lost", builders.shape(cpu=1))
    cluster.add_pod(replace(base, group="nowhere"))
    cluster.add_pod(replace(base, key=base.key._replace(name="odd"), group="a", role="cook"))
    odd = replace(base, key=base.key._replace(name="ports"), unsupported_fields=("hostPort",))
    cluster.add_pod(odd)
    return cluster


def late() -> FakeCluster:
    """A driver that makes its workers in two batches, and a gang that wants their room."""
    return _driven({"a-0": {"w-0": 1}, "w-0": {"w-1": 1, "w-2": 1}})


def larger() -> FakeCluster:
    """The same, but one worker asks for more than its role declares."""
    return _driven({"a-0": {"w-0": 2, "w-1": 1}, "w-1": {"w-2": 1}})


def _driven(batches: Mapping[str, Mapping[str, int]]) -> FakeCluster:
    """Whoever is bound makes the next batch: workers by name, and the CPUs that each asks for."""
    whole = gang("a").role("driver", 1, cpu=1).role("worker", 3, 0, cpu=1).declaring(cpu=1)
    other = gang("b").of(2, cpu=2).but(created=5.0)
    cluster = _of(node("n1", cpu=4), node("n2", cpu=2), whole.needing(4), other)

    def bound(pod: Member) -> None:
        for name, cpu in batches.get(pod.key.name, {}).items():
            worker = builders.member(name, builders.shape(cpu=cpu), role="worker")
            cluster.add_pod(replace(worker, group="a", created=cluster.version))

    cluster.bound = bound
    return cluster


SCENARIOS: Mapping[str, Callable[[], FakeCluster]] = {
    scenario.__name__: scenario
    for scenario in (fits, more_than_fit, roles, extras, singles, replacement, stray, late, larger)
}


def _of(*parts: builders.NodeBuilder | builders.GangBuilder) -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(*parts)
    return cluster


def members(cluster: FakeCluster, name: str) -> list[Member]:
    """The pods of one gang."""
    return [pod for pod in cluster.pods.values() if pod.group == name]


def places(cluster: FakeCluster, name: str) -> list[NodeName]:
    """Where the members of a gang are bound."""
    return sorted(m.node for m in members(cluster, name) if m.node is not None)


def half_bound(cluster: FakeCluster) -> list[GangKey]:
    """The gangs that rest with some members bound, and fewer than they need."""
    found = []
    for key, group in cluster.groups.items():
        bound = Counter(m.role for m in members(cluster, key.name) if m.counts_as_bound)
        lacks_role = any(bound[role.name] < role.min_member for role in group.roles)
        if bound and (bound.total() < group.min_member or lacks_role):
            found.append(key)
    return found


def admitted(cluster: FakeCluster) -> Counter[int]:
    """What has started, by priority: CPU and GPUs of bound members."""
    value: Counter[int] = Counter()
    for pod in cluster.pods.values():
        if pod.node is not None:
            amounts = pod.shape.requests
            value[pod.priority] += amounts["cpu"] + 1000 * amounts[builders.GPU]
    return value


def assert_promises(cluster: FakeCluster) -> None:
    """At rest: gangs whole or unbound, no node over-committed at any moment, nothing held."""
    assert cluster.broken == []
    assert half_bound(cluster) == []
    assert cluster.reservations == {}
