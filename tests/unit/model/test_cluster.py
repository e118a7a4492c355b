"""What members and gangs say of themselves, and how names read."""

from dataclasses import fields, replace
from typing import Any

import pytest

from tutti.model.cluster import Member, Phase, ReservedVictim
from tutti.model.decisions import Released
from tutti.model.inter_pod import InterPodRules, Requirement, WeightedAffinityTerm
from tutti.model.keys import POD, GangKey, NodeName, PodKey
from tutti.model.shapes import Preferences, Shape, Toleration

from ...harness.builders import (
    gang,
    member,
    node,
    peers,
    reservation,
    resources,
    shape,
    single,
    snapshot_of,
    term,
)

N1 = NodeName("n1")
WAITING = member("a-0", shape(cpu=1))


@pytest.mark.parametrize(
    ("pod", "is_waiting", "counts_as_bound", "is_over"),
    [
        pytest.param(WAITING, True, False, False, id="waiting"),
        pytest.param(replace(WAITING, gates=("hold",)), False, False, False, id="gated"),
        pytest.param(replace(WAITING, terminating=True), False, False, False, id="terminating"),
        pytest.param(replace(WAITING, node=N1), False, True, False, id="bound"),
        pytest.param(
            replace(WAITING, node=N1, phase=Phase.RUNNING), False, True, False, id="running"
        ),
        pytest.param(
            replace(WAITING, node=N1, terminating=True), False, False, False, id="bound-and-leaving"
        ),
        pytest.param(
            replace(WAITING, node=N1, phase=Phase.SUCCEEDED), False, True, True, id="succeeded"
        ),
        pytest.param(
            replace(WAITING, node=N1, phase=Phase.FAILED), False, False, True, id="failed"
        ),
        pytest.param(replace(WAITING, phase=Phase.FAILED), False, False, True, id="never-bound"),
    ],
)
def test_a_member_counts_by_what_is_observed_of_it(
    pod: Member, *, is_waiting: bool, counts_as_bound: bool, is_over: bool
) -> None:
    assert pod.is_waiting == is_waiting
    assert pod.counts_as_bound == counts_as_bound
    assert pod.is_over == is_over


def test_a_gang_has_the_highest_priority_of_its_pods() -> None:
    assert gang("a").of(3).priority(1).last(1, priority=7).made.priority == 7
    assert gang("a").made.priority == 0


def test_only_a_pod_without_a_group_is_a_gang_of_one() -> None:
    assert single("p").made.is_single
    assert not gang("a").of(1).made.is_single


def test_names_read_as_kubectl_prints_them() -> None:
    assert str(PodKey("ml", "a-0")) == "ml/a-0"
    assert str(GangKey("ml", "a")) == "ml/a"


def test_a_group_and_a_pod_of_the_same_name_are_two_gangs() -> None:
    assert GangKey("ml", "a") != GangKey("ml", "a", POD)


OTHERS: dict[str, Any] = {
    "requests": resources(pods=1, cpu=2),
    "node_selector": (("pool", "a"),),
    "required": (),
    "tolerations": (Toleration("x"),),
    "rules": InterPodRules(anti_affinity=(term("zone", peers(app="x")),)),
    "preferences": Preferences(
        pod_affinity=(WeightedAffinityTerm(term("zone", peers(app="x")), 1),)
    ),
    "volume_reach": (((Requirement("zone", "In", ("a",)),),),),
    "shares_volumes": True,
}


def test_the_hash_of_a_shape_tells_apart_whatever_its_fields_do() -> None:
    assert set(OTHERS) == {field.name for field in fields(Shape) if field.init}
    found = [shape(cpu=1), *(replace(shape(cpu=1), **{name: OTHERS[name]}) for name in OTHERS)]
    assert len({hash(each) for each in found}) == len(found)
    assert [hash(replace(each, requests=each.requests)) for each in found] == list(map(hash, found))


def test_a_snapshot_adds_up_what_its_nodes_offer() -> None:
    small = node("a", cpu=2).made
    nodes = (small, replace(small, name=NodeName("b")), node("c", cpu=3, gpu=1).made)
    snapshot = replace(snapshot_of(), nodes=nodes)
    assert snapshot.allocatable == resources(cpu=7, gpu=1, pods=330)
    assert snapshot_of().allocatable == resources()


def test_a_reservation_may_evict_what_it_ends_for_its_own_gang_and_for_its_claim() -> None:
    own, other = gang("a").of(2, cpu=1), gang("b").of(2, cpu=1)
    first, second = (pod.uid for pod in own.made.members)
    victims = tuple(pod.uid for pod in other.made.members)
    held = reservation(own, ("a-0", "n1"))
    assert [*held.evictable] == []
    ending = ReservedVictim(other.key, other.made.uid, victims, is_whole=True)
    held = replace(held, evict=(second,), victims=(ending,))
    assert [*held.evictable] == [second, *victims]
    assert [*held.pods] == [first]


def test_entries_that_are_not_kept_end() -> None:
    held = reservation(gang("a").of(2, cpu=1), ("a-0", "n1"), ("a-1", "n1"))
    rest = replace(held, entries=held.entries[:1])
    assert [*Released(held, "why", rest).ended] == [held.entries[1]]
    assert [*Released(held, "why").ended] == [*held.entries]
