"""A Snapshot and its Plan as a picture: how much one cell stands for, whatever the amounts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.cli.output.blocks import MOST_DEVICES, MOST_DOMAINS, drawn
from tutti.model.decisions import Plan
from tutti.model.resources import Resources
from tutti.model.shapes import Shape

from ....harness.builders import GangBuilder, NodeBuilder, gang, node, snapshot_of, topology

DEVICE = "example.com/nic-bandwidth"


def with_device(node: NodeBuilder, amount: int, used: int = 0) -> NodeBuilder:
    offered = node.made.allocatable + Resources.of({DEVICE: amount})
    return node.but(allocatable=offered, used=Resources.of({DEVICE: used}))


def asking(name: str, amount: int) -> GangBuilder:
    return gang(name).of(1).each(shape=Shape(Resources.of({DEVICE: amount})))


@pytest.mark.parametrize(
    ("largest", "unit", "slots"),
    [
        (8, "NIC-BANDWIDTH", 8),
        (64, "NIC-BANDWIDTH", 64),
        (65, "× 2 NIC-BANDWIDTH", 32),  # noqa: RUF001 - a multiplication
        (650_008, "× 20k NIC-BANDWIDTH", 32),  # noqa: RUF001
        (25 * 10**9, "× 500M NIC-BANDWIDTH", 50),  # noqa: RUF001
        (10**19, "× 200P NIC-BANDWIDTH", 50),  # noqa: RUF001
        (10**25, "× 200000000P NIC-BANDWIDTH", 50),  # noqa: RUF001
    ],
)
def test_a_cell_stands_for_more_where_a_node_has_many(largest: int, unit: str, slots: int) -> None:
    snapshot = snapshot_of(
        with_device(node("n1"), largest), with_device(node("n2"), 1), asking("a", 1)
    )
    picture = drawn(snapshot, Plan())
    assert picture.unit == unit
    assert picture.nodes[0].slots == slots


amounts = st.integers(0, 2**63) | st.integers(0, 100)


@given(
    st.lists(st.tuples(amounts, amounts), min_size=1, max_size=3),
    st.lists(st.tuples(amounts, st.integers(0, 2)), min_size=1, max_size=3),
)
def test_no_node_has_more_cells_than_a_line_has_room_for(
    nodes: list[tuple[int, int]], members: list[tuple[int, int]]
) -> None:
    rows = [with_device(node(f"n{i}"), *amounts) for i, amounts in enumerate(nodes)]
    bound = [
        asking(f"g{i}", amount).bound_on(f"n{place}")
        for i, (amount, place) in enumerate(members)
        if place < len(nodes)
    ]
    picture = drawn(snapshot_of(*rows, *bound, asking("waiting", 1)), Plan())
    for row in picture.nodes:
        assert row.slots <= MOST_DEVICES
        assert all(block.slots <= MOST_DEVICES for block in row.blocks)


def test_where_no_device_is_asked_for_cpus_are_drawn() -> None:
    snapshot = snapshot_of(node("n1", cpu=64), node("n2", cpu=1), gang("a").of(1, cpu=1))
    picture = drawn(snapshot, Plan())
    assert (picture.unit, [row.slots for row in picture.nodes]) == ("× 4 CPU", [16])  # noqa: RUF001


def racked(racks: int) -> list[NodeBuilder]:
    """Two nodes in each rack, half of the racks in each block, and a node in no block."""
    return [
        node("n-loose", cpu=2),
        *(
            node(f"n{i}", cpu=2).labelled(
                **{"example.com/block": "ba"[i % 2], "rack": f"r{i % racks:02}"}
            )
            for i in range(2 * racks)
        ),
    ]


def kinds(*nodes: NodeBuilder) -> list[str]:
    """The titles of the panels for these nodes, in their order."""
    levels = topology("example.com/block", "rack", "hostname")
    picture = drawn(snapshot_of(*nodes, levels), Plan())
    return list(dict.fromkeys(row.kind for row in picture.nodes))


def test_nodes_are_drawn_by_the_domains_of_the_narrowest_level_that_has_few() -> None:
    found = kinds(*racked(4))
    assert found == ["rack a/r01", "rack a/r03", "rack b/r00", "rack b/r02", "nodes"]
    assert kinds(*racked(MOST_DOMAINS + 2)) == ["block a", "block b", "nodes"]


def test_where_no_level_has_few_domains_nodes_are_drawn_by_kind() -> None:
    blocks = [
        node(f"n{i}", cpu=2).labelled(**{"example.com/block": f"b{i}"})
        for i in range(MOST_DOMAINS + 1)
    ]
    assert kinds(*blocks) == ["nodes"]
    assert kinds(node("n1", cpu=2)) == ["nodes"]
