"""Which levels there are, and which preferred ones a gang does without, in words."""

import pytest

from tutti.gang.domain_rules import labels_of, level_domains, places_of, preference_note
from tutti.model.cluster import SlotReservation
from tutti.model.inter_pod import Topology
from tutti.model.keys import NodeName

from ...harness.builders import GangBuilder, gang, node, reservation, topology

NODES = {
    NodeName(name): node(name, cpu=4).labelled(block="b", rack=rack).made
    for name, rack in (("n1", "r1"), ("n2", "r1"), ("n3", "r2"))
}
NETWORK = [topology("block", "rack")]


def note(gang: GangBuilder) -> str:
    return preference_note(gang.made, places_of(gang.made, None), NODES, NETWORK)


def test_a_gang_in_one_domain_has_all_that_it_prefers() -> None:
    two = gang("a").of(2, cpu=1).preferring("rack")
    assert note(two.bound_on("n1", "n2")) == ""
    assert note(two.preferring("block").bound_on("n1", "n3")) == (
        "in 2 domains of rack; 1 was preferred"
    )


def test_roles_are_named() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 2, cpu=1).role("store", 1, cpu=1)
    made = made.preferring("rack", "worker", "driver").preferring("rack", "store")
    assert note(made.bound_on("n1", "n3", "n3", "n3")) == (
        "driver, worker in 2 domains of rack; 1 was preferred"
    )


def test_a_node_that_is_gone_and_one_without_labels_are_domains_of_their_own() -> None:
    made = gang("a").of(3, cpu=1).preferring("rack").bound_on("n1", "gone", "bare")
    nodes = {**NODES, NodeName("bare"): node("bare", cpu=1).made}
    words = preference_note(made.made, places_of(made.made, None), nodes, NETWORK)
    assert words == "in 3 domains of rack; 1 was preferred"


def test_an_unknown_level_is_named() -> None:
    made = gang("a").of(1, cpu=1).preferring("row").bound_on("n1")
    assert note(made) == "no Topology has the preferred level row"


def test_room_that_a_reservation_holds_counts() -> None:
    made = gang("a").of(2, cpu=1).preferring("rack").bound_on("n1")
    slots = [SlotReservation(NodeName("n3"), "", 2)]
    held = reservation(made, ("a-1", "n2"), ("gone", "n2"), slots=slots)
    assert [name for _, name in places_of(made.made, held)] == ["n1", "n2", "n3", "n3"]


def in_words(gang: GangBuilder) -> list[str]:
    places = places_of(gang.made, None)
    return [str(level) for level in level_domains(gang.made, places, NODES, NETWORK)]


def test_each_level_that_a_gang_names_says_where_it_is() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 4, cpu=1)
    made = made.together("block").preferring("rack", "worker")
    assert in_words(made.bound_on("n1")) == ["in b of block"]
    assert in_words(made.bound_on("n1", "n1", "n3", "n2", "gone")) == [
        "4 in b and 1 in no domain of block",
        "worker 2 in b/r1, 1 in b/r2 and 1 in no domain of rack",
    ]
    assert in_words(made) == []


def test_a_level_that_is_named_twice_is_told_once_and_an_unknown_one_not_at_all() -> None:
    made = gang("a").of(2, cpu=1).together("rack").preferring("rack").preferring("row")
    assert in_words(made.bound_on("n1", "n2")) == ["in b/r1 of rack"]
    assert in_words(gang("a").of(1, cpu=1).in_segments(2, "rack").bound_on("n3")) == [
        "in b/r2 of rack"
    ]


def test_of_many_domains_those_with_most_members_are_named() -> None:
    nodes = {
        NodeName(f"n{i}"): node(f"n{i}", cpu=9).labelled(block="b", rack=f"r{i}").made
        for i in range(6)
    }
    made = gang("a").of(9, cpu=1).preferring("rack")
    made = made.bound_on(*["n5"] * 3, *["n4"] * 2, "n0", "n1", "n2", "n3")
    (level,) = level_domains(made.made, places_of(made.made, None), nodes, NETWORK)
    assert str(level) == "3 in b/r5, 2 in b/r4, 1 in b/r0 and 3 in 3 more domains of rack"


@pytest.mark.parametrize(
    ("level", "labels"),
    [
        ("tier 1", ("zone", "block", "rack")),
        ("tier 2", ("zone", "block")),
        ("tier 3", ("zone",)),
        ("tier 4", ()),
        ("tier 0", ()),
        ("tier -1", ()),
        ("tier 01", ()),
        ("rack", ("zone", "block", "rack")),
    ],
)
def test_tiers_count_from_the_narrowest_level(level: str, labels: tuple[str, ...]) -> None:
    assert labels_of(level, [Topology("a", ("zone", "block", "rack"))]) == labels
    nodes = [Topology("a", ("zone", "block", "rack", "kubernetes.io/hostname"))]
    assert labels_of(level, nodes) == labels, "a node is no domain of Volcano's tiers"


def test_the_first_topology_with_such_a_tier_counts() -> None:
    flat, deep = Topology("a", ("row",)), Topology("b", ("zone", "rack"))
    assert labels_of("tier 1", [deep, flat]) == ("row",)
    assert labels_of("tier 2", [deep, flat]) == ("zone",)
    assert labels_of("tier 1", []) == ()


def test_a_topology_of_tutti_comes_before_those_of_other_projects() -> None:
    kueue = Topology("a", ("zone", "rack"), "kueue.x-k8s.io")
    kai = Topology("b", ("block", "rack"), "kai.scheduler")
    own = Topology("c", ("rack",))
    assert labels_of("rack", [kueue, kai, own]) == ("rack",)
    assert labels_of("rack", [kueue, kai]) == ("block", "rack")
    assert labels_of("zone", [kueue, kai, own]) == ("zone",)
