"""Constraints of claims: what fits which node, and that nobody can make that take long."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.builders import gang, node
from tests.harness.counting import calls_of
from tests.harness.fake_devices import DRIVER, claim, device, device_class, request
from tests.harness.fakes import Clock, FakeCluster, Life
from tutti.filters.devices import limits
from tutti.model.cluster import Member
from tutti.model.devices.claims import PodClaim, is_counting_sets
from tutti.model.devices.inventory import Counter, ResourceSlice
from tutti.model.keys import NodeName
from tutti.state.devices import bundle_rows

PORT = f"{DRIVER}/port"


def ports(*values: int, place: str = "n1") -> ResourceSlice:
    """A device for each of these values."""
    devices = tuple(device(f"d-{i}", place, (), port=n) for i, n in enumerate(values))
    return ResourceSlice(f"{place}-slice", DRIVER, place, node=NodeName(place), devices=devices)


def shown(
    piece: ResourceSlice, *claims: dict[str, Any], beside: dict[str, Any] | None = None
) -> tuple[Life, Sequence[Member]]:
    """The pods of these claims; no pod names the claim beside them."""
    cluster = FakeCluster()
    cluster.add(node("n1", cpu=8))
    cluster.put_devices(piece, device_class(), *claims, *([beside] if beside else []))
    for own in claims:
        name = own["metadata"]["name"]
        cluster.add(gang(name).of(1, cpu=1).each(device_claims=(PodClaim("gpu", name),)))
    life = Life(cluster, Clock())
    return life, [of.members[0] for of in life.state.snapshot(0.0).gangs]


def sets(life: Life) -> int:
    """How many sets of devices the node has."""
    (here,) = life.state.snapshot(0.0).nodes
    return sum(n for name, n in here.allocatable.amounts if is_counting_sets(name))


def different(*requests: dict[str, Any], name: str = "c", of: Sequence[str] = ()) -> dict[str, Any]:
    constraint = {"requests": [*of], "distinctAttribute": PORT}
    return claim(name, *requests, constraints=[constraint])


@pytest.mark.parametrize(
    ("values", "count", "most"),
    [
        ((0, 0, 1, 1), 2, 2),
        ((0, 0, 0, 1), 2, 1),
        ((0, 1, 2, 3), 4, 1),
        ((0, 0, 0), 2, 0),
        ((0,) * 8 + (1,) * 8 + (2,) * 8 + (3,) * 8, 3, 10),
        (tuple(i for i in range(8) for _ in range(16)), 4, 32),
    ],
)
def test_devices_that_must_differ_are_counted(
    values: tuple[int, ...], count: int, most: int
) -> None:
    life, (member,) = shown(ports(*values), different(request(count=count)))
    assert not member.unsupported_fields
    assert sets(life) == most


def test_all_devices_of_a_node_must_meet_a_constraint() -> None:
    every = request(allocationMode="All")
    for values, most in (((0, 1, 2), 1), ((0, 1, 1), 0)):
        life, (member,) = shown(ports(*values), different(every))
        assert not member.unsupported_fields
        assert sets(life) == most


def test_an_alternative_with_a_constraint_of_its_own_is_one_of_two_options() -> None:
    large = f'device.attributes["{DRIVER}"].port == 1'
    parts = [
        {"name": "p0", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": large}}]},
        {"name": "p1", "deviceClassName": "gpu"},
    ]
    first = {"name": "first", "firstAvailable": parts}
    for names, most in ((["gpu", "first/p0"], 1), (["gpu", "first"], 0)):
        life, (member,) = shown(ports(1, 1), different(request(), first, of=names))
        assert not member.unsupported_fields
        assert sets(life) == most


def test_constraints_hold_for_devices_that_share_counters() -> None:
    piece = ports(0, 0, 1, 1)
    uses = (Counter("set", "cores", "3"),)
    shared = replace(
        piece,
        devices=tuple(replace(of, counters=uses) for of in piece.devices),
        counters=(Counter("set", "cores", "7"),),
    )
    life, (member,) = shown(shared, different(request(count=2)))
    assert not member.unsupported_fields
    assert sets(life) == 1


def many(name: str = "c") -> dict[str, Any]:
    """A claim with as many requests, alternatives and constraints as the API admits."""
    requests = [
        {
            "name": f"r{i}",
            "firstAvailable": [
                {
                    "name": f"p{j}",
                    "deviceClassName": "gpu",
                    "selectors": [{"cel": {"expression": f"{8 * i + j} >= 0"}}],
                }
                for j in range(8)
            ],
        }
        for i in range(32)
    ]
    constraints = [
        {
            "matchAttribute" if i % 2 else "distinctAttribute": PORT,
            "requests": [f"r{j}/p{(i * j) % 8}" for j in range(32)],
        }
        for i in range(32)
    ]
    return claim(name, *requests, constraints=constraints)


@pytest.mark.parametrize(
    ("own", "values"),
    [
        (different(request(count=10**9)), range(16)),
        (different(request(count=32)), range(4000)),
        (different(request(count=32)), [*range(4000), 0]),
        (different(request(count=2), request("b", count=3), of=["b"]), range(4000)),
        (claim("c", constraints=[{"matchAttribute": PORT}]), range(4000)),
        (claim("c", request(count=2), constraints=[{"matchAttribute": PORT}]), [*range(2000)] * 2),
        (many(), [i % 4 for i in range(64)]),
    ],
    ids=["a billion", "own values", "nearly", "some", "one value", "pairs", "alternatives"],
)
def test_constraints_make_no_claim_take_long(own: dict[str, Any], values: Sequence[int]) -> None:
    devices = {k: v for k, v in own["spec"]["devices"].items() if k != "constraints"}
    free = own | {"spec": {"devices": devices}}
    shown(ports(*values), own)  # compiles its selectors
    work = calls_of(lambda: shown(ports(*values), own))
    assert work < 8 * calls_of(lambda: shown(ports(*values), free))


def test_alternatives_that_constraints_tell_apart_do_not_keep_others_from_starting() -> None:
    """They are no resources of their own, of which there may be 256."""
    _, (own, other) = shown(ports(0, 1), many(), claim("d"))
    assert not other.unsupported_fields
    assert "too many selectors" not in str(own.unsupported_fields)


def test_more_constraints_than_are_counted_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle_rows, "MOST_ROWS", 1)
    claims = [different(request(count=2 + i), name=f"c{i}") for i in range(2)]
    life, members = shown(ports(0, 0, 1, 1), *claims)
    assert sets(life) == 2  # pairs; no device is counted for the other constraint
    said = "devices.constraints[]: more than 1 limits on constraints"
    fields = [of.unsupported_fields for of in members]
    assert fields == [(), (f"spec.resourceClaims ({said})",)]


@pytest.mark.parametrize("count", [33, 10**9])
def test_alternatives_for_more_devices_than_a_claim_can_have_are_not_counted(count: int) -> None:
    parts = [
        {"name": "large", "deviceClassName": "gpu", "count": count},
        {"name": "small", "deviceClassName": "gpu"},
    ]
    _, (member,) = shown(ports(0, 1), claim("c", {"name": "r", "firstAvailable": parts}))
    (field,) = member.unsupported_fields
    assert "firstAvailable[].count, for more than 32 devices in all" in field


def test_bundles_that_have_no_limits_on_a_node_are_tried_on_no_other_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []
    find = limits._limits

    def counted(kinds: Any, wants: Mapping[int, Any], loose: int, counters: Any) -> Any:
        tried.append(len(wants))
        return find(kinds, wants, loose, counters)

    monkeypatch.setattr(limits, "_limits", counted)
    alike = [
        claim(
            f"c{i}",
            request("gpu", "gpu", 2, f"{i} >= 0"),
            constraints=[{"matchAttribute": PORT}],
        )
        for i in range(12)
    ]
    calls: dict[int, int] = {}
    for nodes in (1, 4):
        limits.limits.cache_clear()
        tried.clear()
        cluster = FakeCluster()
        for n in range(nodes):
            cluster.add(node(f"n{n}", cpu=8))
            cluster.put_devices(ports(*(0,) * (12 + n), 1, place=f"n{n}"))
        cluster.put_devices(device_class(), *alike)
        for own in alike:
            name = own["metadata"]["name"]
            cluster.add(gang(name).of(1, cpu=1).each(device_claims=(PodClaim("gpu", name),)))
        life = Life(cluster, Clock())
        members = [of.members[0] for of in life.state.snapshot(0.0).gangs]
        short = [member for member in members if member.unsupported_fields]
        assert 0 < len(short) < len(alike)
        calls[nodes] = len(tried)
    assert calls[1] > len(alike)
    assert calls[4] == calls[1] + 3


def test_what_has_no_limits_if_all_devices_were_free_still_has_a_node() -> None:
    """All devices are in use: there is too little room, although no count of all says how much."""
    piece = ports(*(0,) * 12, 1)
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": of.id.name}
        for of in piece.devices
    ]
    other = claim("other") | {"status": {"allocation": {"devices": {"results": results}}}}
    alike = [
        claim(
            f"c{i}", request("gpu", "gpu", 2, f"{i} >= 0"), constraints=[{"matchAttribute": PORT}]
        )
        for i in range(12)
    ]
    life, members = shown(piece, *alike, beside=other)
    assert not any(member.unsupported_fields for member in members)
    (here,) = life.state.snapshot(0.0).nodes
    assert all(member.shape.requests.fits(here.allocatable) for member in members)
    asked = [member.shape.requests + here.used for member in members]
    assert not any(amounts.fits(here.allocatable) for amounts in asked)
