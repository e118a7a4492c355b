"""Which gang a pod is in, by what it names."""

from __future__ import annotations

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources import GangSource, membership_of
from tutti.model.keys import POD, POD_GROUP, ApiKind, GangKey

from .. import objects

APP = {"spark-role": "executor", "spark-app-selector": "spark-1"}
RAY = ApiKind("ray.io", "RayCluster")


def named(labels: dict[str, str]) -> wire.Pod:
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml"}})
    body["metadata"]["labels"] = labels
    return wire.parse_one(body, wire.Pod)


@pytest.mark.parametrize(
    ("labels", "gang", "others"),
    [
        ({}, GangKey("ml", "a-0", POD), ()),
        ({"tutti.dev/pod-group": "a"}, GangKey("ml", "a"), ()),
        (APP, GangKey("ml", "a-0", POD), ()),
        ({**APP, "tutti.dev/pod-group": "a"}, GangKey("ml", "a"), (GangKey("ml", "spark-1"),)),
        ({**APP, "tutti.dev/pod-group": "spark-1"}, GangKey("ml", "spark-1"), ()),
    ],
    ids=["none", "a PodGroup", "Spark's", "both", "both agree"],
)
def test_the_first_source_in_the_written_order_counts(
    labels: dict[str, str], gang: GangKey, others: tuple[GangKey, ...]
) -> None:
    """A gang of Spark's is joined once its PodGroup is there, which the cluster state knows."""
    member = decode_member(named(labels))
    assert (member.gang._replace(name=gang.name), member.other_gangs) == (gang, others)
    assert member.group == ("" if gang.kind == POD else gang.name)


def test_only_what_a_source_says_so_of_has_a_status_that_tutti_writes() -> None:
    """What else declares gangs has a controller of its own."""
    writers = [gang_sources.status_writer(kind) for kind in (POD_GROUP, POD, RAY)]
    assert [writer is not None for writer in writers] == [True, False, False]


def test_a_source_of_another_api_is_one_more_entry() -> None:
    """Two sources with one namespace and name stay apart by their kind."""
    ray = GangSource("ray", 99, lambda pod: GangKey(pod.metadata.namespace, "a", RAY))
    sources = (*gang_sources.ALWAYS, ray)
    assert decode_member(named({}), sources).gang == GangKey("ml", "a", RAY)
    both = membership_of(named({"tutti.dev/pod-group": "a"}), sources)
    assert (both.group, both.others) == ("a", (GangKey("ml", "a", RAY),))


def test_each_source_has_a_place_of_its_own_in_the_order() -> None:
    """The modules of the package are the sources; none has to be listed."""
    numbers = [source.precedence for source in gang_sources.SOURCES]
    assert numbers == sorted(set(numbers))
    assert [source.name for source in gang_sources.ALWAYS] == ["tutti", "spark"]


def test_an_optional_source_has_the_name_of_its_crd() -> None:
    """The chart makes of the name what it grants."""
    for name, source in gang_sources.OPTIONAL.items():
        assert [kind.crd for kind in source.kinds] == [name]


def test_a_source_that_is_not_there_cannot_be_chosen() -> None:
    with pytest.raises(gang_sources.UnknownSourceError, match="is not one of"):
        gang_sources.chosen(["jobs.example.com"])
    assert gang_sources.chosen(()) == gang_sources.ALWAYS
    assert gang_sources.chosen(gang_sources.OPTIONAL) == gang_sources.SOURCES
