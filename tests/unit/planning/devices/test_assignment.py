"""The devices that the claims of placed pods get."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.harness.builders import NAMESPACE, member, shape
from tests.harness.fake_devices import DRIVER, device, device_class, gpus
from tutti.filters.devices import bundles, requests, ways
from tutti.model.cluster import Member
from tutti.model.devices.claims import (
    AttributeConstraint,
    AttributeName,
    ClaimName,
    DeviceClaim,
    DeviceRequest,
    DeviceResult,
    DeviceRoom,
    FreeDevice,
    NodeDevices,
    PodClaim,
    stand_in,
)
from tutti.model.devices.inventory import DeviceId
from tutti.model.keys import NodeName, Uid
from tutti.planning.devices.assignment import allocations

N1 = NodeName("n1")
LARGE = (f'device.attributes["{DRIVER}"].?memory.orValue("") == "large"',)
ANY = DeviceRequest("any", "gpu")
BIG = DeviceRequest("big", "gpu", 1, LARGE)
CLASS = device_class()
SELECTIONS = tuple(requests.selection(wanted, {"gpu": CLASS}) for wanted in (ANY, BIG))


def claim(
    name: str, *wanted: DeviceRequest, allocated: Sequence[DeviceResult] | None = None
) -> DeviceClaim:
    results = None if allocated is None else tuple(allocated)
    return DeviceClaim(ClaimName(NAMESPACE, name), Uid(name), wanted, allocated=results)


def room(free: Sequence[int], *claims: DeviceClaim) -> DeviceRoom:
    devices = [FreeDevice(DeviceId("d", "n1", f"{i}"), mask) for i, mask in enumerate(free)]
    here = NodeDevices(N1, tuple(devices))
    return DeviceRoom(True, (), (CLASS,), (), claims, SELECTIONS, (here,))  # noqa: FBT003


def pod(name: str, *claims: str) -> Member:
    made = member(name, shape(cpu=1))
    own = tuple(PodClaim(f"c{i}", claim) for i, claim in enumerate(claims))
    return Member(made.key, made.uid, made.version, made.shape, 0.0, device_claims=own)


def names(room: DeviceRoom, *pods: Member) -> dict[str, list[tuple[str, str]]]:
    given = allocations(room, [(p, N1) for p in pods])
    return {
        p.key.name: [(r.request, r.device.name) for own in given[p.uid] for r in own.results]
        for p in pods
        if p.uid in given
    }


def test_a_pod_without_claims_gets_none() -> None:
    assert allocations(room([3]), [(pod("a"), N1)]) == {}


def test_the_device_that_few_want_goes_first() -> None:
    assert names(room([3, 1], claim("c", ANY)), pod("a", "c")) == {"a": [("any", "1")]}


def test_a_request_moves_so_that_another_gets_its_device() -> None:
    both = claim("c", ANY, BIG)
    assert names(room([3, 1], both), pod("a", "c")) == {"a": [("any", "1"), ("big", "0")]}
    twice = claim("d", BIG, DeviceRequest("any", "gpu", 2))
    found = names(room([1, 3, 1], twice), pod("a", "d"))
    assert found == {"a": [("big", "1"), ("any", "0"), ("any", "2")]}


def test_a_pod_that_lacks_a_device_or_a_claim_is_left_out() -> None:
    short = room([1], claim("c", ANY), claim("d", ANY))
    assert names(short, pod("a", "c"), pod("b", "d")) == {"a": [("any", "0")]}
    assert names(short, pod("a", "nothing")) == {}
    unknown = claim("c", DeviceRequest("r", "gpu", 1, ("true",)))
    assert names(room([1], unknown), pod("a", "c")) == {}


def test_all_devices_of_a_node_are_given_without_stand_ins() -> None:
    every = DeviceRequest("every", "gpu", takes_all=True)
    own = claim("c", every)
    selected = requests.selection(every, {"gpu": CLASS})
    free = [FreeDevice(DeviceId("d", "n1", "0"), 1), FreeDevice(stand_in(0, 0), 1)]
    here = NodeDevices(N1, tuple(free))
    whole = replace(room([], own), selections=(selected,), nodes=(here,))
    assert names(whole, pod("a", "c")) == {"a": [("every", "0")]}
    assert names(replace(whole, nodes=()), pod("a", "c")) == {}


def test_the_first_alternative_that_is_free_is_given() -> None:
    parts = (DeviceRequest("large", "gpu", 1, LARGE), DeviceRequest("any", "gpu"))
    first = DeviceRequest("r", "", alternatives=parts)
    own = [claim(name, first) for name in ("c", "d")]
    selected = requests.selection(first, {"gpu": CLASS})
    piece = gpus("n1", 2)
    big = device("gpu-1", "n1", (), memory="large")
    known = replace(piece, devices=(piece.devices[0], big))
    free = NodeDevices(N1, tuple(FreeDevice(of.id, 1) for of in known.devices))
    both = replace(room([], *own), slices=(known,), selections=(selected,), nodes=(free,))
    given = names(both, pod("a", "c"), pod("b", "d"))
    assert given == {"a": [("r/large", "gpu-1")], "b": [("r/any", "gpu-0")]}


def test_pods_that_share_a_claim_get_its_devices_together() -> None:
    shared = room([1, 1], claim("c", ANY), claim("d", DeviceRequest("any", "gpu", 2)))
    given = names(shared, pod("a", "c"), pod("b", "c"))
    assert given == {"a": [("any", "0")], "b": [("any", "0")]}
    assert names(shared, pod("a", "c"), pod("b", "c", "d")) == {"a": [("any", "0")]}


def test_a_claim_that_has_devices_gets_no_others() -> None:
    own = claim("c", ANY, allocated=[DeviceResult("any", DeviceId("d", "n1", "9"))])
    assert names(room([1], own), pod("a", "c")) == {"a": []}


NUMA = AttributeConstraint(AttributeName(DRIVER, "numa"))


def halves(
    own: DeviceClaim, *others: DeviceClaim, free: Sequence[int] = (3, 1, 1, 3)
) -> DeviceRoom:
    """Two devices in each of two NUMA nodes, with what the free ones meet."""
    piece = gpus("n1", 4)
    devices = tuple(device(of.id.name, "n1", (), numa=i // 2) for i, of in enumerate(piece.devices))
    known = [FreeDevice(of.id, mask) for of, mask in zip(devices, free, strict=False)]
    made = room([], replace(own, constraints=(NUMA,)), *others)
    slices = (replace(piece, devices=devices),)
    return replace(made, slices=slices, nodes=(NodeDevices(N1, tuple(known)),))


def test_devices_of_a_claim_have_one_value() -> None:
    pair = claim("c", DeviceRequest("any", "gpu", 2))
    assert names(halves(pair), pod("a", "c")) == {"a": [("any", "gpu-0"), ("any", "gpu-1")]}
    both = claim("c", ANY, BIG)
    given = names(halves(both, free=(1, 1, 1, 3)), pod("a", "c"))
    assert given == {"a": [("any", "gpu-2"), ("big", "gpu-3")]}


def test_bundles_leave_devices_that_other_requests_need() -> None:
    """The pair takes the half without large devices, which the other claim needs."""
    pair, large = claim("c", DeviceRequest("any", "gpu", 2)), claim("d", BIG)
    given = names(halves(pair, large, free=(3, 1, 1, 1)), pod("a", "c"), pod("b", "d"))
    assert given == {"a": [("any", "gpu-2"), ("any", "gpu-3")], "b": [("big", "gpu-0")]}


def test_two_bundles_of_a_node_are_given_together() -> None:
    """The first pair must not take the half that the second one needs."""
    pair = DeviceRequest("any", "gpu", 2)
    second = claim("d", ANY, BIG)
    made = halves(claim("c", pair), replace(second, constraints=(NUMA,)), free=(3, 1, 1, 1))
    given = names(made, pod("a", "c"), pod("b", "d"))
    assert given == {
        "a": [("any", "gpu-2"), ("any", "gpu-3")],
        "b": [("any", "gpu-1"), ("big", "gpu-0")],
    }


def test_a_pod_whose_devices_cannot_match_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    three, other = claim("c", DeviceRequest("any", "gpu", 3)), claim("d", ANY)
    made = halves(three, other)
    assert names(made, pod("a", "c"), pod("b", "d")) == {"b": [("any", "gpu-1")]}
    unknown = claim("c", DeviceRequest("r", "gpu", 1, ("true",)))
    assert names(halves(unknown), pod("a", "c")) == {}
    two = claim("c", DeviceRequest("any", "gpu", 2))
    twice = halves(two, replace(two, key=ClaimName(NAMESPACE, "d"), constraints=(NUMA,)))
    third = replace(two, key=ClaimName(NAMESPACE, "e"), constraints=(NUMA,))
    pods = [pod("a", "c"), pod("b", "d"), pod("x", "e")]
    assert names(replace(twice, claims=(*twice.claims, third)), *pods) == {}
    monkeypatch.setattr(ways, "MOST_STEPS", 0)
    assert names(halves(two), pod("a", "c")) == {}


def differing(own: DeviceClaim, *constraints: AttributeConstraint, numa: str) -> DeviceRoom:
    """Devices in these NUMA nodes, all at one root."""
    devices = tuple(device(f"gpu-{i}", "n1", (), numa=int(n), root=0) for i, n in enumerate(numa))
    selections = tuple(
        sorted({*bundles.selections(replace(own, constraints=constraints), CLASSES)}, key=str)
    )
    free = tuple(
        FreeDevice(
            of.id,
            sum(1 << i for i, known in enumerate(selections) if requests.is_met(known, of, ())),
        )
        for of in devices
    )
    made = room([], replace(own, constraints=constraints))
    return replace(
        made,
        slices=(replace(gpus("n1", 0), devices=devices),),
        nodes=(NodeDevices(N1, free),),
        selections=selections,
    )


CLASSES = {"gpu": CLASS}
ROOT = AttributeConstraint(AttributeName(DRIVER, "root"))


def test_devices_of_a_claim_differ() -> None:
    different = NUMA._replace(is_distinct=True)
    three = claim("c", DeviceRequest("any", "gpu", 3))
    given = names(differing(three, different, numa="001122"), pod("a", "c"))
    assert given == {"a": [("any", "gpu-0"), ("any", "gpu-2"), ("any", "gpu-4")]}
    both = claim("c", DeviceRequest("a", "gpu", 2), DeviceRequest("b", "gpu", 2))
    apart = [different._replace(requests=(name,)) for name in "ab"]
    assert len(names(differing(both, ROOT, *apart, numa="0011"), pod("a", "c"))["a"]) == 4
    assert names(differing(both, ROOT, *apart, numa="0001"), pod("a", "c")) == {}


def test_a_device_is_for_the_alternative_whose_constraints_hold() -> None:
    parts = (DeviceRequest("near", "gpu"), DeviceRequest("far", "gpu"), DeviceRequest("off", "gpu"))
    own = claim("c", ANY, DeviceRequest("r", "", alternatives=parts))
    some = NUMA._replace(requests=("any", "r/near", "r/off"))
    assert names(differing(own, some, numa="01"), pod("a", "c")) == {
        "a": [("any", "gpu-0"), ("r/far", "gpu-1")]
    }
    assert names(differing(own, some, numa="00"), pod("a", "c")) == {
        "a": [("any", "gpu-0"), ("r/near", "gpu-1")]
    }


def test_all_devices_of_a_node_that_match_are_given_without_stand_ins() -> None:
    every = claim("c", DeviceRequest("every", "gpu", takes_all=True))
    for numa, given in (("00", {"a": [("every", "gpu-0"), ("every", "gpu-1")]}), ("01", {})):
        made = differing(every, NUMA, numa=numa)
        (here,) = made.nodes
        free = (*here.free, FreeDevice(stand_in(0, 0), 1))
        assert names(replace(made, nodes=(NodeDevices(N1, free),)), pod("a", "c")) == given


def test_bundles_leave_counters_that_other_requests_need() -> None:
    """The pair takes the half that consumes little."""
    made = halves(claim("c", DeviceRequest("any", "gpu", 2)), claim("d", BIG), free=(1, 1, 1, 1))
    (here,) = made.nodes
    amounts = (3, 3, 1, 1)
    free = [of._replace(counters=((0, n),)) for of, n in zip(here.free, amounts, strict=True)]
    free[0] = free[0]._replace(selections=3)
    pods = pod("a", "c"), pod("b", "d")
    for left, given in (
        (5, {"a": [("any", "gpu-2"), ("any", "gpu-3")], "b": [("big", "gpu-0")]}),
        (4, {"b": [("big", "gpu-0")]}),
    ):
        there = replace(made, nodes=(NodeDevices(N1, tuple(free), (left,)),))
        assert names(there, *pods) == given


def test_a_device_that_is_in_no_slice_has_no_attributes() -> None:
    pair = claim("c", DeviceRequest("any", "gpu", 1))
    assert names(replace(halves(pair), slices=()), pod("a", "c")) == {}
    had = claim("c", ANY, allocated=[DeviceResult("any", DeviceId("d", "n1", "9"))])
    assert names(halves(had), pod("a", "c")) == {"a": []}
