"""How devices, classes and claims are read, and what is written into claims."""

from typing import Any

import pytest

from tutti.kube import wire
from tutti.kube.codec import devices
from tutti.kube.codec.decode import decode_member, decode_reservation
from tutti.kube.codec.devices import ClaimWrite
from tutti.kube.codec.encode import reservation as encode_reservation
from tutti.kube.codec.hand_over import decode_handed_member
from tutti.kube.errors import BadObject
from tutti.kube.wire import devices as objects
from tutti.kube.wire import objects as more
from tutti.model.cluster import PodReservation, Reservation
from tutti.model.devices.claims import (
    FINALIZER,
    AttributeConstraint,
    AttributeName,
    ClaimAllocation,
    ClaimName,
    Consumer,
    DeviceClaim,
    DeviceRequest,
    DeviceResult,
    PodClaim,
)
from tutti.model.devices.extended import ContainerRequests, RequestMapping, amounts
from tutti.model.devices.inventory import (
    Attribute,
    Capacity,
    Counter,
    DeviceClass,
    DeviceId,
    DeviceTaint,
    DeviceToleration,
)
from tutti.model.keys import GangKey, NodeName, PodKey, Uid

GPU = "gpu.example.com"
ID = DeviceId(GPU, "n1", "gpu-0")


def named(spec: dict[str, Any], status: dict[str, Any] | None = None, **metadata: Any) -> Any:
    about = {"name": "x", "namespace": "ml", "uid": "u", "resourceVersion": "7", **metadata}
    return {"metadata": about, "spec": spec, "status": status or {}}


def read_slice(*raw: dict[str, Any], **spec: Any) -> Any:
    pool = {"name": "n1", "generation": 2, "resourceSliceCount": 3}
    body = named({"driver": GPU, "pool": pool, "nodeName": "n1", "devices": [*raw], **spec})
    return devices.decode_slice(wire.parse_one(body, objects.ResourceSlice))


def read_claim(
    *requests: dict[str, Any],
    status: dict[str, Any] | None = None,
    metadata: Any = None,
    **more: Any,
) -> DeviceClaim:
    body = named({"devices": {"requests": [*requests], **more}}, status, **(metadata or {}))
    return devices.decode_device_claim(wire.parse_one(body, objects.ResourceClaim))


def exactly(**fields: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu", **fields}}


def test_a_slice_has_the_devices_of_a_node() -> None:
    piece = read_slice(
        {
            "name": "gpu-0",
            "attributes": {
                "model": {"string": "A100"},
                "other.example.com/index": {"int": 0},
                "healthy": {"bool": False},
                "version": {"version": "1.2.3"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
        }
    )
    assert (piece.driver, piece.pool, piece.generation, piece.slices) == (GPU, "n1", 2, 3)
    (device,) = piece.devices
    assert device.id == ID
    assert device.attributes == (
        Attribute(GPU, "healthy", value=False),
        Attribute(GPU, "model", "A100"),
        Attribute(GPU, "version", "1.2.3", is_version=True),
        Attribute("other.example.com", "index", 0),
    )
    assert device.capacity == (Capacity(GPU, "memory", "80Gi"),)
    assert device.taints == (DeviceTaint("k", "v", "NoSchedule"),)
    assert device.unsupported == ()


@pytest.mark.parametrize(
    ("raw", "spec", "unsupported"),
    [
        ({"bindsToNode": True}, {}, ("bindsToNode",)),
        ({"allowMultipleAllocations": False}, {}, ()),
        ({"allowMultipleAllocations": True}, {}, ("allowMultipleAllocations",)),
        ({"bindingConditions": ["x"], "future": 1}, {}, ("bindingConditions", "future")),
        ({"attributes": {"a": {"strings": ["x"]}}}, {}, ("attributes[] with several values",)),
        ({}, {"nodeName": "", "allNodes": True}, ("devices of several nodes",)),
    ],
)
def test_what_of_a_device_is_not_supported_is_named(
    raw: dict[str, Any], spec: dict[str, Any], unsupported: tuple[str, ...]
) -> None:
    assert read_slice({"name": "gpu-0", **raw}, **spec).devices[0].unsupported == unsupported


def test_a_class_has_selectors_and_a_configuration() -> None:
    spec = {"selectors": [{"cel": {"expression": "true"}}], "config": [{"opaque": {"driver": "d"}}]}
    raw = wire.parse_one(named(spec), objects.DeviceClass)
    own = DeviceClass("x", ("true",), (), '[{"opaque":{"driver":"d"}}]')
    assert devices.decode_device_class(raw) == own
    assert devices.decode_device_class(raw).config == own.config
    odd = wire.parse_one(named({"selectors": [{"new": 1}]}), objects.DeviceClass)
    assert devices.decode_device_class(odd).unsupported == ("selectors[]",)


def test_a_taint_rule_without_a_selector_matches_nothing() -> None:
    taint = {"taint": {"key": "k", "effect": "NoExecute"}}
    bare = wire.parse_one(named(taint), objects.DeviceTaintRule)
    assert not devices.decode_taint_rule(bare).matches(ID)
    for selector, matches in (({}, True), ({"pool": "n1"}, True), ({"device": "gpu-1"}, False)):
        raw = wire.parse_one(named({**taint, "deviceSelector": selector}), objects.DeviceTaintRule)
        assert devices.decode_taint_rule(raw).matches(ID) is matches


def test_a_claim_has_requests_an_owner_and_consumers() -> None:
    toleration = {"key": "k", "operator": "Exists", "tolerationSeconds": 5}
    selector = {"cel": {"expression": "true"}}
    claim = read_claim(
        exactly(count=2, selectors=[selector], tolerations=[toleration]),
        status={"reservedFor": [{"resource": "pods", "name": "p", "uid": "p-1"}]},
        metadata={
            "ownerReferences": [
                {"kind": "Other", "uid": "o"},
                {"kind": "Pod", "uid": "p-1", "controller": True},
            ],
            "finalizers": [FINALIZER],
        },
    )
    tolerations = (DeviceToleration("k", "Exists", seconds=5),)
    assert claim.requests == (DeviceRequest("gpu", "gpu", 2, ("true",), tolerations),)
    assert (claim.owner, claim.consumers) == ("p-1", (Consumer(Uid("p-1"), "p"),))
    assert (claim.is_allocated, claim.unsupported, claim.version) == (False, (), "7")
    assert claim.finalizers == (FINALIZER,)


def first(**fields: Any) -> dict[str, Any]:
    """A request with two alternatives; the fields are those of the second."""
    parts = [
        {"name": "x", "deviceClassName": "gpu"},
        {"name": "y", "deviceClassName": "gpu", **fields},
    ]
    return {"name": "a", "firstAvailable": parts}


@pytest.mark.parametrize(
    ("request_", "more", "field"),
    [
        (
            first(count=2),
            {"constraints": [{"matchAttribute": "a/b", "requests": ["a/x"]}]},
            "devices.constraints[] for firstAvailable[].count",
        ),
        (first(adminAccess=True), {}, "devices.requests[].firstAvailable[].adminAccess"),
        (
            first(allocationMode="All"),
            {},
            "devices.requests[].firstAvailable[].allocationMode: All",
        ),
        ({"name": "a"}, {}, "devices.requests[]"),
        (exactly(count=0), {}, "devices.requests[].exactly.count: 0"),
        (first(count=0), {}, "devices.requests[].firstAvailable[].count: 0"),
        (
            exactly(adminAccess=True),
            {"constraints": [{"matchAttribute": "a/b"}]},
            "devices.constraints[] for requests with adminAccess",
        ),
        (exactly(allocationMode="Odd"), {}, "devices.requests[].exactly.allocationMode: Odd"),
        (exactly(capacity={"requests": {}}), {}, "devices.requests[].exactly.capacity"),
        (exactly(selectors=[{}]), {}, "devices.requests[].exactly.selectors[]"),
        (exactly(), {"constraints": [{}]}, "devices.constraints[]"),
        (
            exactly(),
            {"constraints": [{"matchAttribute": "a/b", "distinctAttribute": "a/b"}]},
            "devices.constraints[]",
        ),
        (
            exactly(),
            {"constraints": [{"matchAttribute": "a/b", "odd": 1}]},
            "devices.constraints[].odd",
        ),
        (
            exactly(adminAccess=True),
            {"constraints": [{"distinctAttribute": "a/b", "requests": ["gpu"]}]},
            "devices.constraints[] for requests with adminAccess",
        ),
    ],
)
def test_what_of_a_claim_is_not_supported_is_named(
    request_: dict[str, Any], more: dict[str, Any], field: str
) -> None:
    assert read_claim(request_, **more).unsupported == (field,)


def test_alternatives_may_be_for_several_devices() -> None:
    constraints = [{"matchAttribute": "a/b", "requests": ["gpu"]}]
    claim = read_claim(exactly(), first(count=3), constraints=constraints)
    assert claim.unsupported == ()
    assert [part.count for part in claim.requests[1].alternatives] == [1, 3]
    assert [(of.is_plural, of.least, of.most) for of in claim.requests] == [
        (False, 1, 1),
        (True, 1, 3),
    ]


def test_constraints_are_read() -> None:
    constraints = [{"matchAttribute": "a.b/c", "requests": ["gpu"]}, {"matchAttribute": "a.b/d"}]
    both = (
        AttributeConstraint(AttributeName("a.b", "c"), ("gpu",)),
        AttributeConstraint(AttributeName("a.b", "d")),
    )
    beside = read_claim(exactly(), first(), constraints=constraints[:1])
    assert (beside.unsupported, beside.constraints) == ((), both[:1])
    assert read_claim(exactly(), constraints=constraints).constraints == both
    every = read_claim(
        exactly(allocationMode="All"),
        first(),
        constraints=[{"distinctAttribute": "a.b/c", "requests": ["gpu", "a/x"]}],
    )
    different = AttributeConstraint(AttributeName("a.b", "c"), ("gpu", "a/x"), is_distinct=True)
    assert (every.unsupported, every.constraints) == ((), (different,))
    assert [different.covers(name) for name in ("gpu", "a", "a/x", "a/y")] == [
        True,
        False,
        True,
        False,
    ]
    assert AttributeConstraint(AttributeName("a.b", "c"), ("a",)).covers("a/y")


RESULT = {"request": "gpu", "driver": GPU, "pool": "n1", "device": "gpu-0"}


def on(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"devices": {"results": [RESULT]}, "nodeSelector": {"nodeSelectorTerms": [*terms]}}


@pytest.mark.parametrize(
    ("allocation", "nodes", "is_unknown"),
    [
        ({"devices": {"results": [RESULT]}}, None, False),
        (
            on({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
            ("n1",),
            False,
        ),
        (
            on({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": []}]}),
            None,
            True,
        ),
        (on({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}), None, True),
    ],
)
def test_an_allocation_has_devices_and_nodes(
    allocation: dict[str, Any],
    nodes: tuple[str, ...] | None,
    is_unknown: bool,  # noqa: FBT001
) -> None:
    claim = read_claim(exactly(), status={"allocation": allocation})
    assert claim.allocated == (DeviceResult("gpu", ID),)
    assert (claim.nodes, claim.reaches_unknown) == (nodes, is_unknown)


def test_admin_access_takes_no_device() -> None:
    allocation = {"devices": {"results": [{**RESULT, "adminAccess": True}]}}
    claim = read_claim(exactly(adminAccess=True), status={"allocation": allocation})
    assert (claim.allocated, claim.administered) == ((), (DeviceResult("gpu", ID),))
    assert claim.takes_nothing
    assert claim.has((DeviceResult("gpu", ID),))
    assert not claim.has(())


def test_admin_access_beside_other_requests_is_not_supported() -> None:
    claim = read_claim(exactly(adminAccess=True), {**exactly(), "name": "b"})
    assert claim.unsupported == (
        "devices.requests[].exactly.adminAccess beside requests without it",
    )


def test_devices_for_admin_access_are_marked() -> None:
    written = devices.encode_allocation(read_claim(exactly(adminAccess=True)), WRITE)
    (result,) = written["status"]["allocation"]["devices"]["results"]
    assert result["adminAccess"] is True


def test_a_pod_names_claims_and_its_status_those_of_templates() -> None:
    template = {"resourceClaimTemplateName": "t"}
    spec = {
        "resourceClaims": [
            {"name": "a", "resourceClaimName": "own"},
            {"name": "b", **template},
            {"name": "c", **template},
            {"name": "d", **template},
        ]
    }
    statuses = [{"name": "b", "resourceClaimName": "b-x1"}, {"name": "c"}]
    raw = named(spec, {"resourceClaimStatuses": statuses})
    member = decode_member(wire.parse_one(raw, wire.Pod))
    assert member.device_claims == (
        PodClaim("a", "own"),
        PodClaim("b", "b-x1", is_own=True),
        PodClaim("d", None, is_own=True),
    )
    assert member.unsupported_fields == ()


WRITE = ClaimWrite(
    (DeviceResult("gpu", ID),),
    NodeName("n1"),
    (Consumer(Uid("p-2"), "p2"),),
    {"gpu": DeviceClass("gpu", config='[{"opaque":{"driver":"d","parameters":{}}}]')},
)


def test_an_allocation_is_written_as_kube_scheduler_writes_it() -> None:
    claim = read_claim(
        exactly(tolerations=[{"key": "k", "operator": "Exists"}]),
        {"name": "second", "exactly": {"deviceClassName": "tpu"}},
        status={"reservedFor": [{"apiGroup": "g", "resource": "r", "name": "n", "uid": "u"}]},
        config=[
            {"requests": ["gpu"], "opaque": {"driver": "d"}},
            {"opaque": {"driver": "e"}},
            {"requests": ["other"], "opaque": {"driver": "f"}},
        ],
    )
    write = WRITE._replace(classes={**WRITE.classes, "tpu": DeviceClass("tpu")})
    assert devices.encode_allocation(claim, write) == {
        "metadata": {"uid": "u", "resourceVersion": "7"},
        "status": {
            "reservedFor": [
                {"apiGroup": "g", "resource": "r", "name": "n", "uid": "u"},
                {"resource": "pods", "name": "p2", "uid": "p-2"},
            ],
            "allocation": {
                "devices": {
                    "results": [{**RESULT, "tolerations": [{"key": "k", "operator": "Exists"}]}],
                    "config": [
                        {
                            "source": "FromClass",
                            "requests": ["gpu"],
                            "opaque": {"driver": "d", "parameters": {}},
                        },
                        {"source": "FromClaim", "requests": ["gpu"], "opaque": {"driver": "d"}},
                        {"source": "FromClaim", "opaque": {"driver": "e"}},
                    ],
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n1"]}
                            ]
                        }
                    ]
                },
            },
        },
    }


def test_the_chosen_alternative_is_named_and_its_configuration_is_copied() -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    parts = [
        {"name": "big", "deviceClassName": "tpu"},
        {"name": "small", "deviceClassName": "gpu", "tolerations": tolerations},
    ]
    claim = read_claim(
        {"name": "r", "firstAvailable": parts},
        config=[
            {"requests": ["r"], "opaque": {"driver": "d"}},
            {"requests": ["r/small"], "opaque": {"driver": "e"}},
            {"requests": ["r/big"], "opaque": {"driver": "f"}},
        ],
    )
    assert [part.name for part in claim.requests[0].alternatives] == ["big", "small"]
    assert claim.unsupported == ()
    tpu = DeviceClass("tpu", config='[{"opaque":{"driver":"t"}}]')
    write = WRITE._replace(
        results=(DeviceResult("r/small", ID),), classes={**WRITE.classes, "tpu": tpu}
    )
    given = devices.encode_allocation(claim, write)["status"]["allocation"]["devices"]
    assert given["results"] == [{**RESULT, "request": "r/small", "tolerations": tolerations}]
    assert [(c["source"], c["opaque"]["driver"]) for c in given["config"]] == [
        ("FromClass", "d"),
        ("FromClaim", "d"),
        ("FromClaim", "e"),
    ]
    assert not any("requests" in config for config in given["config"])


def test_a_request_may_be_for_all_devices_of_a_node() -> None:
    (wanted,) = read_claim(exactly(allocationMode="All")).requests
    assert wanted.takes_all
    assert wanted.classes == ("gpu",)


def test_a_pod_that_joins_changes_no_allocation() -> None:
    written = devices.encode_allocation(read_claim(exactly()), WRITE._replace(results=()))
    assert "allocation" not in written["status"]


def test_without_consumers_nothing_stays_allocated() -> None:
    claim = read_claim(exactly(), metadata={"finalizers": ["x/y", FINALIZER]})
    same = {"uid": "u", "resourceVersion": "7"}
    freed = {"metadata": same, "status": {"reservedFor": [], "allocation": None}}
    assert devices.encode_consumers(claim, ()) == freed
    left = devices.encode_consumers(claim, WRITE.consumers)["status"]
    assert left == {"reservedFor": [{"resource": "pods", "name": "p2", "uid": "p-2"}]}
    for protected, finalizers in ((True, ["x/y", FINALIZER]), (False, ["x/y"])):
        assert devices.encode_finalizers(claim, protected=protected) == {
            "metadata": {**same, "finalizers": finalizers}
        }


def test_a_reservation_keeps_the_devices_of_its_pods() -> None:
    given = ClaimAllocation("c", Uid("c-1"), (DeviceResult("gpu", ID),))
    entries = tuple(
        PodReservation(PodKey("ml", f"p{i}"), Uid(f"p-{i}"), NodeName("n1"), claims)
        for i, claims in enumerate([(given,), (), (ClaimAllocation("d", Uid("d-1")),)])
    )
    held = Reservation(GangKey("ml", "a"), Uid("a-1"), 1, "tutti", "t", 5.0, entries)
    body = {**encode_reservation(held)}
    body["metadata"] = {**body["metadata"], "uid": "r", "resourceVersion": "1"}
    assert decode_reservation(wire.parse_one(body, more.Reservation)).entries == entries
    assert ClaimName("ml", "c") == ("ml", "c")


def test_counters_are_read() -> None:
    spec: dict[str, Any] = {
        "driver": GPU,
        "pool": {"name": "n1", "resourceSliceCount": 2},
        "nodeName": "n1",
        "sharedCounters": [
            {"name": "b", "counters": {"cores": {"value": 7}}},
            {"name": "a", "counters": {"memory": {"value": "80Gi"}}},
        ],
    }
    sets = wire.parse_one(
        {"metadata": {"name": "s", "uid": "u"}, "spec": spec}, objects.ResourceSlice
    )
    assert devices.decode_slice(sets).counters == (
        Counter("a", "memory", "80Gi"),
        Counter("b", "cores", "7"),
    )
    uses = [{"counterSet": "a", "counters": {"memory": {"value": "40Gi"}}}]
    del spec["sharedCounters"]
    spec["devices"] = [{"name": "half", "consumesCounters": uses}]
    piece = wire.parse_one(
        {"metadata": {"name": "s", "uid": "u"}, "spec": spec}, objects.ResourceSlice
    )
    (half,) = devices.decode_slice(piece).devices
    assert (half.counters, half.unsupported) == ((Counter("a", "memory", "40Gi"),), ())


def read_pod(
    containers: list[dict[str, Any]],
    init: list[dict[str, Any]] | None = None,
    status: dict[str, Any] | None = None,
    scheduler: str = "tutti",
) -> wire.Pod:
    spec = {
        "schedulerName": scheduler,
        "containers": containers,
        "initContainers": init or [],
    }
    return wire.parse_one(named(spec, status), wire.Pod)


def asking(name: str, restart: str = "", **requests: object) -> dict[str, Any]:
    amounts = {key.replace("__", "/").replace("_", "."): n for key, n in requests.items()}
    return {"name": name, "resources": {"requests": amounts}, "restartPolicy": restart}


def test_a_pod_requests_extended_resources_by_container() -> None:
    init = [
        asking("init", nvidia_com__gpu="2"),
        asking("sidecar", "Always", cpu="1", nvidia_com__gpu="1"),
        asking("plain", cpu="1"),
    ]
    main = asking(
        "main", cpu="1", memory="1Gi", nvidia_com__gpu="4", a_b__c="1", kubernetes_io__x=1
    )
    member = decode_member(read_pod([main], init))
    gpu = "nvidia.com/gpu"
    assert member.extended_requests == (
        ContainerRequests(0, "init", (gpu,), ((gpu, 2),), is_short_lived=True),
        ContainerRequests(1, "sidecar", ("cpu", gpu), ((gpu, 1),)),
        ContainerRequests(
            3,
            "main",
            ("a.b/c", "cpu", "kubernetes.io/x", "memory", gpu),
            (("a.b/c", 1), (gpu, 4)),
        ),
    )
    assert [of.request_name(gpu) for of in member.extended_requests] == [
        "container-0-request-0",
        "container-1-request-1",
        "container-3-request-4",
    ]
    again = decode_member(read_pod([main], init))
    assert again.extended_requests is member.extended_requests
    assert member.shape.requests[gpu] == amounts(member.extended_requests)[gpu]


@pytest.mark.parametrize("amount", ["0", "500m", 0])
def test_an_amount_that_is_no_number_of_devices_is_left_out(amount: object) -> None:
    member = decode_member(read_pod([asking("main", nvidia_com__gpu=amount)]))
    assert member.extended_requests == ()


def test_a_negative_amount_makes_a_pod_unreadable() -> None:
    with pytest.raises(BadObject):
        decode_member(read_pod([asking("main", nvidia_com__gpu="-1")]))


def test_the_status_of_a_pod_names_the_claim_for_its_extended_resources() -> None:
    mappings = [{"resourceName": "nvidia.com/gpu"}, {"resourceName": "nvidia.com/gpu"}]
    claim = {"resourceClaimName": "c", "requestMappings": mappings}
    status = {"extendedResourceClaimStatus": claim}
    main = asking("main", nvidia_com__gpu="1")
    member = decode_member(read_pod([main], status=status))
    assert (member.extended_claim, member.extended_resources) == ("c", ("nvidia.com/gpu",))
    assert decode_member(read_pod([main])).extended_claim == ""
    assert decode_member(read_pod([asking("main")], status=status)).extended_claim == ""
    handed = decode_handed_member(read_pod([main], status=status, scheduler="default-scheduler"))
    assert (handed.extended_requests, handed.extended_claim) == ((), "")


def test_a_claim_for_extended_resources_is_owned_by_its_pod() -> None:
    member = decode_member(read_pod([asking("main", nvidia_com__gpu="2")]))
    request = DeviceRequest("container-0-request-0", "gpu", 2)
    body = devices.encode_extended_claim(member, "c", [request])
    assert body["metadata"]["annotations"] == {
        "resource.kubernetes.io/extended-resource-claim": "true"
    }
    body["metadata"] |= {"uid": "u-2", "resourceVersion": "8"}
    claim = devices.decode_device_claim(wire.parse_one(body, objects.ResourceClaim))
    assert claim.requests == (request,)
    assert (claim.key, claim.owner, claim.unsupported) == (ClaimName("ml", "c"), "u", ())
    mapping = RequestMapping("main", "nvidia.com/gpu", "container-0-request-0")
    patch = devices.encode_extended_status(member, "c", [mapping])
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "7"}
    assert patch["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": "c",
        "requestMappings": [
            {
                "containerName": "main",
                "resourceName": "nvidia.com/gpu",
                "requestName": "container-0-request-0",
            }
        ],
    }


def test_a_class_names_the_extended_resource_that_it_backs() -> None:
    body = named(
        {"extendedResourceName": "nvidia.com/gpu"}, creationTimestamp="1970-01-01T00:01:00Z"
    )
    read = devices.decode_device_class(wire.parse_one(body, objects.DeviceClass))
    assert (read.extended_resource, read.created) == ("nvidia.com/gpu", 60.0)
