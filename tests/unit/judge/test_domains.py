"""Domains of the network: members that must be in one, segments, and what others change later."""

from collections.abc import Mapping

import pytest

from ...harness.judge import Gap, Kind, Promise
from .writing import KUBE, Story

RACK = {"required": "rack"}
PAIRS = {"segments": {"size": 2, "level": "rack"}}
INDEXED = {"segments": {"size": 2, "level": "rack", "indexLabel": "index"}}


def found(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.DOMAINS)]


def network() -> Story:
    """Three racks of two nodes, ``a0`` to ``c1``, in two blocks, and a node in none."""
    story = Story()
    story.topology("block", "rack")
    for block, rack in (("x", "a"), ("x", "b"), ("y", "c")):
        for number in range(2):
            story.node(f"{rack}{number}", labels={"block": block, "rack": rack})
    story.node("bare", labels={"rack": "a"})
    return story.begins()


def starts(story: Story, nodes: str, *, first: int = 0, is_indexed: bool = False) -> None:
    """Members of ``train`` are created, reserved and bound on these nodes, in this order."""
    places = dict(enumerate(nodes.split(), first))
    for number in places:
        story.pod(f"train-{number}", "train", index=str(number) if is_indexed else "")
    story.reserve("train", {f"train-{number}": node for number, node in places.items()})
    for number, node in places.items():
        story.bind(f"train-{number}", node)
    story.release("train")


def ruled(topology: Mapping[str, object], least: int = 2) -> Story:
    story = network()
    story.ruled("train", topology, minMember=least)
    return story


def test_a_gang_in_one_rack_is_clean_and_counts_as_judged() -> None:
    story = ruled(RACK)
    starts(story, "a0 a1")
    assert not story.verdict().violations
    assert story.verdict().domains == 1


def test_a_gang_that_starts_in_two_racks_is_a_violation() -> None:
    story = ruled(RACK)
    starts(story, "a0 b0")
    (sentence,) = found(story)
    assert "its members get nodes in several domains of rack: x/a (1), x/b (1)" in sentence


def test_a_rack_of_the_same_name_in_another_block_is_another_one() -> None:
    story = ruled(RACK)
    story.node("d0", labels={"block": "y", "rack": "a"})
    starts(story, "a0 d0")
    assert len(found(story)) == 1


def test_a_node_that_lacks_the_label_of_a_wider_level_is_in_no_rack() -> None:
    story = ruled(RACK)
    starts(story, "a0 bare")
    assert "1 members get nodes outside all domains of rack" in found(story)[0]


def test_a_wider_level_lets_members_be_in_several_racks() -> None:
    story = ruled({"required": "block"})
    starts(story, "a0 b0")
    assert not found(story)
    story = ruled({"required": "block"})
    starts(story, "a0 c0")
    assert len(found(story)) == 1


def test_without_a_topology_a_gang_must_wait() -> None:
    story = ruled({"required": "row"})
    starts(story, "a0 a1")
    assert "no Topology has ever had the level row" in found(story)[0]


def test_a_binding_that_no_reservation_promised_is_judged_by_itself() -> None:
    story = ruled(RACK)
    story.pods("train", 2)
    story.bind("train-0", "a0")
    story.bind("train-1", "b0")
    assert len(found(story)) == 1


@pytest.mark.parametrize(("node", "is_kept"), [("a1", True), ("b0", False)])
def test_a_replacement_returns_to_the_rack_of_the_others(node: str, *, is_kept: bool) -> None:
    story = ruled(RACK)
    starts(story, "a0 a1")
    story.drop(Kind.PODS, "uid-train-1")
    starts(story, node, first=2)
    assert bool(found(story)) is not is_kept


def test_after_the_loss_of_all_nodes_the_gang_goes_to_another_rack() -> None:
    story = ruled(RACK)
    starts(story, "a0 a1")
    for name in ("a0", "a1"):
        story.drop(Kind.NODES, f"uid-{name}")
    starts(story, "b0 b1", first=2)
    assert not found(story)


def test_members_on_a_lost_node_do_not_fix_the_rack() -> None:
    story = ruled(RACK)
    starts(story, "a0 a1")
    story.drop(Kind.NODES, "uid-a0")
    starts(story, "a1", first=2)
    assert not found(story)


def test_labels_that_change_after_the_binding_break_nothing() -> None:
    story = ruled(RACK)
    starts(story, "a0 a1")
    story.node("a1", labels={"block": "x", "rack": "b"})
    assert not found(story)


def test_labels_that_change_after_the_promise_break_nothing() -> None:
    story = ruled(RACK)
    story.pods("train", 2)
    story.reserve("train", {"train-0": "a0", "train-1": "a1"})
    story.node("a1", labels={"block": "x", "rack": "b"})
    story.bind("train-0", "a0")
    story.bind("train-1", "a1")
    assert not found(story)


@pytest.mark.parametrize(("node", "is_kept"), [("a2", True), ("b0", False), ("c0", False)])
def test_of_several_racks_after_new_labels_that_with_most_members_counts(
    node: str, *, is_kept: bool
) -> None:
    story = ruled(RACK, 3)
    starts(story, "a0 a0 a1")
    story.node("a1", labels={"block": "x", "rack": "b"})
    story.node("a2", labels={"block": "x", "rack": "a"})
    starts(story, node, first=3)
    assert bool(found(story)) is not is_kept


def test_a_topology_that_goes_after_the_start_breaks_nothing() -> None:
    story = ruled(RACK)
    starts(story, "a0 a1")
    story.drop(Kind.TOPOLOGIES, "uid-network")
    assert not found(story)


@pytest.mark.parametrize("kind", [Kind.KUEUE_TOPOLOGIES, Kind.KAI_TOPOLOGIES])
def test_topologies_of_other_projects_are_judged_after_those_of_tutti(kind: Kind) -> None:
    """In the other one, a0 and b0 are in two rows, and racks are narrower than rows."""
    story = ruled({"required": "row"})
    story.node("a0", labels={"block": "x", "rack": "a", "row": "1"})
    story.node("b0", labels={"block": "x", "rack": "b", "row": "2"})
    story.topology("row", "rack", kind=kind)
    starts(story, "a0 b0")
    assert any("row" in fault for fault in found(story))
    other = ruled(RACK)
    other.topology("row", "rack", kind=kind)
    starts(other, "a0 a1")
    assert not found(other)


def test_what_another_scheduler_binds_is_not_judged() -> None:
    story = ruled(RACK)
    story.pods("train", 2)
    story.bind("train-0", "a0", by=KUBE)
    story.bind("train-1", "b0", by=KUBE)
    assert not found(story)


def test_a_rule_on_a_role_leaves_the_others_free() -> None:
    story = network()
    roles = [
        {"name": "driver", "minMember": 1},
        {"name": "worker", "minMember": 2, "topology": RACK},
    ]
    story.ruled("train", {}, roles=roles)
    story.pod("driver", "train", role="driver")
    for name in ("w0", "w1"):
        story.pod(name, "train", role="worker")
    story.reserve("train", {"driver": "c0", "w0": "a0", "w1": "a1"})
    assert not found(story)
    story.release("train")
    story.reserve("train", {"driver": "a0", "w0": "a0", "w1": "c1"})
    assert len(found(story)) == 1


def test_a_slot_is_in_the_rack_of_the_roles_together() -> None:
    for node, faults in (("a1", 0), ("b0", 1)):
        story = network()
        roles = [{"name": "driver", "minMember": 1}, {"name": "worker", "minMember": 2}]
        together = {"roles": ["driver", "worker"], **RACK}
        story.ruled("train", {"roleGroups": [together]}, roles=roles)
        story.pod("driver", "train", role="driver")
        story.reserve("train", {"driver": "a0"}, slots={node: {"worker": 2}})
        assert len(found(story)) == faults


@pytest.mark.parametrize(
    ("nodes", "faults"), [("a0 a1 b0 b1 c0", 0), ("a0 a0 a0 a1 b0", 0), ("a0 a1 a0 b0 c0", 1)]
)
def test_a_gang_starts_in_whole_segments_and_one_short_one(nodes: str, faults: int) -> None:
    story = ruled(PAIRS, 5)
    starts(story, nodes)
    assert len(found(story)) == faults


@pytest.mark.parametrize(("node", "faults"), [("b0", 0), ("c0", 1)])
def test_a_replacement_completes_a_segment_that_lacks_a_member(node: str, faults: int) -> None:
    story = ruled(PAIRS, 4)
    starts(story, "a0 a1 b0 b1")
    story.drop(Kind.PODS, "uid-train-3")
    starts(story, node, first=4)
    assert len(found(story)) == faults


def test_further_members_begin_a_segment_anywhere_once_all_are_full() -> None:
    story = ruled(PAIRS, 4)
    starts(story, "a0 a1 b0 b1")
    starts(story, "c0 c1", first=4)
    assert not found(story)


@pytest.mark.parametrize(("nodes", "faults"), [("a0 a1 b0 b1", 0), ("a0 b0 a1 b1", 2)])
def test_members_with_an_index_are_in_the_segment_of_their_index(nodes: str, faults: int) -> None:
    story = ruled(INDEXED, 4)
    starts(story, nodes, is_indexed=True)
    assert len(found(story)) == faults


def test_what_lies_in_a_gap_is_not_proved() -> None:
    story = ruled(RACK)
    story.pods("train", 2)
    at = story.reserve("train", {"train-0": "a0", "train-1": "b0"})
    story.gaps.append(Gap(Kind.RESERVATIONS, at - 1, at))
    assert not found(story)
    assert any(each.promise is Promise.DOMAINS for each in story.verdict().unproved)
