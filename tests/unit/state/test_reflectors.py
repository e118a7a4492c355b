"""Which objects are whose: of the scheduler's name, of the namespaces that are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tutti.kube import kinds, list_watch, wire
from tutti.kube.codec.hand_over import NO_HAND_OVER
from tutti.kube.gang_sources import SOURCES
from tutti.model.cluster import GATE, BoundBy, ForeignPod, Member
from tutti.operator import handlers
from tutti.state.cluster_state import ClusterState
from tutti.state.reflectors import (
    capacities_into,
    device_classes_into,
    devices_into,
    reflectors_into,
    storage_into,
)

from ..kube import objects

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

OURS, THEIRS = "ml", "elsewhere"


def _feeds(state: ClusterState, *served: str) -> Mapping[str, list_watch.Reflector[Any, Any]]:
    feeds = reflectors_into(state, "tutti", served)
    (groups,) = feeds.gangs
    return {
        "groups": groups,
        "pending": feeds.pending,
        "bound": feeds.bound,
        "reservations": feeds.reservations,
    }


def test_every_kind_has_a_stream_into_a_store_of_its_own() -> None:
    state = ClusterState(lambda: None)
    feeds = (
        *reflectors_into(state, "tutti", sources=SOURCES, preempts=True),
        *storage_into(state),
        *device_classes_into(state),
        *devices_into(state),
        *capacities_into(state),
    )
    known = {*kinds.KINDS, *kinds.GANGS.values()}
    assert {feed.kind for feed in feeds} == {kind.model for kind in known}
    assert len({id(feed.sink) for feed in feeds}) == len(feeds)
    assert known - {kinds.POD} == set(state.stores)


def test_budgets_and_jobs_are_read_only_where_gangs_may_end_for_others() -> None:
    feeds = [
        reflectors_into(ClusterState(lambda: None), "tutti", preempts=preempts)
        for preempts in (False, True)
    ]
    off, on = ({feed.stream.name for feed in some} for some in feeds)
    assert on - off == {kinds.BUDGET.stream().name, kinds.JOB.stream().name}


def _taken(feed: list_watch.Reflector[Any, Any], body: objects.Json) -> Any:
    return feed.decode(wire.parse_one(body, feed.kind))


def _in(namespace: str, body: objects.Json, **spec: Any) -> objects.Json:
    return objects.merged(body, {"metadata": {"namespace": namespace}, "spec": spec})


GANG = {"groups": objects.GROUP, "pending": objects.POD, "reservations": objects.RESERVATION}


@pytest.mark.parametrize("name", GANG)
@pytest.mark.parametrize(
    ("served", "seen"),
    [((), (OURS, THEIRS)), ((OURS,), (OURS,)), ((OURS, "etl"), (OURS,)), (("etl",), ())],
    ids=str,
)
def test_gangs_are_those_of_the_namespaces_that_are_served(
    name: str, served: Collection[str], seen: Collection[str]
) -> None:
    """None named are all; what waits elsewhere is nobody's here."""
    feed = _feeds(ClusterState(lambda: None), *served)[name]
    found = [space for space in (OURS, THEIRS) if _taken(feed, _in(space, GANG[name])) is not None]
    assert found == list(seen)


def test_a_namespace_that_is_not_served_is_named_once_if_a_reservation_stands_there() -> None:
    named: list[str] = []
    feeds = reflectors_into(ClusterState(lambda: None), "tutti", (OURS,), elsewhere=named.append)
    for space in (OURS, THEIRS, THEIRS):
        _taken(feeds.reservations, _in(space, objects.RESERVATION))
    other = _in("third", objects.RESERVATION, schedulerName="other")
    _taken(feeds.reservations, other)
    assert named == [THEIRS]


@pytest.mark.parametrize(
    ("namespace", "scheduler", "kind"),
    [(OURS, "tutti", Member), (THEIRS, "tutti", ForeignPod), (OURS, "other", ForeignPod)],
)
def test_whoever_is_bound_takes_room_wherever_it_lives(
    namespace: str, scheduler: str, kind: type[Member | ForeignPod]
) -> None:
    """Room is the whole cluster's; a member is one of a gang that is served."""
    body = _in(namespace, objects.POD, nodeName="n1", schedulerName=scheduler)
    pod = _taken(_feeds(ClusterState(lambda: None), OURS)["bound"], body)
    assert isinstance(pod, kind)
    assert pod.node == "n1"


def test_events_are_taken_in_of_what_is_served_only() -> None:
    """The demand side hears of all; what is gone or cannot be read any more is forgotten."""
    state = ClusterState(lambda: None)
    groups = _feeds(state, OURS)["groups"]
    for namespace in (OURS, THEIRS):
        body = objects.merged(
            objects.GROUP, {"metadata": {"namespace": namespace, "uid": namespace}}
        )
        handlers.take_in(groups, {"type": "ADDED", "object": body}, namespace)
    handlers.take_in(groups, {"type": "ADDED", "object": {"metadata": "none"}}, "other")
    assert [group.key.namespace for group in state.groups] == [OURS]
    broken = objects.merged(objects.GROUP, {"metadata": {"uid": OURS}, "spec": "none"})
    handlers.take_in(groups, {"type": "MODIFIED", "object": broken}, OURS)
    assert not list(state.groups)
    body = objects.merged(
        objects.GROUP, {"metadata": {"namespace": OURS, "uid": OURS, "resourceVersion": "99"}}
    )
    handlers.take_in(groups, {"type": "MODIFIED", "object": body}, OURS)
    assert len(state.groups) == 1
    gone = objects.merged(objects.GROUP, {"metadata": {"uid": OURS}})
    handlers.take_in(groups, {"type": "DELETED", "object": gone}, OURS)
    assert not list(state.groups)


def test_a_pod_that_names_another_scheduler_does_not_wait_here() -> None:
    """A selector for several names shows others' pods, too."""
    state = ClusterState(lambda: None)
    pending = _feeds(state)["pending"]
    theirs = objects.merged(objects.POD, {"spec": {"schedulerName": "other"}})
    handlers.take_in(pending, {"type": "ADDED", "object": theirs}, "u")
    assert not list(state.pods.pending)
    handlers.take_in(pending, {"type": "ADDED", "object": objects.POD}, "u")
    assert len(state.pods.pending) == 1


@pytest.mark.parametrize(
    ("names", "selector"),
    [
        (("tutti",), "spec.nodeName=,spec.schedulerName=tutti"),
        (("a", "b"), "spec.nodeName=,spec.schedulerName!=default-scheduler"),
        (("a", "default-scheduler"), "spec.nodeName="),
    ],
)
def test_pods_of_one_scheduler_or_of_several_are_asked_for(
    names: Collection[str], selector: str
) -> None:
    assert kinds.pending(*names).selector == selector


def test_every_stream_has_a_name_of_its_own() -> None:
    """What cannot be listed is known by it, and several projects have PodGroups."""
    feeds = reflectors_into(ClusterState(lambda: None), "tutti", sources=SOURCES)
    names = [feed.stream.name for feed in feeds]
    assert len(set(names)) == len(names)


def test_without_hand_over_pods_of_the_default_scheduler_are_foreign_and_their_gang_waits() -> None:
    """With it, they are members: gated ones, those on their way, and those that are bound."""
    default = {"schedulerName": "default-scheduler"}
    gated = _in(OURS, objects.POD, schedulingGates=[{"name": GATE}], **default)
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}
    handed = {"nodeName": "n1", "affinity": {"nodeAffinity": required}}
    bound = _in(OURS, objects.POD, **handed, **default)
    bound["metadata"]["labels"] = {"tutti.dev/pod-group": "a"}
    elsewhere = _in(THEIRS, objects.POD, schedulingGates=[{"name": GATE}], **default)
    wants = _in(OURS, objects.GROUP, binding="KubeScheduler")
    off = reflectors_into(ClusterState(lambda: None), "tutti", (OURS,))
    assert _taken(off.pinned, gated) is None
    assert isinstance(_taken(off.bound, bound), ForeignPod)
    assert _taken(off.gangs[0], wants).unsupported_fields == (NO_HAND_OVER,)
    on = reflectors_into(ClusterState(lambda: None), "tutti", (OURS,), hands_over=True)
    assert isinstance(_taken(on.pinned, gated), Member)
    assert isinstance(_taken(on.bound, bound), Member)
    assert _taken(on.pinned, elsewhere) is None
    assert _taken(on.gangs[0], wants).unsupported_fields == ()
    assert _taken(on.gangs[0], objects.GROUP).bound_by is BoundBy.TUTTI


def test_streams_have_the_plurals_of_their_kinds_as_names() -> None:
    """Users read them in logs; kinds of other projects are told apart by their group."""
    feeds = reflectors_into(ClusterState(lambda: None), "tutti", preempts=True)
    names = {feed.stream.name for feed in feeds.cluster_kinds}
    assert {"Nodes", "PriorityClasses", "PodDisruptionBudgets", "Topologies"} <= names
    assert {"Topologies of kueue.x-k8s.io", "Topologies of kai.scheduler"} <= names
    assert len(names) == len(feeds.cluster_kinds)
