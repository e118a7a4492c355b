"""Claims, volumes and classes as API objects: what is read of them, whatever they say."""

from typing import Any

import pytest

from tutti.kube import errors, wire
from tutti.kube.codec.decode import decode_member, decode_occupant
from tutti.kube.codec.volumes import (
    decode_attachment,
    decode_claim,
    decode_class,
    decode_driver,
    decode_drivers,
    decode_volume,
)
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.volumes import (
    Attachment,
    Claim,
    ClaimKey,
    Driver,
    NodeDrivers,
    StorageClass,
    Volume,
)

from ..objects import pod

ZONE = "topology.kubernetes.io/zone"
BETA = "failure-domain.beta.kubernetes.io/zone"
KEY = ClaimKey("ml", "data")


def claim(spec: Any = None, annotations: Any = None, **more: Any) -> Claim:
    metadata = {"name": "data", "namespace": "ml", "uid": "c", "annotations": annotations}
    metadata |= more.pop("metadata", {})
    raw = {"metadata": metadata, "spec": spec, **more}
    return decode_claim(wire.parse_one(raw, wire.PersistentVolumeClaim))


def volume(spec: Any = None, **labels: str) -> Volume:
    named = {"zone": ZONE, "beta": BETA}
    metadata = {"name": "pv", "uid": "v", "labels": {named.get(k, k): v for k, v in labels.items()}}
    raw = {"metadata": metadata, "spec": spec}
    return decode_volume(wire.parse_one(raw, wire.PersistentVolume))


def test_a_claim_is_bound_once_both_sides_say_so() -> None:
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    assert claim({"volumeName": "pv"}, done) == Claim(KEY, "pv", is_bound=True)
    assert claim({"volumeName": "pv"}) == Claim(KEY, "pv")
    assert claim({}, done) == Claim(KEY)


def test_a_claim_says_what_it_is_and_what_is_wrong_with_it() -> None:
    spec = {"accessModes": ["ReadWriteOncePod"], "storageClassName": "fast"}
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert claim(spec, metadata=gone, status={"phase": "Lost"}) == Claim(
        KEY, storage_class="fast", is_lost=True, terminating=True, for_one_pod=True
    )


def test_the_older_name_of_a_class_goes_first() -> None:
    older = {"volume.beta.kubernetes.io/storage-class": ""}
    assert claim({"storageClassName": "fast"}, older).storage_class == ""


def test_of_a_volume_its_affinity_its_places_and_its_driver_are_read() -> None:
    terms = [
        {"matchExpressions": [{"key": "b", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]},
    ]
    spec = {
        "csi": {"driver": "one.csi", "volumeHandle": "h"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    ways = ((Requirement("a", "In", ("x", "y")),), (Requirement("b", "Exists"),))
    assert volume(spec, zone="z1", app="x") == Volume(
        "pv", ways, ((ZONE, "z1"),), driver="one.csi", handle="h"
    )
    assert volume({"gcePersistentDisk": {"pdName": "d"}}).in_tree == "gcePersistentDisk"
    assert volume({"nfs": {}, "nodeAffinity": {}}) == Volume("pv")


def field(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": list(values)}


AFFINITIES = {
    "no terms match no node": ([], ()),
    "an empty term matches none either": ([{}], ()),
    "a node has no name here, so it has none of these": (
        [{"matchFields": [field("In", "n1")]}],
        (),
    ),
    "and is none of these": ([{"matchFields": [field("NotIn", "n1")]}], ((),)),
    "a field takes one value": ([{"matchFields": [field("NotIn", "n1", "n2")]}], ()),
    "and no other operator": ([{"matchFields": [field("Exists")]}], ()),
}


@pytest.mark.parametrize(("terms", "want"), AFFINITIES.values(), ids=AFFINITIES)
def test_a_volume_knows_nodes_by_their_labels_alone(terms: Any, want: Any) -> None:
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    assert volume(spec).affinity == want


def test_a_class_waits_only_if_it_says_so() -> None:
    def read(**said: str) -> StorageClass:
        raw = {"metadata": {"name": "fast", "uid": "s"}, **said}
        return decode_class(wire.parse_one(raw, wire.StorageClass))

    assert read(volumeBindingMode="WaitForFirstConsumer") == StorageClass("fast", waits=True)
    assert read(volumeBindingMode="Immediate") == read() == StorageClass("fast")
    assert read(provisioner="one.csi").provisioner == "one.csi"


def named(name: str, spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}, "spec": spec}


def test_of_a_node_its_drivers_and_their_limits_are_read() -> None:
    limited = {"name": "b", "allocatable": {"count": 3}}
    listed = [limited, {"name": "a"}, {"name": "c", "allocatable": {}}]
    raw = named("n1", {"drivers": listed})
    assert decode_drivers(wire.parse_one(raw, wire.CSINode)) == NodeDrivers(
        NodeName("n1"), (("a", None), ("b", 3), ("c", None))
    )
    empty = named("n1", {"drivers": None})
    assert decode_drivers(wire.parse_one(empty, wire.CSINode)) == NodeDrivers(NodeName("n1"))


def test_a_driver_says_whether_it_is_needed() -> None:
    needed = wire.parse_one(named("d", {"preventPodSchedulingIfMissing": True}), wire.CSIDriver)
    assert decode_driver(needed) == Driver("d", is_needed=True)
    assert decode_driver(wire.parse_one(named("d", {}), wire.CSIDriver)) == Driver("d")


def test_an_attachment_is_of_a_volume_or_of_no_interest() -> None:
    def read(attacher: str, source: Any) -> Attachment | None:
        spec = {"attacher": attacher, "nodeName": "n1", "source": source}
        return decode_attachment(wire.parse_one(named("a", spec), wire.VolumeAttachment))

    of_one = {"persistentVolumeName": "pv"}
    assert read("one.csi", of_one) == Attachment(NodeName("n1"), "one.csi", "pv")
    assert read("", of_one) is None
    assert read("one.csi", {"inlineVolumeSpec": {}}) is None


@pytest.mark.parametrize(
    ("kind", "decode"),
    [
        (wire.CSIDriver, decode_driver),
        (wire.CSINode, decode_drivers),
        (wire.VolumeAttachment, decode_attachment),
        (wire.PersistentVolumeClaim, decode_claim),
        (wire.PersistentVolume, decode_volume),
        (wire.StorageClass, decode_class),
    ],
)
def test_what_has_no_uid_is_left_out(kind: Any, decode: Any) -> None:
    with pytest.raises(errors.BadObject):
        decode(wire.parse_one({"metadata": {"name": "x"}}, kind))


def mounting(*sources: Any) -> dict[str, Any]:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": one} for i, one in enumerate(sources)]
    return {"volumes": [*volumes, {"name": "tmp", "emptyDir": {}}]}


def test_a_pod_names_its_claims() -> None:
    named = [{"claimName": "b"}, {"claimName": "a", "readOnly": True}, {"claimName": "b"}]
    member = decode_member(pod(mounting(*named)))
    assert (member.claims, member.unsupported_fields) == (("a", "b"), ())
    assert decode_member(pod(mounting())).claims == ()
    assert decode_member(pod({"volumes": []})).claims == ()


@pytest.mark.parametrize("source", [{}, {"claimName": ""}, {"claimName": 7}, "data"])
def test_a_claim_without_a_name_is_not_understood(source: Any) -> None:
    member = decode_member(pod(mounting(source)))
    assert (member.claims, member.unsupported_fields) == (
        (),
        ("spec.volumes[].persistentVolumeClaim",),
    )


def test_of_others_pods_the_claims_of_their_own_count_as_well() -> None:
    spec = mounting({"claimName": "data"})
    spec["volumes"].append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}})
    found = decode_occupant(pod({**spec, "nodeName": "n1"}))
    assert found is not None
    assert found.claims == ("data", "train-0-scratch")
