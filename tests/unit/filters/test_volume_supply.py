"""What claims need of nodes; the counts beside every way to give volumes to claims."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from tests.harness.counting import calls_of
from tutti.filters import volume_supply
from tutti.filters.volume_supply import Need, VolumeSupply, Waiting
from tutti.model.inter_pod import HOSTNAME, Requirement
from tutti.model.resources import NOTHING, Resources
from tutti.model.volumes import (
    NO_PROVISIONER,
    PLENTY,
    Capacity,
    ClaimKey,
    Driver,
    Offer,
    StorageClass,
    Volume,
    VolumeRequest,
    available,
)

HOST = HOSTNAME
LOCAL = StorageClass("local", waits=True, provisioner=NO_PROVISIONER)
DISK = StorageClass("disk", waits=True, provisioner="one.csi")
GI = 2**30


def local(name: str, host: str, size: int, *modes: str, storage_class: str = "local") -> Volume:
    way = (Requirement(HOST, "In", (host,)),)
    return Volume(name, (way,), offer=Offer(storage_class, size, tuple(sorted(modes))))


def supply(
    requests: Sequence[VolumeRequest],
    volumes: Sequence[Volume] = (),
    *,
    classes: Sequence[StorageClass] = (LOCAL, DISK),
    capacities: Sequence[Capacity] = (),
) -> VolumeSupply:
    by_name = {storage_class.name: storage_class for storage_class in classes}
    drivers = [Driver("one.csi", has_capacity=bool(capacities))]

    def volumes_of(name: str) -> list[Volume]:
        return [v for v in volumes if v.offer is not None and v.offer.storage_class == name]

    waiting = [
        Waiting(request, ClaimKey("ml", f"c{i}"), float(i)) for i, request in enumerate(requests)
    ]
    return volume_supply.supply_for(waiting, by_name.get, volumes_of, drivers, capacities)


def test_a_claim_of_a_class_that_provisions_everywhere_needs_nothing() -> None:
    request = VolumeRequest("disk", GI)
    made = supply([request], [local("pv", "n1", GI, storage_class="disk")])
    assert made == VolumeSupply({request: Need()})
    assert made.at({HOST: "n1"}) == NOTHING


def test_a_claim_of_a_class_that_is_gone_needs_nothing_known() -> None:
    assert supply([VolumeRequest("gone")]) == volume_supply.NO_SUPPLY


def test_a_request_takes_one_of_each_count_that_it_implies() -> None:
    small, large = VolumeRequest("local", GI), VolumeRequest("local", 10 * GI)
    made = supply([large, small], [local("a", "n1", 5 * GI), local("b", "n1", 20 * GI)])
    any_size, big = (available(f"class local of at least {size}") for size in ("1Gi", "10Gi"))
    assert made.needs[small].amounts == Resources.of({any_size: 1})
    assert made.needs[large].amounts == Resources.of({any_size: 1, big: 1})
    assert made.at({HOST: "n1"}) == Resources.of({any_size: 2, big: 1})
    assert made.at({HOST: "n2"}) == made.at({}) == NOTHING
    assert made.needs[small].provisioned == (volume_supply.NOWHERE,)


def test_where_a_volume_can_be_made_there_is_plenty() -> None:
    zone = (Requirement("zone", "In", ("z1",)),)
    request = VolumeRequest("disk", GI)
    volume = local("a", "n1", GI, storage_class="disk")
    made = supply([request], [volume], capacities=[Capacity("disk", zone, GI)])
    (count,) = made.counts
    assert made.at({HOST: "n1"})[count.name] == 1
    assert made.at({HOST: "n1", "zone": "z1"})[count.name] == PLENTY
    assert made.needs[request].provisioned == ((zone,),)


def test_volumes_of_several_nodes_are_not_modelled_nor_those_that_drivers_took_over() -> None:
    request = VolumeRequest("local", GI)
    shared = Volume("pv", offer=Offer("local", GI))
    assert supply([request], [shared]).needs[request].unmodelled == volume_supply.SHARED
    old = Volume("pv", local("", "n1", GI).affinity, offer=Offer("local", GI), in_tree="cinder")
    assert supply([request], [old]).needs[request].unmodelled == "unbound; cinder"


SMALL = VolumeRequest("local", GI, ("ReadWriteMany",))
LARGE = VolumeRequest("local", 9 * GI, ("ReadWriteOnce",))
BOTH = local("a", "n1", 9 * GI, "ReadWriteOnce", "ReadWriteMany")


def unmodelled(*waiting: Waiting, volumes: Sequence[Volume] = (BOTH,)) -> list[str]:
    """Why each request is not modelled."""
    made = volume_supply.supply_for(waiting, {"local": LOCAL}.get, lambda _: volumes, [], [])
    return [made.needs[claim.request].unmodelled for claim in waiting]


def wait(
    request: VolumeRequest, created: float, *, space: str = "ml", late: bool = False
) -> Waiting:
    return Waiting(request, ClaimKey(space, "c"), created, yields=late)


def test_of_requests_that_overlap_the_younger_is_not_modelled() -> None:
    yields = volume_supply.OVERLAPS
    assert unmodelled(wait(SMALL, 1.0), wait(LARGE, 2.0)) == ["", yields]
    assert unmodelled(wait(SMALL, 2.0), wait(LARGE, 1.0)) == [yields, ""]
    assert unmodelled(wait(SMALL, 1.0, space="b"), wait(LARGE, 1.0, space="a")) == [yields, ""]
    again = wait(LARGE, 0.0, space="b")
    assert unmodelled(wait(SMALL, 1.0), wait(LARGE, 2.0), again) == [yields, "", ""]
    assert unmodelled(wait(SMALL, 1.0, late=True), wait(LARGE, 2.0)) == [yields, ""]
    assert unmodelled(wait(SMALL, 1.0, late=True), wait(LARGE, 2.0, late=True)) == ["", yields]


def test_a_request_that_is_not_modelled_keeps_no_other_from_it() -> None:
    first, second = replace(SMALL, modes=("A",)), replace(SMALL, modes=("B",), size=2)
    third = replace(SMALL, modes=("C",), size=3)
    volumes = [local("ab", "n1", GI, "A", "B"), local("bc", "n1", GI, "B", "C")]
    waiting = [wait(request, float(i)) for i, request in enumerate([first, second, third])]
    assert unmodelled(*waiting, volumes=volumes) == ["", volume_supply.OVERLAPS, ""]


def test_a_tenant_with_too_many_requests_stops_nobody_else() -> None:
    """Neither by its own claims, which wait, nor by the time that these take."""
    volumes = [local(f"v{i}", "n1", 10_000 + i, "ReadWriteOnce") for i in range(300)]
    sizes = [VolumeRequest("local", size) for size in range(5000)]
    greedy = [Waiting(of, ClaimKey("greedy", f"c{i:04}"), float(i)) for i, of in enumerate(sizes)]
    modest = wait(VolumeRequest("local", 10_200, ("ReadWriteOnce",)), 1e6)
    said = unmodelled(*greedy, modest, volumes=volumes)
    assert said[-1] == ""
    assert said[:-1] == [""] * 255 + [volume_supply.TOO_MANY] * (5000 - 255)
    few = calls_of(lambda: unmodelled(*greedy[:500], modest, volumes=volumes))
    assert calls_of(lambda: unmodelled(*greedy, modest, volumes=volumes)) < 1.2 * few


def sized(size: int) -> VolumeRequest:
    return VolumeRequest("local", size * GI, ("ReadWriteOnce",))


def test_claims_of_kube_schedulers_pods_take_turns_like_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(volume_supply, "MOST_COUNTS", 2)
    own = [wait(sized(size), float(size)) for size in range(1, 4)]
    late = volume_supply.TOO_MANY
    other = wait(sized(9), 1e6, space="etl", late=True)
    assert unmodelled(*own, other) == ["", late, late, ""]
    pinned = wait(sized(8), 2e6, late=True)._replace(has_node=True)
    assert unmodelled(*own, other, pinned) == [late, late, late, "", ""]
    pins = [wait(sized(size), 0.0)._replace(has_node=True) for size in range(11, 14)]
    assert unmodelled(*pins, other) == ["", late, late, ""]
    gated = wait(sized(7), 0.0, space="third")._replace(may_start=False)
    assert unmodelled(*own, other, gated) == ["", late, late, "", late]
    assert unmodelled(own[0], gated) == ["", ""]


def test_requests_without_a_count_take_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_supply, "MOST_COUNTS", 1)
    volumes = [
        Volume("several", offer=Offer("local", GI, ("Several",))),
        replace(local("old", "n1", GI, "Old"), in_tree="cinder"),
        local("own", "n1", 4 * GI, "ReadWriteOnce"),
        local("disk", "n1", GI, storage_class="disk"),
    ]
    several, old = VolumeRequest("local", GI, ("Several",)), VolumeRequest("local", GI, ("Old",))
    large = VolumeRequest("disk", 9 * GI)
    requests = [several, old, large, sized(1), sized(2)]
    room = [Capacity("disk", (Requirement("zone", "In", ("z1",)),), 100 * GI)]
    needs = supply(requests, volumes, capacities=room).needs
    said = {request: need.unmodelled for request, need in needs.items()}
    assert said == {
        several: volume_supply.SHARED,
        old: "unbound; cinder",
        large: "",
        sized(1): "",
        sized(2): volume_supply.TOO_MANY,
    }
    monkeypatch.setattr(volume_supply, "MOST_COMPARED", 3)
    needs = supply(requests, volumes, capacities=room).needs
    assert needs[sized(1)].unmodelled == volume_supply.TOO_MANY


def test_claims_of_classes_that_provision_everywhere_are_not_limited() -> None:
    requests = [VolumeRequest("disk", size) for size in range(300)]
    assert set(supply(requests).needs.values()) == {Need()}
    nowhere = supply([VolumeRequest("local", size) for size in range(300)]).needs
    limited = [need for need in nowhere.values() if need.unmodelled == volume_supply.TOO_MANY]
    assert len(limited) == 300 - volume_supply.MOST_COUNTS


def test_requests_that_share_nothing_are_modelled() -> None:
    small, large = SMALL, LARGE
    apart = [local("a", "n1", GI, "ReadWriteMany"), local("b", "n1", 9 * GI, "ReadWriteOnce")]
    needs = supply([small, large], apart).needs
    assert [need.unmodelled for need in needs.values()] == ["", ""]


PHRASES = {
    "class x of at least 0 bytes": VolumeRequest("x"),
    "class x of at least 1023 bytes": VolumeRequest("x", 1023),
    "class x of at least 1536Mi (ReadWriteOnce)": VolumeRequest(
        "x", 3 * GI // 2, ("ReadWriteOnce",)
    ),
    "class x of at least 2Ti (Block, attributes class y, a In b,c, d Exists)": VolumeRequest(
        "x",
        2**41,
        is_block=True,
        selector=(Requirement("a", "In", ("b", "c")), Requirement("d", "Exists")),
        attributes_class="y",
    ),
}


@pytest.mark.parametrize(("phrase", "request_"), PHRASES.items(), ids=PHRASES)
def test_requests_are_put_in_words(phrase: str, request_: VolumeRequest) -> None:
    assert volume_supply.phrase(request_) == phrase


def can_be_given(claims: Sequence[VolumeRequest], volumes: Sequence[Volume]) -> bool:
    """Whether each claim gets a volume of its own, by trying all ways."""
    return any(
        len(set(given)) == len(claims)
        and all(
            offer is not None and offer.size >= claim.size and set(claim.modes) <= set(offer.modes)
            for claim, offer in zip(claims, (volumes[i].offer for i in given), strict=True)
        )
        for given in product(range(len(volumes)), repeat=len(claims))
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_counts_say_exactly_whether_volumes_can_be_given(seed: int) -> None:
    chance = random.Random(seed)
    modes = [(), ("A",), ("B",), ("A", "B")]
    for _ in range(25):
        volumes = [
            local(f"v{i}", "n1", chance.randint(1, 4), *chance.choice(modes[1:]))
            for i in range(chance.randint(0, 4))
        ]
        claims = [
            VolumeRequest("local", chance.randint(1, 4), chance.choice(modes))
            for _ in range(chance.randint(1, 4))
        ]
        made = supply(claims, volumes)
        claims = [claim for claim in claims if not made.needs[claim].unmodelled]
        needs = [made.needs[claim] for claim in claims]
        needed = Resources.total(need.amounts for need in needs)
        assert needed.fits(made.at({HOST: "n1"})) is can_be_given(claims, volumes)
