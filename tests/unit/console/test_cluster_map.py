"""The map's rows: who has how much of what is counted on a node, and what changed since."""

from dataclasses import replace
from typing import Any, cast

from tutti.cli.output.offline import planner_of
from tutti.console.cluster_map import KIND, MapHistory, groupings, node_record, rows
from tutti.dump import PlannerConfig
from tutti.model.cluster import Phase, ReservedVictim, SlotReservation, Snapshot
from tutti.model.decisions import Assignment, Placement, Plan, Policy
from tutti.model.keys import NodeName
from tutti.model.queues import Preemption

from ...harness.builders import gang, node, reservation, single, snapshot_of, topology

ZONE = "topology.kubernetes.io/zone"


def test_on_a_node_with_devices_the_one_that_most_members_ask_for_is_counted() -> None:
    picture = snapshot_of(
        node("cpus", cpu=4).using(cpu=1),
        node("gpus", cpu=8, gpu=4),
        gang("a").of(2, cpu=1, gpu=1).bound_on("gpus", "gpus"),
        gang("b").of(2, cpu=1).bound_on("cpus"),
    )
    found = rows(picture)
    assert found[NodeName("gpus")][4:] == (
        "nvidia.com/gpu",
        4,
        0,
        [("ml/a", "bound", 2, 2)],
    )
    assert found[NodeName("cpus")][4:] == ("cpu", 4000, 1000, [("ml/b", "bound", 1000, 1)])


def test_room_that_is_promised_counts_and_what_is_over_does_not() -> None:
    waits = gang("held").of(2, cpu=1)
    picture = snapshot_of(
        node("n1", cpu=9),
        waits,
        reservation(waits, ("held-0", "n1"), ("held-1", "n1")),
        gang("over").of(1, cpu=1).bound_on("n1").each(phase=Phase.SUCCEEDED),
        single("s", cpu=1).bound_on("n1"),
    )
    (row,) = rows(picture).values()
    assert row[6:] == (
        0,
        [("ml/held", "reserved", 2000, 2), ("ml/s/Pod", "bound", 1000, 1)],
    )


def test_slots_of_members_that_do_not_exist_yet_are_promised_room_too() -> None:
    waits = gang("held").of(1, cpu=1, role="w").role("w", 3).declaring(cpu=1)
    slots = [SlotReservation(NodeName("n1"), "w", 2)]
    held = reservation(waits, ("held-0", "n1"), slots=slots)
    (row,) = rows(snapshot_of(node("n1", cpu=9), waits, held)).values()
    assert row[7] == [("ml/held", "reserved", 3000, 3)]


def test_with_a_plan_what_it_would_start_is_there_too() -> None:
    picture = snapshot_of(node("n1", cpu=9), gang("a").of(1, cpu=1))
    (made,) = picture.gangs
    (member,) = made.members
    where = Assignment(member.key, member.uid, member.version, NodeName("n1"))
    plan = Plan((Placement(made.key, made.uid, 1, (where,)),))
    (row,) = rows(picture, plan).values()
    assert row[7] == [("ml/a", "planned", 1000, 1)]


def claimed() -> Snapshot:
    """A claim of which one victim still has its node, and a member that terminates."""
    old = gang("old").of(2, cpu=2).bound_on("n1", "n1").last(1, terminating=True)
    new = gang("new").of(3, cpu=1)
    victim = ReservedVictim(
        old.made.key, old.made.uid, tuple(member.uid for member in old.made.members), is_whole=True
    )
    places = [(f"new-{n}", "n1") for n in range(3)]
    claim = replace(reservation(new, *places), victims=(victim,))
    return snapshot_of(node("n1", cpu=9), old, new, claim)


def test_room_that_a_claim_waits_for_is_told_apart_until_its_victims_have_gone() -> None:
    (row,) = rows(claimed()).values()
    assert row[6:] == (0, [("ml/new", "claimed", 3000, 3), ("ml/old", "ending", 4000, 2)])
    record = node_record(claimed(), "n1")
    assert record is not None
    assert [(one["gang"], one["status"]) for one in record["gangs"]] == [
        ("ml/new", "claimed"),
        ("ml/old", "ending"),
    ]
    left = replace(claimed(), gangs=claimed().gangs[:1])  # without ml/old
    (row,) = rows(left).values()
    assert row[7] == [("ml/new", "reserved", 3000, 3)]


def test_the_claims_of_a_plan_are_on_its_map() -> None:
    picture = snapshot_of(
        node("n1", cpu=4),
        gang("low").of(4, cpu=1).bound_on(*["n1"] * 4),
        gang("high").of(2, cpu=2).priority(9),
    )
    plan = planner_of(PlannerConfig("tutti", "ilp", Policy(preemption=Preemption.FULL), {})).plan(
        picture
    )
    (row,) = rows(picture, plan).values()
    assert row[7] == [("ml/high", "claimed", 4000, 2), ("ml/low", "ending", 4000, 4)]
    (row,) = rows(picture).values()
    assert row[7] == [("ml/low", "bound", 4000, 4)]


def test_what_is_wrong_with_a_node_and_its_kind_are_said() -> None:
    picture = snapshot_of(
        node("a", cpu=1).labelled(**{KIND: "big"}).cordoned(), node("b", cpu=1).but(ready=False)
    )
    assert [row[:4] for row in rows(picture).values()] == [
        ("a", "big", [], "cordoned"),
        ("b", "", [], "notready"),
    ]


def test_nodes_are_grouped_by_labels_of_topology_the_usual_first() -> None:
    picture = snapshot_of(
        *(
            node(f"n{i}", cpu=1).labelled(
                **{ZONE: "abc"[i % 3], "rack": f"r{i % 2}", "own-pool": f"p{i}", "app": "x"}
            )
            for i in range(6)
        )
    )
    assert [grouping.name for grouping in groupings(picture)] == [ZONE, "rack"], (
        "a label with a value for each node groups nothing"
    )
    assert rows(snapshot_of(*[])) == {}


LEAF, SPINE, HOST = "example.com/leaf", "example.com/spine", "kubernetes.io/hostname"


def test_levels_of_a_topology_come_first_whatever_they_are_called() -> None:
    """Also where each node is in a domain of its own."""
    labels = [{SPINE: "x", LEAF: "1"}, {SPINE: "y", LEAF: "1"}, {SPINE: "y", LEAF: "2"}]
    picture = snapshot_of(
        *(
            node(f"n{i}", cpu=1).labelled(**own, **{HOST: f"n{i}", "pool": "p"})
            for i, own in enumerate(labels)
        ),
        node("n3", cpu=1).labelled(**{LEAF: "1"}),
        topology("absent", name="other"),
        topology(SPINE, LEAF, HOST),
    )
    assert [grouping.name for grouping in groupings(picture)] == [SPINE, LEAF, "pool"]
    assert [row[2] for row in rows(picture).values()] == [
        ["x", "x/1", "p"],
        ["y", "y/1", "p"],
        ["y", "y/2", "p"],
        ["", "", ""],
    ], "leaf 1 of x is not leaf 1 of y, and without a spine there is none"


def test_a_reader_gets_what_changed_and_a_new_one_everything() -> None:
    history = MapHistory()
    one, other = node("n1", cpu=4), node("n2", cpu=4)
    history.take(3, snapshot_of(one, other))
    assert [row[0] for row in history.since(0)["rows"]] == ["n1", "n2"]
    assert history.since(0)["whole"]
    assert history.since(3) == {
        "version": 3,
        "whole": False,
        "labels": [],
        "rows": [],
        "gone": [],
    }
    history.take(5, snapshot_of(one, gang("a").of(1, cpu=1).bound_on("n1")))
    news = history.since(3)
    assert [row[0] for row in news["rows"]] == ["n1"]
    assert news["gone"] == ["n2"]
    assert history.since(5)["rows"] == []
    history.take(4, snapshot_of())
    assert history.version == 5, "an older picture is none"
    history.take(6, snapshot_of(one, other))
    assert {row[0] for row in history.since(5)["rows"]} == {"n1", "n2"}
    assert history.since(3)["gone"] == [], "it came back"
    assert history.since(99)["whole"], "who has seen more than there is begins again"


def test_a_history_has_the_rows_that_a_new_reading_of_the_snapshot_has() -> None:
    """Whatever changes: nodes, members, promised room, and the device that most members ask for."""
    history = MapHistory()
    held, device = gang("held").of(2, cpu=1, gpu=1), cast("Any", {"amd.com/gpu": 1})
    gpus = [node(f"n{n}", cpu=8, gpu=4, **{"amd.com/gpu": 4}) for n in range(3)]
    pictures = [
        snapshot_of(*gpus, held),
        snapshot_of(*gpus, held, reservation(held, ("held-0", "n1"), ("held-1", "n2"))),
        snapshot_of(*gpus, held.bound_on("n1", "n2")),
        claimed(),
        replace(claimed(), reservations=()),
        snapshot_of(*gpus[:2], held.bound_on("n1", "n2"), node("n9", cpu=1)),
        snapshot_of(*gpus, gang("amd").of(9, **device).bound_on("n0"), held),
        snapshot_of(*gpus),
    ]
    seen: dict[str, Any] = {}
    for version, picture in enumerate(pictures, 1):
        history.take(version, picture)
        news = history.since(version - 1)
        seen = {} if news["whole"] else {k: v for k, v in seen.items() if k not in news["gone"]}
        seen |= {row[0]: row for row in news["rows"]}
        assert seen == rows(picture)


def test_room_in_a_plan_is_not_counted_twice_for_members_that_do_not_exist_yet() -> None:
    """The slots of a Placement include those of the Reservation that stands."""
    waits = gang("held").of(1, cpu=1, role="w").role("w", 3).declaring(cpu=1)
    slots = [SlotReservation(NodeName("n1"), "w", 2)]
    picture = snapshot_of(node("n1", cpu=9), waits, reservation(waits, slots=slots))
    (made,) = picture.gangs
    plan = Plan((Placement(made.key, made.uid, 1, (), tuple(slots)),))
    (row,) = rows(picture, plan).values()
    assert row[7] == [("ml/held", "planned", 2000, 2)]


def test_other_labels_mean_everything_again() -> None:
    history = MapHistory()
    history.take(1, snapshot_of(node("n1", cpu=4)))
    history.take(2, snapshot_of(node("n1", cpu=4).labelled(**{ZONE: "a"})))
    assert history.since(1)["whole"]
    assert history.since(1)["labels"] == [ZONE]


def test_another_topology_means_everything_again() -> None:
    history = MapHistory()
    one = node("n1", cpu=4).labelled(**{LEAF: "1"})
    picture = snapshot_of(one)
    history.take(1, picture)
    assert history.since(0)["labels"] == []
    history.take(2, replace(picture, topologies=(topology(LEAF),)))
    assert history.since(1)["whole"]
    assert history.since(1)["labels"] == [LEAF]


def test_a_node_says_what_is_left_and_whose_members_are_there() -> None:
    picture = snapshot_of(
        node("n1", cpu=4, gpu=2).tainted("dedicated", "ml").labelled(a="b"),
        gang("a").of(1, cpu=1, gpu=1).bound_on("n1"),
    )
    record = node_record(picture, "n1")
    assert record is not None
    assert record["gangs"] == [{"gang": "ml/a", "status": "bound", "members": 1}]
    assert record["taints"] == ["dedicated=ml:NoSchedule"]
    resources = {
        resource["name"]: (resource["free"], resource["allocatable"])
        for resource in record["resources"]
    }
    assert resources["cpu"] == ("3", "4")
    assert resources["nvidia.com/gpu"] == ("1", "2")
    assert node_record(picture, "n2") is None
