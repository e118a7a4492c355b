"""Devices of claims: one claim at a time, by a Reservation, before the binding, and then free."""

from collections.abc import Callable
from typing import Any

import pytest

from ...harness.judge import Kind, Promise
from ...harness.judge.device_selectors import selects
from .claim_writing import DRIVER, ClaimStory, two_hosts
from .writing import KUBE


def found(story: ClaimStory) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.DEVICES)]


def left(story: ClaimStory) -> list[str]:
    verdict = story.verdict()
    return [one.sentence for one in verdict.unfinished if one.promise is Promise.DEVICES]


def waiting() -> ClaimStory:
    """A gang of two waits with a claim each, ``c0`` and ``c1``."""
    story = two_hosts()
    story.group("train", 2)
    for number in range(2):
        story.claim(f"c{number}")
        story.user(f"train-{number}", "train", f"c{number}")
    return story


def held() -> ClaimStory:
    """Its Reservation stands: the first device of each node."""
    story = waiting()
    devices = {f"train-{number}": {f"c{number}": ["gpu-0"]} for number in range(2)}
    story.hold("train", {"train-0": "a", "train-1": "b"}, devices=devices)
    return story


def given() -> ClaimStory:
    """Both claims have their devices."""
    story = held()
    story.claim("c0", "a", "gpu-0", reserved=["train-0"])
    story.claim("c1", "b", "gpu-0", reserved=["train-1"])
    return story


def bound() -> ClaimStory:
    """The gang runs."""
    story = given()
    story.bind("train-0", "a")
    story.bind("train-1", "b")
    story.release("train")
    return story


def test_a_gang_whose_claims_come_first_is_clean_and_counts_as_judged() -> None:
    verdict = bound().verdict()
    assert not verdict.violations
    assert not verdict.unfinished
    assert verdict.devices == 2 + 2


def test_a_device_of_two_claims_is_a_violation() -> None:
    story = bound()
    story.claim("c2")
    story.user("other", "", "c2")
    story.hold("other", {"other": "a"}, devices={"other": {"c2": ["gpu-0"]}})
    story.claim("c2", "a", "gpu-0", reserved=["other"])
    (sentence,) = found(story)
    assert sentence == ("claim ml/c2 gets device gpu.example.com/a/gpu-0, which claim ml/c0 has")


def test_a_device_that_is_free_again_may_be_given_again() -> None:
    story = bound()
    story.phase("train-0", "Succeeded")
    story.claim("c0")
    story.claim("c2")
    story.user("other", "", "c2")
    story.hold("other", {"other": "a"}, devices={"other": {"c2": ["gpu-0"]}})
    story.claim("c2", "a", "gpu-0", reserved=["other"])
    assert not found(story)


def test_admin_access_takes_nothing_from_others() -> None:
    story = bound()
    story.claim("c2")
    story.user("other", "", "c2")
    story.hold("other", {"other": "a"}, devices={"other": {"c2": ["gpu-0"]}})
    story.claim("c2", "a", "gpu-0", reserved=["other"], admin=True)
    assert not found(story)


def test_what_another_scheduler_gives_is_not_judged() -> None:
    story = bound()
    story.claim("c2")
    story.user("other", "", "c2", scheduler="default-scheduler")
    story.claim("c2", "a", "gpu-0", reserved=["other"], by=KUBE)
    assert not found(story)
    assert not left(story)


@pytest.mark.parametrize(("second", "is_exceeded"), [("quarter", False), ("half-1", True)])
def test_counters_that_partitions_share_are_never_exceeded(
    second: str, *, is_exceeded: bool
) -> None:
    story = two_hosts()
    takes = {"half-0": 40, "half-1": 40, "quarter": 20}
    story.piece("a", *takes, memory=60, takes=takes)
    for number, device in enumerate(("half-0", second)):
        name = f"c{number}"
        story.claim(name)
        story.user(f"pod-{number}", "", name)
        devices = {f"pod-{number}": {name: [device]}}
        story.hold(f"pod-{number}", {f"pod-{number}": "a"}, devices=devices)
        story.claim(name, "a", device, reserved=[f"pod-{number}"])
    sentence = (
        "claim ml/c1 gets devices, and counter card/memory of gpu.example.com/a is exceeded: "
        "80 of 60"
    )
    assert found(story) == [sentence] * is_exceeded


def test_the_newest_generation_says_what_there_is() -> None:
    story = two_hosts()
    story.piece("a", "half-0", memory=20, takes={"half-0": 40})
    story.piece("a", "half-0", generation=2, memory=40, takes={"half-0": 40})
    story.claim("c0")
    story.user("one", "", "c0")
    story.hold("one", {"one": "a"}, devices={"one": {"c0": ["half-0"]}})
    story.claim("c0", "a", "half-0", reserved=["one"])
    assert not found(story)


def test_a_device_that_no_slice_of_the_node_ever_had_is_a_violation() -> None:
    story = waiting()
    devices = {"train-0": {"c0": ["gpu-7"]}, "train-1": {"c1": ["gpu-0"]}}
    story.hold("train", {"train-0": "a", "train-1": "b"}, devices=devices)
    story.claim("c0", "a", "gpu-7", reserved=["train-0"])
    assert found(story) == ["claim ml/c0 gets gpu.example.com/a/gpu-7, which a never had"]


def test_a_device_that_has_gone_since_it_was_promised_is_none() -> None:
    story = held()
    story.piece("a", "gpu-1", generation=2)
    story.claim("c0", "a", "gpu-0", reserved=["train-0"])
    assert not found(story)


def test_devices_without_a_reservation_are_a_violation() -> None:
    story = waiting()
    story.claim("c0", "a", "gpu-0", reserved=["train-0"])
    first, second = found(story)
    assert first == "claim ml/c0 gets devices, and no Reservation that stands holds it"
    assert "is reserved for train-0 (uid-train-0), and no Reservation" in second


def test_devices_after_the_end_of_their_reservation_are_a_violation() -> None:
    story = held()
    story.release("train")
    story.claim("c0", "a", "gpu-0", reserved=["train-0"])
    assert "no Reservation that stands holds it" in found(story)[0]


@pytest.mark.parametrize(("node", "device"), [("a", "gpu-1"), ("b", "gpu-0")])
def test_other_devices_than_the_reservation_says_are_a_violation(node: str, device: str) -> None:
    story = held()
    story.claim("c0", node, device, reserved=["train-0"])
    assert "other devices than its Reservation says, or on another node" in found(story)[0]


def test_a_pod_that_the_reservation_does_not_name_may_not_join() -> None:
    story = held()
    story.user("other", "", "c0")
    story.claim("c0", "a", "gpu-0", reserved=["train-0", "other"])
    (sentence,) = found(story)
    assert "claim ml/c0 is reserved for other (uid-other)" in sentence


def _lacks_devices(story: ClaimStory) -> None:
    story.claim("c0")


def _is_for_another(story: ClaimStory) -> None:
    story.claim("c0", "a", "gpu-0", reserved=["somebody"], is_silent=True)


def _is_elsewhere(story: ClaimStory) -> None:
    story.claim("c0", "b", "gpu-1", reserved=["train-0"], is_silent=True)


def _is_gone(story: ClaimStory) -> None:
    story.drop(Kind.DEVICE_CLAIMS, "uid-c0")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_lacks_devices, "claim c0 has no devices"),
        (_is_for_another, "claim c0 is not reserved for it"),
        (_is_elsewhere, "claim c0 has devices of b"),
        (_is_gone, "its claim c0 does not exist"),
    ],
)
def test_a_pod_is_bound_only_to_the_node_of_its_devices_once_they_are_its_own(
    change: Callable[[ClaimStory], None], words: str
) -> None:
    story = held()
    story.claim("c1", "b", "gpu-0", reserved=["train-1"])
    change(story)
    story.bind("train-0", "a")
    assert f"pod ml/train-0 is bound to a, but {words}" in found(story)


def test_a_pod_whose_claim_is_not_made_yet_may_not_be_bound() -> None:
    story = two_hosts()
    story.pod("one")
    body = story._bodies[Kind.PODS, "uid-one"]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    story.put(Kind.PODS, body | {"spec": body["spec"] | {"resourceClaims": claims}})
    story.bind("one", "a")
    assert found(story) == ["pod ml/one is bound to a, but a claim of it is not made"]


def test_no_member_is_bound_before_the_claims_of_all() -> None:
    story = held()
    story.claim("c0", "a", "gpu-0", reserved=["train-0"])
    story.bind("train-0", "a")
    (sentence,) = found(story)
    assert "the first of its gang to be bound, and claim ml/c1 is not reserved" in sentence
    story.claim("c1", "b", "gpu-0", reserved=["train-1"])
    story.bind("train-1", "b")
    assert len(found(story)) == 1


def test_the_status_of_a_pod_names_its_claim_for_extended_resources() -> None:
    story = two_hosts()
    story.pod("one")
    story.claim("made", owner="one")
    story.hold("one", {"one": "a"}, devices={"one": {"made": ["gpu-0"]}})
    story.claim("made", "a", "gpu-0", reserved=["one"], owner="one")
    story.bind("one", "a")
    assert found(story) == ["pod ml/one is bound, but its status does not name claim ml/made"]


def test_devices_are_not_taken_from_a_pod_that_runs() -> None:
    story = bound()
    story.claim("c0")
    assert found(story) == ["claim ml/c0 is taken from pod ml/train-0, which is bound"]


def test_devices_of_a_pod_that_waits_are_given_back() -> None:
    story = given()
    story.release("train")
    assert left(story) == [
        f"claim ml/c{number} keeps its devices for pod train-{number} (uid-train-{number}), "
        "which is not bound"
        for number in range(2)
    ]
    story.claim("c0")
    story.claim("c1")
    assert not left(story)
    assert not found(story)


def test_devices_that_a_standing_reservation_holds_are_not_left() -> None:
    assert not left(given())


def test_devices_for_nobody_and_for_a_pod_that_never_ran_are_left() -> None:
    story = given()
    story.release("train")
    story.claim("c0", "a", "gpu-0")
    story.drop(Kind.PODS, "uid-train-1")
    first, second = left(story)
    assert first == "claim ml/c0 keeps its devices, and is reserved for nobody"
    assert second.endswith("for pod train-1 (uid-train-1), which is gone")


def test_devices_of_pods_that_ran_are_given_back_by_others() -> None:
    story = bound()
    story.phase("train-0", "Succeeded")
    story.drop(Kind.PODS, "uid-train-1")
    assert not left(story)


HALF = f'device.attributes["{DRIVER}"].size == "half"'


def given_one(
    *devices: str, wanted: dict[str, Any], size: str = "", request: str = "gpu"
) -> list[str]:
    """What is found of a pod whose claim wants this and gets these devices of one node."""
    story = two_hosts()
    story.piece("a", "gpu-0", "gpu-1", generation=2, size=size)
    story.claim("c0", wanted=wanted)
    story.user("one", "", "c0")
    devices_of_pod = {"one": {"c0": devices}}
    story.hold("one", {"one": "a"}, devices=devices_of_pod, request=request)
    story.claim("c0", "a", *devices, reserved=["one"], wanted=wanted, request=request)
    return found(story)


def exactly(count: int | None, *selectors: str) -> dict[str, Any]:
    how = {"allocationMode": "All"} if count is None else {"count": count}
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return {"exactly": {"deviceClassName": "gpu", **how, "selectors": chosen}}


@pytest.mark.parametrize("count", [1, 3])
def test_fewer_or_more_devices_than_a_request_wants_are_a_violation(count: int) -> None:
    (sentence,) = given_one("gpu-0", "gpu-1", wanted=exactly(count))
    assert sentence == f"claim ml/c0 gets 2 devices for request gpu, which wants {count}"


def test_a_request_for_all_may_get_any_number() -> None:
    assert not given_one("gpu-0", "gpu-1", wanted=exactly(None))


def test_a_device_that_the_selector_of_its_request_excludes_is_a_violation() -> None:
    assert not given_one("gpu-0", wanted=exactly(1, HALF), size="half")
    (sentence,) = given_one("gpu-0", wanted=exactly(1, HALF), size="quarter")
    assert sentence == (f"claim ml/c0 gets {DRIVER}/a/gpu-0, which request gpu excludes by {HALF}")


def test_a_device_that_was_selected_when_it_was_promised_may_have_changed() -> None:
    story = two_hosts()
    story.piece("a", "gpu-0", generation=2, size="half")
    story.claim("c0", wanted=exactly(1, HALF))
    story.user("one", "", "c0")
    story.hold("one", {"one": "a"}, devices={"one": {"c0": ["gpu-0"]}})
    story.piece("a", "gpu-0", generation=3, size="quarter")
    story.claim("c0", "a", "gpu-0", reserved=["one"], wanted=exactly(1, HALF))
    assert not found(story)


@pytest.mark.parametrize(
    ("request_name", "words"),
    [
        ("gpu/second", ""),
        ("gpu", "for 0 ways to meet one request (gpu/first, gpu/second)"),
        ("nic", "for request nic, which it does not have"),
    ],
)
def test_devices_are_for_one_way_to_meet_a_request(request_name: str, words: str) -> None:
    parts = [
        {"name": name, "deviceClassName": "gpu", "count": count}
        for name, count in (("first", 2), ("second", 1))
    ]
    sentences = given_one("gpu-0", wanted={"firstAvailable": parts}, request=request_name)
    assert words in "\n".join(sentences)
    assert bool(sentences) == bool(words)


@pytest.mark.parametrize(
    ("expression", "is_selected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.driver == "nic.example.com"', False),
        ('device.attributes["gpu.example.com"].size == "half"', True),
        ('device.attributes["gpu.example.com"].size == "whole"', False),
        ('device.attributes["other.example.com"].size == "half"', False),
        ('device.attributes["other.example.com"].rack == "r1"', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0', False),
        ('device.capacity["gpu.example.com"].cores.compareTo(quantity("1")) >= 0', False),
        ('device.driver == "gpu.example.com" && device.driver == "nic.example.com"', False),
    ],
)
def test_the_judge_reads_the_selectors_of_the_scenes(expression: str, *, is_selected: bool) -> None:
    device = {
        "attributes": {"size": {"string": "half"}, "other.example.com/rack": {"string": "r1"}},
        "capacity": {"memory": {"value": "40Gi"}},
    }
    assert selects(expression, DRIVER, device) == is_selected


def test_a_selector_that_the_judge_cannot_read_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="the judge reads no selector like"):
        selects('device.driver == "other" && device.driver.size() > 2', DRIVER, {})
