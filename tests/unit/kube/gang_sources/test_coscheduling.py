"""PodGroups of scheduler-plugins, and the pods that name them."""

from __future__ import annotations

from typing import Any

import pytest

from tutti.kube import gang_sources, wire
from tutti.kube.codec import encode
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources.coscheduling import KIND, PodGroup, decode_group
from tutti.model.cluster import Reservation
from tutti.model.keys import POD, GangKey, Uid

from .. import objects

LABEL = "scheduling.x-k8s.io/pod-group"
NAME = "podgroups.scheduling.x-k8s.io"
KEY = GangKey("ml", "mpi", KIND.api)


def group(**spec: Any) -> PodGroup:
    metadata = {
        "name": "mpi",
        "namespace": "ml",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    status = {"phase": "Finished", "running": 3}
    return wire.parse_one({"metadata": metadata, "spec": spec, "status": status}, PodGroup)


def test_a_pod_group_declares_a_gang() -> None:
    gang_object = decode_group(
        group(minMember=3, scheduleTimeoutSeconds=60, minResources={"cpu": "6"})
    )
    assert (gang_object.key, gang_object.uid, gang_object.generation) == (KEY, "u", 2)
    assert (gang_object.min_member, gang_object.timeout_seconds, gang_object.version) == (
        3,
        60,
        "7",
    )
    assert not gang_object.status  # their controller's own


@pytest.mark.parametrize("amounts", [{"cpu": "1000000"}, {"cpu": "odd"}, {}, None, 7])
def test_min_resources_have_no_effect(amounts: object) -> None:
    assert decode_group(group(minMember=3, minResources=amounts)) == decode_group(
        group(minMember=3)
    )


@pytest.mark.parametrize("spec", [{}, {"minMember": 0}, {"minMember": -5}])
def test_a_gang_has_a_member(spec: dict[str, Any]) -> None:
    assert decode_group(group(**spec)).min_member == 1


@pytest.mark.parametrize(
    ("labels", "names", "gang"),
    [
        ({LABEL: "mpi"}, [NAME], KEY),
        ({LABEL: "mpi"}, [], GangKey("ml", "a-0", POD)),
        ({LABEL: "mpi", "tutti.dev/pod-group": "own"}, [NAME], GangKey("ml", "own")),
    ],
    ids=["chosen", "not chosen", "Tutti's own first"],
)
def test_a_pod_joins_it_where_the_source_is_chosen(
    labels: dict[str, str], names: list[str], gang: GangKey
) -> None:
    body = objects.merged(objects.POD, {"metadata": {"namespace": "ml", "name": "a-0"}})
    body["metadata"]["labels"] = labels
    member = decode_member(wire.parse_one(body, wire.Pod), gang_sources.chosen(names))
    assert member.gang == gang


def test_its_reservation_belongs_to_the_object_in_its_own_version() -> None:
    """The API server deletes what is owned by an object that it cannot find."""
    body = encode.reservation(Reservation(KEY, Uid("u"), 2, "tutti", "t", 0.0, ()))
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"]) == ("scheduling.x-k8s.io/v1alpha1", "PodGroup")


@pytest.mark.parametrize("seconds", [0, -1, None])
def test_without_a_timeout_it_waits(seconds: int | None) -> None:
    """The MPI operator writes 0 where users say nothing."""
    assert decode_group(group(minMember=3, scheduleTimeoutSeconds=seconds)).timeout_seconds is None
