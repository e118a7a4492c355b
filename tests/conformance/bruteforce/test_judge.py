"""The judge finds what is wrong with answers written by hand, and nothing in right ones."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from . import generating, judge, quantities, reading, restating, shrinking, values

Raw = dict[str, Any]


def node(name: str, cpu: str, **labels: str) -> Raw:
    status = {"capacity": {"cpu": cpu, "memory": "4Gi"}}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, cpu: str, group: str = "", **spec: Any) -> Raw:
    labels = {"tutti.dev/pod-group": group} if group else {}
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    whole = {"schedulerName": "tutti", "containers": containers, **spec}
    return {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": whole}


def group(name: str, **spec: Any) -> Raw:
    return {"kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def line(name: str, kind: str = "PodGroup", reason: str = "", **placed: list[str]) -> Raw:
    return {
        "gang": f"default/{name}",
        "kind": kind,
        "answer": "starts" if placed else "waits",
        "reason": reason,
        "placement": [{"node": at, "pods": pods} for at, pods in placed.items()],
    }


def kinds(objects: list[Raw], *lines: Raw, proved: bool = True, **levels: int) -> list[str]:
    admitted = [{"priority": int(p[1:]), "admitted": n} for p, n in levels.items()]
    answer = {"proved": proved, "levels": admitted, "gangs": list(lines)}
    found = judge.judged(reading.cluster(objects, 0.0), answer)
    assert not found.skipped
    return sorted({violation.kind for violation in found.violations})


PAIR = [node("n0", "2"), group("g", minMember=2), pod("g-0", "1", "g"), pod("g-1", "1", "g")]


def test_a_right_answer_is_right() -> None:
    assert kinds(PAIR, line("g", n0=["g-0", "g-1"])) == []


def test_a_gang_that_fits_and_waits() -> None:
    assert kinds(PAIR, line("g")) == ["left-out-gang", "not-best/level"]
    assert kinds(PAIR, line("g"), proved=False) == []
    assert kinds(PAIR, line("g", reason="NotEnoughRoom"), proved=False) == ["left-out-gang"]


@pytest.mark.parametrize(
    ("objects", "lines"),
    [
        ([node("n0", "1"), *PAIR[1:]], [line("g", n0=["g-0", "g-1"])]),  # room
        (PAIR, [line("g", n0=["g-0"])]),  # half of it
        ([node("n0", "2"), pod("p", "1", nodeSelector={"a": "b"})], [line("p", "Pod", n0=["p"])]),
        ([node("n0", "2"), pod("p", "1")], [line("p", "Pod", n0=["p", "p"])]),  # twice
        (
            [node("n0", "2"), group("g", roles=[{"name": "u"}, {"name": "v"}])],
            [line("g", n0=["g-0"])],
        ),  # nobody's pod
    ],
)
def test_placements_that_break_a_promise(objects: list[Raw], lines: list[Raw]) -> None:
    assert kinds(objects, *lines) == ["unlawful"]


def test_a_better_gang_waits_for_a_worse_one() -> None:
    objects = [node("n0", "3"), node("n1", "1"), pod("large", "3"), pod("small", "1")]
    objects[1]["spec"] = {"unschedulable": True}
    wrong = [line("large", "Pod"), line("small", "Pod", n0=["small"])]
    right = [line("large", "Pod", n0=["large"]), line("small", "Pod")]
    assert kinds(objects, *wrong) == ["not-best/level"]
    assert kinds(objects, *right) == []


def test_a_further_member_stands_in_the_way_of_a_lower_priority() -> None:
    objects = [
        node("n0", "1", disk="ssd"),
        node("n1", "3"),
        group("r", minMember=1),
        pod("r-0", "1", "r", priority=10),
        pod("r-1", "1", "r", priority=10),
        pod("w", "1", nodeSelector={"disk": "ssd"}),
    ]
    in_the_way = [line("r", n0=["r-0"], n1=["r-1"]), line("w", "Pod")]
    beside = [line("r", n1=["r-0", "r-1"]), line("w", "Pod")]
    fewer = [line("r", n1=["r-0"]), line("w", "Pod", n0=["w"])]
    assert kinds(objects, *in_the_way) == ["not-best/border"]
    assert kinds(objects, *beside) == ["left-out-gang", "not-best/border"]
    assert kinds(objects, *fewer) == ["left-out-extra"]


def test_a_lost_member_is_left_out() -> None:
    bound = pod("g-0", "1", "g", nodeName="n0")
    objects = [node("n0", "2"), group("g", minMember=2), bound, pod("g-1", "1", "g")]
    assert kinds(objects, line("g")) == ["left-out-repair", "not-best/level"]


def test_the_oldest_of_the_placed_members_replace_lost_ones() -> None:
    """The younger member is a further one, on whichever node: it comes after the pod that waits."""
    objects = [
        node("n0", "1"),
        node("n1", "2"),
        group("g", minMember=2),
        pod("g-0", "0", "g", nodeName="n0"),
        pod("g-1", "2", "g"),
        pod("g-2", "0", "g"),
        pod("w", "2"),
    ]
    objects[5]["metadata"]["creationTimestamp"] = "1970-01-01T00:00:01Z"
    for grows in (line("g", n0=["g-2"], n1=["g-1"]), line("g", n1=["g-1", "g-2"])):
        assert kinds(objects, {**grows, "answer": "grows"}, line("w", "Pod")) == []


def test_a_younger_member_fits_where_an_older_does_not() -> None:
    roles = [{"name": "u", "minMember": 1, "maxMember": 1}]
    objects = [node("n0", "2"), group("g", roles=roles), pod("g-0", "8", "g"), pod("g-1", "1", "g")]
    for item in objects[2:]:
        item["metadata"]["labels"]["tutti.dev/role"] = "u"
    assert kinds(objects, line("g")) == ["left-out-gang/maxmember", "not-best/maxmember"]


def test_values_that_are_out_of_proportion() -> None:
    objects = [node("n0", "4"), pod("a", "1", priority=1), pod("b", "2")]
    lines = [line("a", "Pod", n0=["a"]), line("b", "Pod", n0=["b"])]
    assert kinds(objects, *lines, p1=1000, p0=2001) == []
    assert kinds(objects, *lines, p1=1000, p0=2005) == ["value"]


def test_held_room_is_given_to_nobody_of_the_priority() -> None:
    """A starved gang of two waits for the second node; the pod beside it would take the first."""
    when = {"uid": "u", "creationTimestamp": "1969-12-31T20:00:00Z"}
    objects = [
        node("n0", "1"),
        node("n1", "1"),
        group("g", minMember=2),
        pod("g-0", "1", "g"),
        pod("g-1", "1", "g"),
        pod("b", "1", nodeName="n1"),
        pod("late", "1"),
    ]
    for item in objects[2:5]:
        item["metadata"].update(when)
    assert kinds(objects, line("g"), line("late", "Pod")) == []
    objects[3]["metadata"] = {**objects[3]["metadata"], "creationTimestamp": "1970-01-01T00:00:00Z"}
    objects[4]["metadata"] = objects[3]["metadata"] | {"name": "g-1"}
    assert kinds(objects, line("g"), line("late", "Pod")) == ["left-out-gang", "not-best/level"]


def test_explanations_that_are_not_so() -> None:
    cluster = reading.cluster(PAIR, 0.0)
    answer = {"proved": True, "levels": [], "gangs": [line("g")]}

    def told(members: int) -> Raw:
        beside = {"members": members, "certainty": "proved"}
        advice = {"diagnosis": {"beside": beside, "minMember": None}}
        standing = {"gang": "default/g", "state": "waits"}
        return {"gangs": [{"standing": standing, "advice": advice}]}

    def found(members: int) -> list[str]:
        return [one.kind for one in judge.judged_explanation(cluster, answer, told(members))]

    assert found(1) == ["explain/room"]
    assert found(2) == ["explain/contradicts"]
    assert found(3) == ["explain/room"]


@pytest.mark.parametrize(("priority", "expected"), [(0, ["explain/nodes"]), (10, [])])
def test_further_members_of_higher_priorities_take_new_nodes_first(
    priority: int, expected: list[str]
) -> None:
    objects = [
        node("n0", "4"),
        group("r", minMember=1),
        pod("r-0", "3", "r", priority=priority),
        pod("r-1", "3", "r", priority=priority),
        pod("w", "2"),
    ]
    cluster = reading.cluster(objects, 0.0)
    waits = line("w", "Pod")
    answer = {"proved": True, "levels": [], "gangs": [line("r", n0=["r-0"]), waits]}
    nodes = {"count": 2, "like": "n0", "certainty": "proved"}
    beside = {"members": 0, "certainty": "proved"}
    advice = {"diagnosis": {"beside": beside, "minMember": None, "nodes": nodes}}
    told = {"gangs": [{"standing": {"gang": "default/w", "state": "waits"}, "advice": advice}]}
    violations = judge.judged_explanation(cluster, answer, told)
    assert [violation.kind for violation in violations] == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16Gi", 16 * 2**30),
        ("16G", 16 * 10**9),
        ("1500m", Fraction(3, 2)),
        ("1e3", 1000),
        ("0.5", Fraction(1, 2)),
        (".5k", 500),
    ],
)
def test_quantities_are_exact(text: str, value: Fraction) -> None:
    assert quantities.amount(text) == value
    for seed in range(20):
        other = quantities.in_other_words(text, Random(seed))
        assert quantities.amount(other) == value
        assert other != text


def test_other_words_say_the_same() -> None:
    for seed in range(1, 20):
        whole = generating.manifests(seed)
        other = restating.restated(whole, seed)
        assert other != whole
        one, two = (reading.cluster(each["items"], 0.0) for each in (whole, other))
        for gang, same in zip(one.gangs, two.gangs, strict=True):
            assert values.value(one, gang) == values.value(two, same)


def test_a_case_is_made_small() -> None:
    whole = generating.manifests(1)
    small = shrinking.shrunk(
        whole, lambda case: any(item["kind"] == "Node" for item in case["items"])
    )
    assert [item["kind"] for item in small["items"]] == ["Node"]
