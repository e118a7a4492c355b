"""What is charged to a queue exceeds no limit, not for one moment."""

from typing import Any

from ...harness.judge import Kind, Promise
from .writing import KUBE, US, Story, moment, two_nodes


def _faults(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.LIMITS)]


def _stops(story: Story) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.STOPS)]


def _gang(story: Story, name: str, count: int, queue: str, at: float = 0.0) -> None:
    story.queued(name, count, queue, at=at)
    story.pods(name, count, gpu="1")


def _start(story: Story, name: str, count: int) -> None:
    nodes = {f"{name}-{index}": "ab"[index % 2] for index in range(count)}
    story.reserve(name, nodes)
    for pod, node in nodes.items():
        story.bind(pod, node)
    story.reserve(name, queue="q")


def _scene(limit: str = "3") -> Story:
    story = two_nodes()
    story.queue("top", gpu=limit)
    story.queue("q", "top")
    _gang(story, "first", 2, "q")
    _gang(story, "second", 2, "q")
    _start(story, "first", 2)
    return story


def test_gangs_within_a_limit_are_clean() -> None:
    story = _scene("4")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_reservation_above_the_limit_of_a_queue_above_is_found() -> None:
    story = _scene()
    story.reserve("second", {"second-0": "a", "second-1": "b"})
    assert _faults(story) == [
        "gang ml/second holds more, and queue top is then charged 4 of 3 nvidia.com/gpu"
    ]


def test_a_gang_for_which_others_end_is_charged_once_its_members_have_nodes() -> None:
    story = _scene()
    ends = {"first": ["first-0", "first-1"]}
    claim = {"second-0": "a", "second-1": "b"}
    story.reserve("second", claim, queue="q", ends=ends, whole=True)
    assert _faults(story) == []
    for pod in ends["first"]:
        story.phase(pod, "Succeeded")
    for pod, node in claim.items():
        story.bind(pod, node)
    assert _faults(story) == []


def test_a_gang_that_is_bound_beside_its_victims_is_found() -> None:
    story = _scene()
    ends = {"first": ["first-0", "first-1"]}
    story.reserve("second", {"second-0": "a", "second-1": "b"}, queue="q", ends=ends)
    story.bind("second-0", "a")
    assert _faults(story) == []
    story.bind("second-1", "b")
    assert _faults(story) == [
        "gang ml/second holds more, and queue top is then charged 4 of 3 nvidia.com/gpu"
    ]


def test_a_claim_in_a_queue_of_others_is_found() -> None:
    story = _scene()
    story.queue("r", "top")
    ends = {"first": ["first-0", "first-1"]}
    story.reserve("second", {"second-0": "a", "second-1": "b"}, queue="r", ends=ends)
    assert _faults(story) == ["gang ml/second starts in queue r, and it belongs to q"]


def test_what_ended_gives_its_part_of_the_limit_back() -> None:
    story = _scene()
    for pod in ("first-0", "first-1"):
        story.phase(pod, "Succeeded")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_reservation_that_is_adopted_charges_nothing_for_pods_that_have_ended() -> None:
    story = two_nodes()
    story.queue("q", gpu="2")
    _gang(story, "first", 2, "q")
    nodes = {"first-0": "a", "first-1": "b"}
    story.reserve("first", nodes)
    for pod, node in nodes.items():
        story.bind(pod, node)
        story.phase(pod, "Succeeded")
    story.reserve("first", nodes)
    _gang(story, "second", 2, "q")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_lost_member_stays_charged_and_its_replacement_adds_nothing() -> None:
    story = _scene()
    story.drop(Kind.PODS, "uid-first-0")
    story.queued("one", 1, "q")
    story.pods("one", 1, gpu="2")
    story.reserve("one", {"one-0": "a"})
    assert len(_faults(story)) == 1
    story = _scene("2")
    story.drop(Kind.PODS, "uid-first-0")
    story.pod("first-2", "first", gpu="1")
    story.reserve("first", {"first-2": "a"})
    story.bind("first-2", "a")
    assert _faults(story) == []


def test_a_member_beyond_those_needed_counts_where_it_is() -> None:
    story = _scene("2")
    story.pod("first-2", "first", gpu="1")
    story.reserve("first", {"first-2": "a"})
    assert len(_faults(story)) == 1


def test_an_older_member_that_joins_later_counts_with_what_it_requests() -> None:
    story = two_nodes()
    story.queue("q", gpu="5")
    story.queued("first", 1, "q")
    story.pod("first-0", "first", gpu="1", created=moment(0.0))
    story.pod("first-1", "first", gpu="3", created=moment(1.0))
    _gang(story, "second", 1, "q")
    for pod in ("first-1", "first-0"):
        story.reserve("first", {pod: "a"})
        story.bind(pod, "a")
        story.reserve("first", queue="q")
    _start(story, "second", 1)
    assert _faults(story) == []
    _gang(story, "third", 1, "q")
    _start(story, "third", 1)
    assert len(_faults(story)) == 1


def test_a_lowered_limit_counts_once_tutti_has_written_about_it() -> None:
    for observed, faults in ((1, 0), (2, 1)):
        story = _scene("4")
        story.queue("top", gpu="3", generation=2, observed=observed)
        _start(story, "second", 2)
        assert len(_faults(story)) == faults
    story = _scene("4")
    story.queue("top", gpu="1", generation=2, observed=2)
    assert _faults(story) == [], "what runs is not ended"


def test_a_queue_that_was_moved_counts_above_once_tutti_has_written_about_it() -> None:
    for observed, faults in ((1, 0), (2, 1)):
        story = _scene("9")
        story.queue("other", gpu="3")
        story.queue("q", "other", generation=2, observed=observed)
        _start(story, "second", 2)
        assert len(_faults(story)) == faults


def test_a_queue_without_limits_and_one_that_is_gone_limit_nothing() -> None:
    story = _scene()
    story.drop(Kind.QUEUES, "uid-top")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_the_limits_of_a_queue_in_shadow_stop_nobody() -> None:
    story = _scene()
    story.queue("top", gpu="3", spec={"mode": "Shadow"}, generation=2, observed=2)
    _start(story, "second", 2)
    assert _faults(story) == []


def test_others_and_pods_of_no_gang_are_not_judged() -> None:
    story = _scene("2")
    story.pod("alone", gpu="1")
    story.bind("alone", "a")
    story.pod("second-9", "second", gpu="1", scheduler="default-scheduler")
    story.bind("second-9", "a", by=KUBE)
    assert _faults(story) == []


def test_members_of_roles_are_charged_as_the_gang_started() -> None:
    story = two_nodes()
    story.queue("q", gpu="3")
    story.put(
        Kind.POD_GROUPS,
        {
            "metadata": {"name": "train", "namespace": "ml"},
            "spec": {"queue": "q", "roles": [{"name": "d", "minMember": 1}], "minMember": 2},
        },
    )
    for name, role in (("a", "w"), ("b", "d"), ("c", "w")):
        story.pod(name, "train", role=role, gpu="1")
    story.reserve("train", {"a": "a", "b": "a", "c": "b"})
    assert _faults(story) == []
    story.drop(Kind.PODS, "uid-c")
    _gang(story, "other", 1, "q")
    _start(story, "other", 1)
    assert _faults(story) == []


def test_a_limit_in_shadow_stops_nobody() -> None:
    story = two_nodes()
    story.queue("q", gpu="1", spec={"mode": "Shadow"})
    _gang(story, "first", 2, "q")
    _start(story, "first", 2)
    assert _faults(story) == []
    assert story.verdict().charges == 1, "the bindings of what is reserved charge nothing more"


def test_room_for_absent_members_counts() -> None:
    story = two_nodes()
    story.queue("q", cpu="2")
    template = {"template": {"resources": {"cpu": "1"}}}
    roles = [{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 2, **template}]
    metadata = {"name": "spark", "namespace": "ml"}
    story.put(Kind.POD_GROUPS, {"metadata": metadata, "spec": {"queue": "q", "roles": roles}})
    story.pod("driver", "spark", role="driver", cpu="1")
    story.reserve("spark", {"driver": "a"}, slots={"a": {"executor": 1}, "b": {"executor": 1}})
    assert _faults(story) == ["gang ml/spark holds more, and queue q is then charged 3 of 2 cpu"]


def test_a_member_of_another_role_does_not_take_the_place_of_a_lost_one() -> None:
    for limit, faults in (("2", 1), ("3", 0)):
        story = two_nodes()
        story.queue("q", gpu=limit)
        roles = [{"name": "d", "minMember": 1}, {"name": "w", "minMember": 1}]
        spec = {"queue": "q", "roles": roles}
        metadata = {"name": "train", "namespace": "ml"}
        story.put(Kind.POD_GROUPS, {"metadata": metadata, "spec": spec})
        for name in ("d", "w"):
            story.pod(name, "train", role=name, gpu="1")
        story.reserve("train", {"d": "a", "w": "a"})
        story.drop(Kind.PODS, "uid-d")
        story.pod("x", "train", role="w", gpu="1", created=moment(1.0))
        story.reserve("train", {"w": "a", "x": "b"})
        assert len(_faults(story)) == faults, "it is an extra beside the lost member"
        story.pod("d-again", "train", role="d", gpu="1", created=moment(2.0))
        story.reserve("train", {"w": "a", "x": "b", "d-again": "b"})
        assert len(_faults(story)) == faults


def test_a_podgroup_that_is_made_again_has_no_lost_members() -> None:
    story = _scene("3")
    story.queued("one", 1, "q")
    story.pods("one", 1, gpu="1")
    story.phase("first-0", "Succeeded")
    story.drop(Kind.POD_GROUPS, "uid-first")
    for pod in ("one-0", "second-0"):
        story.reserve(pod.partition("-")[0], {pod: "a"})
    assert _faults(story) == []
    story.put(Kind.POD_GROUPS, _made_again())
    story.pod("first-2", "first", gpu="1")
    story.reserve("first", {"first-2": "a"})
    assert len(_faults(story)) == 1


def _made_again() -> dict[str, Any]:
    metadata = {"name": "first", "namespace": "ml", "uid": "again"}
    return {"metadata": metadata, "spec": {"minMember": 2, "queue": "q"}}


def test_a_repair_beside_a_member_that_terminates_counts_twice() -> None:
    story = _scene("2")
    story.pod("first-0", "first", node="a", deleted=moment(1.0), gpu="1")
    story.pod("first-2", "first", gpu="1", created=moment(1.0))
    story.reserve("first", {"first-2": "a"})
    assert len(_faults(story)) == 1


def test_members_that_succeed_are_no_longer_charged_by_their_part_of_the_start() -> None:
    story = _scene("3")
    story.phase("first-0", "Succeeded")
    _start(story, "second", 2)
    assert _faults(story) == []


def test_a_pod_without_a_group_is_charged_to_the_default_of_its_namespace() -> None:
    everybody: dict[str, object] = {"namespaces": {}, "defaultFor": {}}
    team = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["ml"]}]}
    for spec, faults in (
        (everybody, 1),
        ({"namespaces": {}, "defaultFor": team}, 1),
        ({"namespaces": {"matchLabels": {"team": "web"}}, "defaultFor": {}}, 0),
        ({"namespaces": {}}, 0),
    ):
        story = two_nodes()
        story.namespace("ml", team="ml")
        story.queue("q", gpu="2", spec=spec)
        for name in ("one", "two", "three"):
            story.pod(name, gpu="1")
            story.bind(name, "a")
        assert len(_faults(story)) == faults, spec


def test_the_default_without_children_counts_then_the_oldest() -> None:
    for operator, defaults in (("Exists", "team"), ("NotIn", "other"), ("DoesNotExist", "other")):
        story = two_nodes()
        story.namespace("ml", team="ml")
        chosen = {"matchExpressions": [{"key": defaults, "operator": operator, "values": ["x"]}]}
        spec = {"namespaces": {}, "defaultFor": chosen}
        story.queue("top", gpu="9", spec=spec)
        story.queue("q", "top", gpu="1", spec=spec)
        story.queue("everybody", gpu="9", spec={"namespaces": {}, "defaultFor": {}})
        story.queued("train", 2, "")
        story.pods("train", 2, gpu="1")
        story.reserve("train", {"train-0": "a", "train-1": "a"}, queue="q")
        assert len(_faults(story)) == 1, operator


def test_a_gang_is_charged_to_the_queue_of_its_record_which_it_must_have_named() -> None:
    story = two_nodes()
    story.queue("q", gpu="1")
    story.queue("other", gpu="9")
    _gang(story, "first", 2, "q")
    story.reserve("first", {"first-0": "a", "first-1": "a"}, queue="other")
    assert _faults(story) == ["gang ml/first starts in queue other, and it belongs to q"]
    story = two_nodes()
    story.queue("q", gpu="1")
    story.queue("other", gpu="9")
    _gang(story, "first", 2, "other")
    story.queued("first", 2, "q")  # which Tutti did not know when it planned
    story.reserve("first", {"first-0": "a", "first-1": "a"}, queue="other")
    assert _faults(story) == []


def test_what_ran_in_a_queue_is_not_charged_to_another_of_its_name() -> None:
    story = _scene("2")
    story.drop(Kind.QUEUES, "uid-q")
    story.queue("q", "top", uid="another")
    _gang(story, "third", 2, "top")
    _start(story, "third", 2)
    assert _faults(story) == []


def test_a_queue_above_all_places_of_one_that_is_moved_counts_at_once() -> None:
    story = two_nodes()
    story.queue("top", gpu="3")
    story.queue("left", "top")
    story.queue("right", "top")
    story.queue("q", "left")
    story.queue("q", "right", generation=2, observed=1)
    _gang(story, "first", 2, "q")
    _start(story, "first", 2)
    _gang(story, "second", 2, "q")
    _start(story, "second", 2)
    assert len(_faults(story)) == 1


def test_a_queue_that_is_held_starts_nothing_once_tutti_has_written_about_it() -> None:
    for observed, spec, deleted, faults in (
        (1, {"stop": "Hold"}, False, []),
        (2, {"stop": "Hold"}, False, ["gang ml/second starts, although queue top is stopped"]),
        (2, {}, True, ["gang ml/second starts, although queue top is stopped"]),
        (2, {"stop": "None"}, False, []),
    ):
        story = _scene("9")
        story.queue("top", gpu="9", generation=2, observed=observed, deleted=deleted, spec={**spec})
        _start(story, "second", 2)
        assert _stops(story) == faults


def test_a_queue_that_is_held_still_replaces_lost_members_and_lets_no_gang_grow() -> None:
    story = _scene("9")
    story.queue("q", "top", generation=2, observed=2, spec={"stop": "Hold"})
    story.drop(Kind.PODS, "uid-first-0")
    story.pod("first-2", "first", gpu="1", created=moment(1.0))
    story.reserve("first", {"first-2": "a"})
    story.bind("first-2", "a")
    assert _stops(story) == []
    story.pod("first-3", "first", gpu="1", created=moment(2.0))
    story.reserve("first", {"first-3": "a"})
    assert _stops(story) == ["gang ml/first grows, although queue q is stopped"]


def test_a_queue_that_drains_starts_what_is_older_and_nothing_new() -> None:
    for gang_at, pod_at, faults in ((5.0, 5.0, 0), (11.0, 5.0, 1), (5.0, 11.0, 1)):
        story = two_nodes()
        story.queue("q", observed=1, drained_at=10.0, spec={"stop": "Drain"})
        story.queued("first", 1, "q", at=gang_at)
        story.pod("first-0", "first", gpu="1", created=moment(pod_at))
        story.reserve("first", {"first-0": "a"}, queue="q")
        assert len(_stops(story)) == faults
    story = two_nodes()
    story.queue("q", observed=1, spec={"stop": "Drain"})
    _gang(story, "first", 2, "q", at=11.0)
    _start(story, "first", 2)
    assert _stops(story) == [], "Tutti has not written down since when it drains"
    story.queue("q", observed=1, drained_at=10.0, spec={"stop": "Drain"})
    story.pod("first-2", "first", gpu="1", created=moment(1.0))
    story.reserve("first", {"first-2": "a"})
    assert len(_stops(story)) == 1, "no extras, however old"


def test_tutti_lets_a_queue_go_that_is_empty_and_others_as_they_like() -> None:
    finalizers = frozenset({"metadata.uid", "metadata.finalizers"})
    for by, is_empty, faults in ((US, True, 0), (US, False, 1), ("admin", False, 0)):
        story = _scene("9")
        story.queue("top", gpu="9", generation=2, observed=2, deleted=True)
        if is_empty:
            story.phase("first-0", "Succeeded")
            story.phase("first-1", "Failed")
        for user in dict.fromkeys((US, by)):
            story.wrote("patch", "queues", "top", user=user, uid="uid-top", fields=finalizers)
        story.drop(Kind.QUEUES, "uid-top")
        assert len(_stops(story)) == faults
