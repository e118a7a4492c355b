"""Which requests of a claim constraints tie together, and which devices are alike."""

from dataclasses import replace

from tests.harness.fake_devices import DRIVER, device, device_class
from tutti.filters.devices import bundles, requests
from tutti.filters.devices.bundles import Bundle, Constraint, Kind
from tutti.model.devices.claims import (
    AttributeConstraint,
    AttributeName,
    ClaimName,
    DeviceClaim,
    DeviceRequest,
)
from tutti.model.devices.inventory import Attribute, Scalar
from tutti.model.keys import Uid

CLASSES = {"gpu": device_class(), "nic": device_class("nic")}
NUMA, ROOT = AttributeName(DRIVER, "numa"), AttributeName("pci.org", "root")
A, B, C = (DeviceRequest("a", "gpu", 2), DeviceRequest("b", "nic"), DeviceRequest("c", "gpu"))


def claim(
    *constraints: AttributeConstraint, wanted: tuple[DeviceRequest, ...] = (A, B, C)
) -> DeviceClaim:
    return DeviceClaim(ClaimName("ml", "c"), Uid("c"), wanted, constraints=constraints)


def names(of: DeviceClaim) -> tuple[list[list[str]], list[str]]:
    found = bundles.divided(of, CLASSES)
    tied = [[request.name for request in own.requests] for own in found.bundles]
    return tied, [request.name for request, _ in found.loose]


def test_a_claim_without_constraints_has_no_bundles() -> None:
    assert names(claim()) == ([], ["a", "b", "c"])


def test_constraints_that_share_a_request_make_one_bundle() -> None:
    assert names(claim(AttributeConstraint(NUMA, ("c", "a")))) == ([["a", "c"]], ["b"])
    apart = claim(AttributeConstraint(NUMA, ("a",)), AttributeConstraint(ROOT, ("c",)))
    assert names(apart) == ([["a"], ["c"]], ["b"])
    joined = claim(*apart.constraints, AttributeConstraint(ROOT, ("a", "c")))
    assert names(joined) == ([["a", "c"]], ["b"])
    assert names(claim(AttributeConstraint(NUMA))) == ([["a", "b", "c"]], [])


def test_a_bundle_says_what_must_match() -> None:
    both = claim(AttributeConstraint(NUMA), AttributeConstraint(ROOT, ("b", "c")))
    ((bundle, *_),) = bundles.divided(both, CLASSES).bundles
    assert bundle.constraints == (Constraint(NUMA, (0, 1, 2)), Constraint(ROOT, (1, 2)))
    assert bundle.label.startswith("2 gpu + nic + gpu with one numa and one root#")
    selected = requests.selection(A, CLASSES)
    assert bundles.unit(selected) == Bundle(((selected, 1),))
    assert bundles.unit(selected).label == "gpu"
    again = replace(both, constraints=both.constraints[:1])
    ((other, *_),) = bundles.divided(again, CLASSES).bundles
    assert other.label != bundle.label


def test_only_some_requests_of_a_large_bundle_are_named() -> None:
    wanted = tuple(DeviceRequest(f"r{i}", "gpu") for i in range(10))
    ((bundle, *_),) = bundles.divided(
        claim(AttributeConstraint(NUMA), wanted=wanted), CLASSES
    ).bundles
    assert bundle.label.startswith("gpu + " * 8 + "2 more requests with one numa#")


def test_alternatives_with_the_same_constraints_are_one_option() -> None:
    x, y, z = (DeviceRequest(name, of) for name, of in (("x", "gpu"), ("y", "nic"), ("z", "gpu")))
    first = DeviceRequest("f", "", alternatives=(x, y, z))
    different = AttributeConstraint(NUMA, ("f", "a"), is_distinct=True)
    ((bundle, own, given),) = bundles.divided(claim(different, wanted=(A, first)), CLASSES).bundles
    assert (own, given) == ((A, first), (("a",), ("f/x", "f/y", "f/z")))
    assert (bundle.options, bundle.constraints) == ((), (Constraint(NUMA, (0, 1), True),))  # noqa: FBT003
    assert bundle.label.startswith("2 gpu + gpu or nic or gpu with different numa#")
    some = claim(AttributeConstraint(NUMA, ("f/x", "a", "f/z")), wanted=(A, first))
    ((bundle, _, given),) = bundles.divided(some, CLASSES).bundles
    assert given == (("a",), ("f/x", "f/z"), ("f/y",))
    assert bundle.constraints == (Constraint(NUMA, (0, 1)),)
    assert [(part, of.label) for part, of in bundle.options] == [
        (0, "gpu"),
        (1, "gpu or gpu"),
        (1, "nic"),
    ]
    assert {of.label for of in bundles.selections(some, CLASSES)} == {
        "gpu",
        "gpu or nic or gpu",
        "gpu or gpu",
        "nic",
    }
    assert len([*bundles.selections(claim(), CLASSES)]) == 3


def test_a_request_of_a_class_that_does_not_exist_is_left_out() -> None:
    unknown = claim(AttributeConstraint(NUMA), wanted=(A, DeviceRequest("b", "odd")))
    ((bundle, own, _),) = bundles.divided(unknown, CLASSES).bundles
    assert (own, bundle.constraints) == ((A,), (Constraint(NUMA, (0,)),))


def test_a_value_has_a_type() -> None:
    def of(value: Scalar, *, is_version: bool = False) -> bundles.Value:
        known = Attribute(DRIVER, "numa", value, is_version)
        return bundles.value(replace(device("d", "n1"), attributes=(known,)), NUMA)

    values = [of(1), of(2), of(value=True), of("1.0.0"), of("1.0.0", is_version=True)]
    assert len(set(values)) == len(values)
    assert of(1) == of(1)
    assert bundles.value(device("d", "n1", (), other=1), NUMA) is None


def test_devices_of_one_kind_are_counted_and_values_are_numbers() -> None:
    devices: list[bundles.Seen] = [
        *((1, (value, None), ()) for value in "xyx"),
        (3, ("z", "w"), ((0, 2),)),
    ]
    other: list[bundles.Seen] = [
        (1, ("q", None), ()),
        (3, ("r", "s"), ((0, 2),)),
        *[(1, ("t", None), ())] * 2,
    ]
    assert bundles.kinds(devices) == bundles.kinds(other)
    assert bundles.kinds(devices) == (
        Kind(1, (0, -1), 1),
        Kind(1, (1, -1), 2),
        Kind(3, (2, 0), 1, ((0, 2),)),
    )
    assert bundles.kinds([]) == ()
