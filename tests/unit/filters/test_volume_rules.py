"""Which volumes a claim may get, request by request."""

from dataclasses import replace

import pytest

from tutti.filters import volume_rules
from tutti.model.inter_pod import HOSTNAME, Requirement
from tutti.model.volumes import (
    NO_PROVISIONER,
    Capacity,
    ClaimKey,
    ClaimRef,
    Driver,
    Offer,
    StorageClass,
    Volume,
    VolumeRequest,
)

GOLD = (Requirement("tier", "In", ("gold",)),)
REQUEST = VolumeRequest("fast", 10, ("ReadWriteOnce",), selector=GOLD, attributes_class="quick")
OFFER = Offer(
    "fast",
    10,
    ("ReadOnlyMany", "ReadWriteOnce"),
    labels=(("tier", "gold"),),
    attributes_class="quick",
)
ZONE = "topology.kubernetes.io/zone"
Z1, Z2 = ((Requirement(ZONE, "In", (zone,)),) for zone in ("z1", "z2"))


def test_a_volume_will_do_that_has_all_that_is_requested() -> None:
    assert volume_rules.matches(REQUEST, Volume("pv", offer=OFFER))


@pytest.mark.parametrize(
    "offer",
    [
        None,
        replace(OFFER, storage_class="slow"),
        replace(OFFER, size=9),
        replace(OFFER, modes=("ReadOnlyMany",)),
        replace(OFFER, is_block=True),
        replace(OFFER, labels=()),
        replace(OFFER, attributes_class=""),
    ],
)
def test_a_volume_that_lacks_one_thing_will_not_do(offer: Offer | None) -> None:
    assert not volume_rules.matches(REQUEST, Volume("pv", offer=offer))


def test_a_volume_of_another_claim_will_not_do_and_no_volume_for_a_selector_without_sense() -> None:
    taken = Volume("pv", offer=OFFER, claim=ClaimRef(ClaimKey("ml", "other")))
    assert not volume_rules.matches(REQUEST, taken)
    odd = replace(REQUEST, selector=None)
    assert not volume_rules.matches(odd, Volume("pv", offer=OFFER))
    assert not volume_rules.implies(odd, REQUEST)
    assert not volume_rules.implies(REQUEST, odd)


LESS = {
    "smaller": replace(REQUEST, size=9),
    "of fewer modes": replace(REQUEST, modes=()),
    "of fewer labels": replace(REQUEST, selector=()),
}
OTHER = {
    "class": replace(REQUEST, storage_class="slow"),
    "volume mode": replace(REQUEST, is_block=True),
    "attributes": replace(REQUEST, attributes_class=""),
}


@pytest.mark.parametrize("less", LESS.values(), ids=LESS)
def test_a_request_implies_what_asks_for_less(less: VolumeRequest) -> None:
    assert volume_rules.implies(REQUEST, less)
    assert not volume_rules.implies(less, REQUEST)


@pytest.mark.parametrize("other", OTHER.values(), ids=OTHER)
def test_a_request_implies_nothing_of_another_kind(other: VolumeRequest) -> None:
    assert not volume_rules.implies(REQUEST, other)
    assert not volume_rules.implies(other, REQUEST)


def host(*values: str) -> tuple[Requirement, ...]:
    return (Requirement("a", "Exists"), Requirement(HOSTNAME, "In", values))


HOSTS = {
    "no affinity": (None, None),
    "one host": ((host("n1"),), "n1"),
    "the same host twice": ((host("n1"), host("n1")[1:]), "n1"),
    "two hosts": ((host("n1"), host("n2")), None),
    "either of two hosts": ((host("n1", "n2"),), None),
    "a zone": ((Z1,), None),
    "no way": ((), None),
}


@pytest.mark.parametrize(("affinity", "want"), HOSTS.values(), ids=HOSTS)
def test_a_local_volume_has_one_host(affinity: object, want: str | None) -> None:
    assert volume_rules.host_of(Volume("pv", affinity)) == want  # type: ignore[arg-type]


def test_a_volume_is_reached_by_its_affinity_and_its_places() -> None:
    assert volume_rules.is_reached(Volume("pv"), {})
    assert volume_rules.is_reached(Volume("pv", (Z1, Z2)), {ZONE: "z2"})
    assert not volume_rules.is_reached(Volume("pv", (Z1,)), {ZONE: "z2"})
    labelled = Volume("pv", (Z1, Z2), ((ZONE, "z1"),))
    assert not volume_rules.is_reached(labelled, {ZONE: "z2"})


CLASS = StorageClass("fast", waits=True, provisioner="one.csi")
DRIVER = Driver("one.csi", has_capacity=True)


def test_a_class_provisions_everywhere_or_in_its_topologies_or_nowhere() -> None:
    def where(storage_class: StorageClass) -> object:
        return volume_rules.provisioned_at(REQUEST, storage_class, [Driver("one.csi")], ())

    assert where(CLASS) == ()
    assert where(replace(CLASS, topologies=(Z1,))) == ((Z1,),)
    assert where(replace(CLASS, topologies=())) is None
    assert where(replace(CLASS, provisioner=NO_PROVISIONER)) is None
    assert where(replace(CLASS, provisioner="")) is None


def test_a_driver_with_capacities_provisions_where_one_is_large_enough() -> None:
    capacities = [
        Capacity("fast", Z1, 10),
        Capacity("fast", Z2, 9),
        Capacity("slow", Z2, 99),
    ]
    where = volume_rules.provisioned_at(REQUEST, CLASS, [DRIVER], capacities)
    assert where == ((Z1,),)
    assert volume_rules.provisioned_at(REQUEST, CLASS, [DRIVER], ()) is None
    other = [replace(DRIVER, name="two.csi")]
    assert volume_rules.provisioned_at(REQUEST, CLASS, other, ()) == ()


def test_capacities_of_single_nodes_become_one_way() -> None:
    wide = (Requirement("a", "Exists"), *Z1)
    assert volume_rules.merged({Z1, Z2, wide}) == (
        wide,
        (Requirement(ZONE, "In", ("z1", "z2")),),
    )
