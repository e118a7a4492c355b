"""The gangs that are compared: the same for the same seed, and the oracle's word holds for all."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...bench.load.gangs import Form
from . import drawn, scenes
from .cases import MOST_MEMBERS, NODES, Case, Gang, Kind, Level
from .manifests import can_ask, groups, pods
from .oracle import placement

if TYPE_CHECKING:
    import pytest


def has_placement(case: Case) -> bool:
    return placement(NODES, case.free, case.gangs) is not None


def test_the_oracle_knows_of_each_gang_whether_it_has_a_placement() -> None:
    """One that has none lacks no GPUs: some domain has as many as its members need."""
    cases = [*drawn.cases(7, 24)]
    assert Counter(case.has_placement for case in cases) == {True: 24, False: 4}
    assert {(gang.kind, gang.level) for case in cases for gang in case.gangs} == {*drawn.ASKS}
    for case in cases:
        (gang,) = case.gangs
        assert has_placement(case) == case.has_placement
        assert 1 < len(gang.sizes) <= MOST_MEMBERS
        room: Counter[str] = Counter()
        for ground, free in zip(NODES, case.free, strict=True):
            room[ground.domain(gang.level)] += free
        assert max(room.values()) >= sum(gang.sizes)


def test_a_seed_stands_for_the_same_cases() -> None:
    assert [*drawn.cases(3, 8)] == [*drawn.cases(3, 8)] != [*drawn.cases(4, 8)]
    assert [*scenes.scenes(3, 5)] == [*scenes.scenes(3, 5)] != [*scenes.scenes(4, 5)]


def test_the_gangs_of_a_scene_have_a_placement_together() -> None:
    cases = [*scenes.scenes(7, 10)]
    assert all(has_placement(case) for case in cases)
    assert Counter(scenes.scene_of(case) for case in cases) == {
        scenes.Scene.EQUAL: 4,
        scenes.Scene.MIXED: 4,
        scenes.Scene.SEGMENTS: 1,
        scenes.Scene.SHORT: 1,
    }
    in_segments = [gang for case in cases for gang in case.gangs if gang.segment]
    assert {gang.kind for gang in in_segments} == {Kind.SEGMENTS, Kind.SHORT}
    for gang in in_segments:
        assert len(gang.sizes) > gang.segment
        assert (len(gang.sizes) % gang.segment > 0) == (gang.kind is Kind.SHORT)
    names = [gang.name for case in cases for gang in case.gangs]
    assert len(names) == len({*names})


def gang(*sizes: int, kind: Kind = Kind.EQUAL, segment: int = 0) -> Gang:
    return Gang("train", kind, Level.RACK, sizes, segment)


def test_who_can_be_asked_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S", "1.37")
    asked = {
        "one size": (gang(2, 2), "tutti native kueue"),
        "a leader": (gang(8, 2, 2, kind=Kind.LEADER), "tutti native kueue"),
        "two of each": (gang(8, 8, 2, 2, kind=Kind.MIXED), "tutti native"),
        "three sizes": (gang(8, 4, 2, kind=Kind.MIXED), "tutti native"),
        "whole segments": (gang(2, 2, 2, 2, kind=Kind.SEGMENTS, segment=2), "tutti native kueue"),
        "a short one": (gang(2, 2, 2, kind=Kind.SHORT, segment=2), "tutti native"),
    }
    forms = (Form.TUTTI, Form.NATIVE, Form.KUEUE)
    can = {key: " ".join(f for f in forms if can_ask(one, f)) for key, (one, _) in asked.items()}
    assert can == {key: words for key, (_, words) in asked.items()}


def test_every_scheduler_is_told_the_domain() -> None:
    leader, segments = gang(8, 2), gang(2, 2, segment=1)
    for form in (Form.TUTTI, Form.NATIVE, Form.KUEUE):
        members = [*pods(leader, "pool", form)]
        assert "example.com/rack" in f"{[*groups(leader, 'pool', form), *members]}", form
        nodes = [pod["spec"]["nodeSelector"] for pod in members]
        assert nodes == [{"tests/pool": "pool"}] * 2
        gpus = [pod["spec"]["containers"][0]["resources"]["limits"] for pod in members]
        assert gpus == [{"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "2"}]
    (made,) = groups(segments, "pool", Form.TUTTI)
    assert made["spec"]["topology"]["segments"] == {"size": 1, "level": "example.com/rack"}
    (pod, _) = pods(segments, "pool", Form.KUEUE)
    assert pod["metadata"]["annotations"]["kueue.x-k8s.io/podset-slice-size"] == "1"


def test_segments_are_groups_in_a_group_for_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K8S", "1.37")
    short = Gang("train", Kind.SHORT, Level.BLOCK, (2, 2, 2), 2)
    workload, whole, *parts = groups(short, "pool", Form.NATIVE)
    assert (workload["kind"], whole["kind"]) == ("Workload", "CompositePodGroup")
    assert whole["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 2}}
    counts = [part["spec"]["schedulingPolicy"]["gang"]["minCount"] for part in parts]
    assert counts == [2, 1]
    keys = [o["spec"]["schedulingConstraints"]["topology"][0]["key"] for o in (whole, *parts)]
    assert keys == ["example.com/block", "example.com/rack", "example.com/rack"]
    named = [pod["spec"]["schedulingGroup"] for pod in pods(short, "pool", Form.NATIVE)]
    names = [{"podGroupName": part["metadata"]["name"]} for part in parts]
    assert named == [names[0], names[0], names[1]]
