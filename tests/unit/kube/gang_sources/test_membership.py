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
    kinds = (POD_GROUP, POD, RAY, ApiKind("jobset.x-k8s.io", "JobSet"))
    writers = [gang_sources.status_writer(kind) for kind in kinds]
    assert [writer is not None for writer in writers] == [True, False, False, False]


def test_only_tuttis_own_pod_groups_say_who_has_succeeded() -> None:
    """Users may write the status of others, which would hide the members that such a gang lost."""
    status = {"phase": "Running", "members": {"succeeded": 2}}
    metadata = {"name": "a", "namespace": "ml", "uid": "u"}
    said = {}
    for kind in (kind for source in gang_sources.SOURCES for kind in source.kinds):
        body = {"metadata": metadata, "status": status}
        said[kind.api] = kind.decode(wire.parse_one(body, kind.model)).succeeded_before
    assert {api for api, succeeded in said.items() if succeeded} == {POD_GROUP}


def test_a_source_of_another_api_is_one_more_entry() -> None:
    """Two sources with one namespace and name stay apart by their kind."""
    ray = GangSource("ray", 99, lambda pod: GangKey(pod.metadata.namespace, "a", RAY))
    sources = (*gang_sources.ALWAYS, ray)
    assert decode_member(named({}), sources).gang == GangKey("ml", "a", RAY)
    both = membership_of(named({"tutti.dev/pod-group": "a"}), sources)
    assert (both.group, both.other_gangs) == ("a", (GangKey("ml", "a", RAY),))


def test_each_source_has_a_place_of_its_own_in_the_order() -> None:
    """The modules of the package are the sources; none has to be listed."""
    numbers = [source.precedence for source in gang_sources.SOURCES]
    assert numbers == sorted(set(numbers))
    assert [source.name for source in gang_sources.ALWAYS] == ["tutti", "spark"]


def test_an_optional_source_has_the_name_of_its_crd_or_of_its_annotation() -> None:
    """The chart makes of the name of a CRD what it grants."""
    for name, source in gang_sources.OPTIONAL.items():
        assert [kind.crd for kind in source.kinds] == ([] if "/" in name else [name])


def test_a_source_that_is_not_there_cannot_be_chosen() -> None:
    with pytest.raises(gang_sources.UnknownSourceError, match="is not one of"):
        gang_sources.chosen(["jobs.example.com"])
    assert gang_sources.chosen(()) == gang_sources.ALWAYS
    assert gang_sources.chosen(gang_sources.OPTIONAL) == gang_sources.SOURCES


PLUGINS = "podgroups.scheduling.x-k8s.io"
VOLCANO = "podgroups.scheduling.volcano.sh"
CLUSTERS, JOBSETS = "rayclusters.ray.io", "jobsets.jobset.x-k8s.io"
RAY_LABELS = {"ray.io/cluster": "g", "ray.io/node-type": "worker"}
JOBSET_LABELS = {"jobset.sigs.k8s.io/jobset-name": "g"}


@pytest.mark.parametrize(
    ("labels", "annotations", "names", "unread"),
    [
        ({}, {}, [], ""),
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}, [], PLUGINS),
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}, [VOLCANO], PLUGINS),
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}, [PLUGINS], ""),
        ({}, {"scheduling.k8s.io/group-name": "g"}, [], VOLCANO),
        ({}, {"scheduling.k8s.io/group-name": "podgroup-o"}, [], ""),
        ({"tutti.dev/pod-group": "a", "scheduling.x-k8s.io/pod-group": "g"}, {}, [], ""),
        (JOBSET_LABELS, {}, [], JOBSETS),
        (JOBSET_LABELS, {}, [JOBSETS], ""),
        (JOBSET_LABELS | {"scheduling.x-k8s.io/pod-group": "g"}, {}, [PLUGINS], ""),
        (RAY_LABELS, {}, [], CLUSTERS),
        (RAY_LABELS, {"scheduling.k8s.io/group-name": "podgroup-o"}, [], CLUSTERS),
        (RAY_LABELS | {"ray.io/node-type": "redis-cleanup"}, {}, [], ""),
        (RAY_LABELS, {}, [CLUSTERS], ""),
    ],
)
def test_a_pod_knows_the_gang_that_it_names_and_that_is_not_read(
    labels: dict[str, str], annotations: dict[str, str], names: list[str], unread: str
) -> None:
    """But for a group that Volcano makes for any pod."""
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml"}})
    owners = [{"kind": "ReplicaSet", "name": "x", "uid": "o"}]
    body["metadata"] |= {"labels": labels, "annotations": annotations, "ownerReferences": owners}
    member = decode_member(wire.parse_one(body, wire.Pod), gang_sources.chosen(names))
    expected = None
    if unread:
        (kind,) = gang_sources.OPTIONAL[unread].kinds
        expected = GangKey("ml", "g", kind.api)
    assert member.unread_gang == expected


def test_role_and_run_of_volcano_count_in_a_gang_of_another_source() -> None:
    """A pod of an earlier run is no member there either."""
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml"}})
    task, run = "volcano.sh/task-spec", "volcano.sh/job-version"
    marks = {"scheduling.k8s.io/group-name": "g", task: "work", run: "2"}
    body["metadata"] |= {"labels": {"tutti.dev/pod-group": "a"}, "annotations": marks}
    sources = gang_sources.chosen([VOLCANO])
    member = decode_member(wire.parse_one(body, wire.Pod), sources)
    assert (member.gang, member.role, member.run) == (GangKey("ml", "a"), "work", 2)
    body["metadata"]["labels"]["tutti.dev/role"] = "own"
    member = decode_member(wire.parse_one(body, wire.Pod), sources)
    assert (member.role, member.run) == ("own", 2)
