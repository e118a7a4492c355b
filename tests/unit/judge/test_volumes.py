"""Volumes of claims: for one claim, by a Reservation, before the gang begins; never deleted."""

import pytest

from ...harness.judge import Kind, Promise
from .claim_writing import ClaimStory, two_hosts
from .writing import KUBE


def found(story: ClaimStory) -> list[str]:
    return [finding.sentence for finding in story.verdict().of(Promise.VOLUMES)]


def left(story: ClaimStory) -> list[str]:
    verdict = story.verdict()
    return [one.sentence for one in verdict.unfinished if one.promise is Promise.VOLUMES]


def held() -> ClaimStory:
    """A gang of two is reserved: ``c0`` gets the volume ``pv``, and one is made for ``c1``."""
    story = two_hosts()
    story.volume("pv", "a")
    story.group("train", 2)
    for number in range(2):
        story.volume_claim(f"c{number}")
        story.user(f"train-{number}", "train", volume=f"c{number}")
    volumes = {"c0": ("a", "pv"), "c1": ("b", "")}
    story.hold("train", {"train-0": "a", "train-1": "b"}, volumes=volumes)
    return story


def answered() -> ClaimStory:
    """Both claims are bound."""
    story = held()
    story.give("pv", "a", "c0")
    story.volume_claim("c1", selected="b")
    story.volume_claim("c0", "pv")
    story.volume("made", "b", claim="c1")
    story.volume_claim("c1", "made", selected="b")
    return story


def bound() -> ClaimStory:
    """The gang runs."""
    story = answered()
    story.bind("train-0", "a")
    story.bind("train-1", "b")
    story.release("train")
    return story


def test_a_gang_whose_volumes_come_first_is_clean_and_counts_as_judged() -> None:
    verdict = bound().verdict()
    assert not verdict.violations
    assert not verdict.unfinished
    assert verdict.volumes >= 2 + 2


@pytest.mark.parametrize("resource", ["persistentvolumes", "persistentvolumeclaims"])
@pytest.mark.parametrize("verb", ["delete", "deletecollection"])
def test_what_is_deleted_is_a_violation(verb: str, resource: str) -> None:
    story = bound()
    story.wrote(verb, resource, "pv")
    (sentence,) = found(story)
    assert sentence.endswith("nothing of volumes is ever deleted")


def test_what_others_delete_is_none() -> None:
    story = bound()
    story.wrote("delete", "persistentvolumes", "pv", user=KUBE)
    assert not found(story)


def test_a_volume_of_a_claim_is_given_to_no_other() -> None:
    story = answered()
    story.volume_claim("c2")
    story.hold("other", {}, volumes={"c2": ("a", "pv")})
    story.give("pv", "a", "c2")
    assert found(story) == ["volume pv was for claim uid-c0, and is given to ml/c2"]


def test_two_claims_that_name_one_volume_are_a_violation() -> None:
    story = answered()
    story.volume_claim("c2", "pv")
    assert found(story) == ["claim ml/c2 gets volume pv, which ml/c0 has"]


def test_a_volume_that_the_controller_takes_back_may_be_given_again() -> None:
    story = held()
    story.give("pv", "a", "c0")
    story.volume("pv", "a")
    story.hold("other", {}, volumes={"c2": ("a", "pv")})
    story.give("pv", "a", "c2")
    assert not found(story)


def test_a_volume_that_no_reservation_named_is_a_violation() -> None:
    story = held()
    story.volume("more", "a")
    story.give("more", "a", "c0")
    assert found(story) == ["volume more is given to claim ml/c0, as no Reservation said"]


def test_a_node_that_no_reservation_named_is_a_violation() -> None:
    story = held()
    story.volume_claim("c1", selected="a")
    assert found(story) == ["claim ml/c1 is to be provisioned for a, as nobody said"]


def test_a_late_write_of_a_reservation_that_is_over_is_none() -> None:
    story = held()
    story.release("train")
    story.volume_claim("c1", selected="b")
    assert not found(story)
    assert left(story) == ["claim ml/c1 is still to be provisioned for b"]


def test_a_node_that_another_scheduler_selects_is_not_judged() -> None:
    story = held()
    story.volume_claim("c2", selected="a", by=KUBE)
    assert not found(story)
    assert not left(story)


def test_no_member_is_bound_before_the_claims_of_all() -> None:
    story = held()
    story.give("pv", "a", "c0")
    story.volume_claim("c0", "pv")
    story.bind("train-0", "a")
    (sentence,) = found(story)
    assert "the first of its gang to be bound, and claim c1 of ml/train-1" in sentence


def test_a_pod_is_not_bound_without_its_volume() -> None:
    story = held()
    story.bind("train-0", "a")
    assert "pod ml/train-0 is bound to a, but its claim c0 has no volume" in found(story)
    story.drop(Kind.VOLUME_CLAIMS, "uid-c1")
    story.bind("train-1", "b")
    assert "pod ml/train-1 is bound to b, but its claim c1 does not exist" in found(story)


def test_a_pod_is_not_bound_where_its_volume_is_not() -> None:
    story = answered()
    story.bind("train-0", "b")
    assert found(story) == ["pod ml/train-0 is bound to b, which does not reach pv"]


def test_a_selected_node_is_left_only_if_no_reservation_holds_the_claim() -> None:
    story = held()
    story.volume_claim("c1", selected="b")
    assert not left(story)
    story.release("train")
    assert left(story) == ["claim ml/c1 is still to be provisioned for b"]
    story.volume_claim("c1")
    assert not left(story)


def test_a_claim_that_has_its_volume_keeps_the_annotation() -> None:
    story = answered()
    story.release("train")
    assert not left(story)
