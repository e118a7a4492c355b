"""Who waits, in which place and since when; everything about one gang."""

from dataclasses import replace
from typing import Any

from tutti import dump
from tutti.cli.output.answers import CommandAnswers
from tutti.console import gang_views
from tutti.console.observation import Observation
from tutti.model.cluster import Phase
from tutti.model.decisions import Policy
from tutti.model.keys import Uid
from tutti.model.queues import Queue

from ...harness.builders import gang, node, reservation, single, snapshot_of, space, topology
from ..cli.test_status import GROUPS, cluster
from .test_cluster_map import claimed


def observed() -> Observation:
    return Observation(1, cluster(), GROUPS)


def told(observation: Observation) -> list[dict[str, Any]]:
    """The gangs that wait, in line."""
    setup = dump.PlannerConfig("tutti", "bestfit", Policy(), {})
    _, status_rows = CommandAnswers(setup).gangs(observation)
    records = gang_views.needing_attention(gang_views.gangs(observation, status_rows)).values()
    return sorted((dict(row) for row in records), key=lambda row: row["rank"] or len(records) + 1)


def test_the_line_is_that_of_the_planner_and_degraded_gangs_stand_in_none() -> None:
    line = [(row["place"], row["gang"], row["state"]) for row in told(observed())]
    assert line == [
        (1, "ml/new", "waiting"),
        (2, "ml/s1/Pod", "waiting"),
        (3, "ml/waits", "waiting"),
        (None, "ml/lost", "degraded"),
    ]


def test_the_highest_priority_is_first_in_line_then_the_oldest() -> None:
    picture = snapshot_of(
        gang("young").of(1, cpu=1).but(created=9.0),
        gang("old").of(1, cpu=1).but(created=1.0),
        gang("urgent").of(1, cpu=1).priority(5).but(created=10.0),
        at=20.0,
    )
    rows = told(Observation(1, picture))
    assert [row["gang"] for row in rows] == ["ml/urgent", "ml/old", "ml/young"]
    assert [row["since"] for row in rows] == [10.0, 1.0, 9.0]


def test_a_pod_and_a_pod_group_of_the_same_name_are_two_gangs() -> None:
    rows = told(
        Observation(
            1, snapshot_of(gang("a").of(3, cpu=1), single("a", cpu=1).priority(7), node("n", cpu=1))
        )
    )
    assert [(row["gang"], row["priority"], row["needed"]) for row in rows] == [
        ("ml/a/Pod", 7, 1),
        ("ml/a", 0, 3),
    ]


def test_each_queue_has_a_line_of_its_own_and_the_rank_is_among_all() -> None:
    picture = snapshot_of(
        Queue("a", Uid("a")),
        Queue("b", Uid("b")),
        space("ml"),
        *(
            gang(name).of(1, cpu=1).but(created=created, queue=queue)
            for name, created, queue in (("x", 1.0, "a"), ("y", 2.0, "b"), ("z", 3.0, "a"))
        ),
        at=20.0,
    )
    rows = told(Observation(1, picture))
    assert [(row["gang"], row["rank"], row["place"], row["queue"]) for row in rows] == [
        ("ml/x", 1, 1, "a"),
        ("ml/y", 2, 1, "b"),
        ("ml/z", 3, 2, "a"),
    ]


def test_a_claim_says_whom_it_ends_and_how_far_that_has_come() -> None:
    picture = claimed()
    (claim,) = gang_views.claims(picture)
    victim = {"gang": "ml/old", "whole": True, "pods": 2, "gone": 0, "terminating": 1}
    assert claim == {"gang": "ml/new", "reservedAt": 0.0, "victims": [victim]}
    new, old = (gang_views.gang_record(Observation(1, picture), found) for found in picture.gangs)
    assert (new["claim"], new["endsFor"]) == (claim, [])
    assert [member["reserved"] for member in new["members"]] == ["n1"] * 3
    assert (old["claim"], old["endsFor"]) == (None, [{**victim, "gang": "ml/new"}])
    assert [member["ends"] for member in old["members"]] == [True, True]
    assert gang_views.claims(snapshot_of(gang("a").of(1, cpu=1))) == []
    (left,) = gang_views.claims(replace(picture, gangs=picture.gangs[:1]))
    assert left["victims"][0]["gone"] == 2


def test_a_gang_says_in_which_domains_it_is() -> None:
    runs = gang("runs").of(2, cpu=1).together("rack").bound_on("n1")
    picture = snapshot_of(node("n1", cpu=1).labelled(rack="r"), topology("rack"), runs)
    record = gang_views.gang_record(Observation(1, picture), picture.gangs[0])
    assert record["domains"] == ["in r of rack"]


def test_why_a_gang_waits_is_what_the_operator_wrote() -> None:
    row = next(row for row in told(observed()) if row["name"] == "waits")
    assert (row["reason"], row["message"]) == ("NotEnoughRoom", "9 members need 1 cpu")


def test_a_gang_is_found_by_the_name_that_the_page_gives_it() -> None:
    picture = snapshot_of(gang("a").of(1, cpu=1), single("a", cpu=1))
    group, pod = gang_views.find(picture, "ml/a"), gang_views.find(picture, "ml/a/Pod")
    assert group is not None
    assert pod is not None
    assert pod.is_single
    assert not group.is_single
    assert gang_views.find(picture, "ml/b") is None


def test_a_gang_has_its_members_roles_conditions_and_reservation() -> None:
    made = gang("a").role("w", 2, 1, cpu=1).role("d", 1, cpu=2)
    picture = snapshot_of(node("n1", cpu=9), made, reservation(made, ("a-0", "n1"), ("a-1", "n1")))
    (found,) = picture.gangs
    record = gang_views.gang_record(Observation(1, picture), found)
    assert record["state"] == "reserved"
    assert [(role["name"], role["minMember"], role["present"]) for role in record["roles"]] == [
        ("w", 2, 1),
        ("d", 1, 1),
    ]
    assert [member["role"] for member in record["members"]] == ["w", "d"]
    assert record["reservation"]["nodes"] == [("n1", 2)]
    assert [request["members"] for request in record["requests"]] == [1, 1]
    assert record["conditions"] == []


def test_conditions_are_those_of_the_object_and_odd_ones_are_left_out() -> None:
    observation = observed()
    found = gang_views.find(observation.snapshot, "ml/waits")
    assert found is not None
    record = gang_views.gang_record(observation, found)
    assert [line["type"] for line in record["conditions"]] == ["Bound", "Reserved"]
    assert record["conditions"][1]["message"] == "9 members need 1 cpu"
    assert record["since"] is not None


def test_a_gang_that_has_ended_says_so() -> None:
    picture = snapshot_of(gang("a").of(1, cpu=1).bound_on("n").each(phase=Phase.SUCCEEDED))
    record = gang_views.gang_record(Observation(1, picture), picture.gangs[0])
    assert (record["state"], record["since"]) == ("finished", None)
