"""Claims, volumes and classes as API objects: what is read of them, whatever they say."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.kube import errors, wire
from tutti.kube.codec.decode import decode_member, decode_occupant
from tutti.kube.codec.volumes import (
    decode_attachment,
    decode_capacity,
    decode_claim,
    decode_class,
    decode_driver,
    decode_drivers,
    decode_volume,
    encode_binding,
    encode_selected_node,
)
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName
from tutti.model.volumes import (
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    ClaimRef,
    Driver,
    NodeDrivers,
    Offer,
    StorageClass,
    Volume,
    VolumeRequest,
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
    nothing = VolumeRequest("")
    assert claim({"volumeName": "pv"}, done) == Claim(KEY, "pv", is_bound=True, uid="c")
    assert claim({"volumeName": "pv"}) == Claim(KEY, "pv", uid="c", request=nothing)
    assert claim({}, done) == Claim(KEY, uid="c", request=nothing)


def test_a_claim_says_what_it_is_and_what_is_wrong_with_it() -> None:
    spec = {"accessModes": ["ReadWriteOncePod"], "storageClassName": "fast"}
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert claim(spec, metadata=gone, status={"phase": "Lost"}) == Claim(
        KEY,
        storage_class="fast",
        is_lost=True,
        terminating=True,
        for_one_pod=True,
        uid="c",
        request=VolumeRequest("fast", modes=("ReadWriteOncePod",)),
    )


def test_what_a_claim_requests_of_a_volume_is_read_until_it_is_bound() -> None:
    spec = {
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1.5Gi"}},
        "volumeMode": "Block",
        "selector": {"matchLabels": {"tier": "gold"}},
        "volumeAttributesClassName": "quick",
    }
    selected = {"volume.kubernetes.io/selected-node": "n1"}
    owned = {
        "resourceVersion": "7",
        "ownerReferences": [{"uid": "o"}, {"uid": "p", "controller": True}],
    }
    read = claim(spec, selected, metadata={**owned, "annotations": selected})
    assert read.request == VolumeRequest(
        "fast",
        3 * 2**29,
        ("ReadOnlyMany", "ReadWriteOnce"),
        is_block=True,
        selector=(Requirement("tier", "In", ("gold",)),),
        attributes_class="quick",
    )
    assert (read.selected_node, read.version, read.owner) == ("n1", "7", "p")
    done = {**selected, "pv.kubernetes.io/bind-completed": "yes"}
    bound = claim({**spec, "volumeName": "pv"}, done, metadata={**owned, "annotations": done})
    assert (bound.request, bound.selected_node, bound.version) == (None, None, "")


def test_a_selector_that_cannot_be_read_is_none() -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    request = claim({"selector": selector}).request
    assert request is not None
    assert request.selector is None


@pytest.mark.parametrize("size", ["much", "-1"])
def test_a_claim_of_an_unreadable_size_is_no_claim(size: str) -> None:
    with pytest.raises(errors.BadObject, match="its request cannot be read"):
        claim({"resources": {"requests": {"storage": size}}})


OFFERED = {
    "storageClassName": "fast",
    "capacity": {"storage": "2Gi"},
    "accessModes": ["ReadWriteOnce"],
    "volumeAttributesClassName": "quick",
}
OFFER = Offer("fast", 2**31, ("ReadWriteOnce",), attributes_class="quick")
MINE = {"namespace": "ml", "name": "data", "uid": "c"}


def offering(phase: str, spec: Any = None, **metadata: Any) -> Volume:
    named = {"name": "pv", "uid": "v", "labels": {"tier": "gold"}, **metadata}
    raw = {"metadata": named, "spec": {**OFFERED, **(spec or {})}, "status": {"phase": phase}}
    return decode_volume(wire.parse_one(raw, wire.PersistentVolume))


def test_a_volume_offers_what_it_has_while_a_claim_may_be_bound_to_it() -> None:
    free = offering("Available")
    assert free.offer == replace(OFFER, labels=(("tier", "gold"),))
    assert free.is_available
    bound = offering("Bound", {"claimRef": MINE, "volumeMode": "Block"})
    assert bound.offer == replace(OFFER, is_block=True)
    assert bound.claim == ClaimRef(KEY, "c")
    assert not bound.is_available
    for phase in ("Released", "Failed", "Pending"):
        assert offering(phase).offer is None
    assert offering("Available", deletionTimestamp="2026-01-01T00:00:00Z").offer is None


def test_a_volume_is_for_the_claim_of_its_reference() -> None:
    mine = Claim(KEY, uid="c")
    assert offering("Bound", {"claimRef": MINE}).is_for(mine)
    assert offering("Bound", {"claimRef": {**MINE, "uid": ""}}).is_for(mine)
    assert not offering("Bound", {"claimRef": {**MINE, "uid": "older"}}).is_for(mine)
    assert not offering("Bound", {"claimRef": {**MINE, "name": "other"}}).is_for(mine)
    assert not offering("Available").is_for(mine)


def test_a_volume_of_an_unreadable_size_is_no_volume() -> None:
    with pytest.raises(errors.BadObject, match="its size cannot be read"):
        offering("Available", {"capacity": {"storage": "much"}})


def test_a_class_says_where_its_volumes_may_be_provisioned() -> None:
    def topologies(*terms: Any) -> Any:
        raw = {"metadata": {"name": "fast", "uid": "s"}, "allowedTopologies": list(terms)}
        return decode_class(wire.parse_one(raw, wire.StorageClass)).topologies

    zones = {"matchLabelExpressions": [{"key": ZONE, "values": ["z2", "z1"]}]}
    assert topologies(zones, {}) == ((Requirement(ZONE, "In", ("z1", "z2")),),)
    assert topologies({}) == ()
    assert topologies() is None


def capacity(**spec: Any) -> Capacity | None:
    raw = {"metadata": {"namespace": "csi", "name": "k", "uid": "k"}, "storageClassName": "fast"}
    return decode_capacity(wire.parse_one({**raw, **spec}, wire.CSIStorageCapacity))


def test_a_capacity_is_the_largest_volume_that_can_be_made_on_some_nodes() -> None:
    here = {"nodeTopology": {"matchLabels": {ZONE: "z1"}}}
    way = (Requirement(ZONE, "In", ("z1",)),)
    assert capacity(**here, capacity="5Gi") == Capacity("fast", way, 5 * 2**30)
    limited = capacity(**here, capacity="5Gi", maximumVolumeSize="1Gi")
    assert limited == Capacity("fast", way, 2**30)
    assert capacity(nodeTopology={}, capacity="1") == Capacity("fast", (), 1)
    assert capacity(**here) is None
    assert capacity(capacity="5Gi") is None
    unreadable = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    assert capacity(nodeTopology=unreadable, capacity="1") is None
    with pytest.raises(errors.BadObject, match="its size cannot be read"):
        capacity(**here, capacity="much")


def test_a_volume_is_given_to_one_claim_in_the_version_that_was_read() -> None:
    assert encode_binding("7", Claim(KEY, uid="c")) == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
        },
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "ml",
                "name": "data",
                "uid": "c",
            }
        },
    }
    annotation = {"volume.kubernetes.io/selected-node": None}
    assert encode_selected_node(None, "7") == {
        "metadata": {"resourceVersion": "7", "annotations": annotation}
    }


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
    publishing = wire.parse_one(named("d", {"storageCapacity": True}), wire.CSIDriver)
    assert decode_driver(publishing) == Driver("d", has_capacity=True)
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
