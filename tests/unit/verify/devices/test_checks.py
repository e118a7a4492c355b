"""A plan that gives a claim the wrong devices is refused."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.harness.builders import NAMESPACE, gang, node, snapshot_of
from tests.harness.fake_devices import DRIVER, device_class, gpus
from tutti.model.cluster import PodReservation, Reservation, Snapshot
from tutti.model.decisions import Assignment, Placement, Plan
from tutti.model.devices.claims import (
    AttributeConstraint,
    AttributeName,
    ClaimAllocation,
    ClaimName,
    DeviceClaim,
    DeviceRequest,
    DeviceResult,
    DeviceRoom,
    PodClaim,
)
from tutti.model.devices.inventory import (
    Attribute,
    Counter,
    DeviceId,
    DeviceTaint,
    DeviceToleration,
    ResourceSlice,
    TaintRule,
)
from tutti.model.keys import NodeName, PodKey, Uid
from tutti.verify import plan_checks

N1 = NodeName("n1")
GOOD = ClaimAllocation("c-0", Uid("c-0"), (DeviceResult("gpu", DeviceId(DRIVER, "n1", "gpu-0")),))
NEXT = ClaimAllocation("c-1", Uid("c-1"), (DeviceResult("gpu", DeviceId(DRIVER, "n1", "gpu-1")),))
BROKEN = DeviceTaint("broken", "", "NoSchedule")


def claim(name: str, **fields: object) -> DeviceClaim:
    wanted = (DeviceRequest("gpu", "gpu"),)
    return replace(DeviceClaim(ClaimName(NAMESPACE, name), Uid(name), wanted), **fields)  # type: ignore[arg-type]


CLAIMS = (claim("c-0"), claim("c-1"))
ROOM = DeviceRoom(True, (gpus("n1", 2, size=1), gpus("n2", 1)), (device_class(),), (), CLAIMS)  # noqa: FBT003


def cluster(room: DeviceRoom = ROOM, *reservations: Reservation) -> Snapshot:
    made = (
        gang("a")
        .of(2, cpu=1)
        .where(lambda m: replace(m, device_claims=(PodClaim("gpu", f"c-{m.key.name[-1]}"),)))
    )
    bare = snapshot_of(node("n1", cpu=8), node("n2", cpu=8), made)
    return replace(bare, devices=room, reservations=reservations)


def placement(
    snapshot: Snapshot, *claims: Iterable[ClaimAllocation], on: NodeName = N1
) -> Placement:
    own = snapshot.gangs[0]
    assignments = [
        Assignment(m.key, m.uid, m.version, on, tuple(given))
        for m, given in zip(own.members, claims, strict=True)
    ]
    return Placement(own.key, own.uid, own.generation, tuple(assignments))


def faults(snapshot: Snapshot, *claims: Iterable[ClaimAllocation], on: NodeName = N1) -> str:
    plan = Plan((placement(snapshot, *claims, on=on),))
    return "; ".join(plan_checks.violations(snapshot, plan))


def test_devices_that_suit_break_nothing() -> None:
    snapshot = cluster()
    assert faults(snapshot, [GOOD], [NEXT]) == ""
    good = placement(snapshot, [GOOD], [NEXT])
    assert plan_checks.upheld(snapshot, [good]) == (good,)


def test_a_pod_without_claims_gets_no_devices() -> None:
    snapshot = cluster()
    own = snapshot.gangs[0]
    bare = replace(own, members=tuple(replace(m, device_claims=()) for m in own.members))
    snapshot = replace(snapshot, gangs=(bare,))
    assert faults(snapshot, [], []) == ""
    assert "its claims and those that get devices differ" in faults(snapshot, [GOOD], [])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ([], "its claims and those that get devices differ"),
        ([GOOD, GOOD], "its claims and those that get devices differ"),
        ([replace(GOOD, claim="c-7")], "its claims and those that get devices differ"),
        ([replace(GOOD, uid=Uid("old"))], "no claim c-0 with this uid"),
        ([replace(GOOD, results=NEXT.results)], "device gpu.example.com/n1/gpu-1 is in use"),
        ([replace(GOOD, results=())], "gets too many devices or too few"),
        ([replace(GOOD, results=(*GOOD.results, *GOOD.results))], "too many devices or too few"),
        (
            [replace(GOOD, results=(DeviceResult("gpu", DeviceId(DRIVER, "n1", "gpu-9")),))],
            "node n1 has no device",
        ),
        (
            [replace(GOOD, results=(DeviceResult("gpu", DeviceId(DRIVER, "n2", "gpu-0")),))],
            "node n1 has no device",
        ),
        (
            [replace(GOOD, results=(DeviceResult("odd", GOOD.results[0].device),))],
            "will not do for request odd",
        ),
    ],
)
def test_wrong_devices_are_a_fault(given: list[ClaimAllocation], fault: str) -> None:
    assert fault in faults(cluster(), given, [NEXT])


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"claims": (claim("c-0", terminating=True), CLAIMS[1])}, "no claim c-0 with this uid"),
        ({"claims": (claim("c-0", unsupported=("devices.x",)), CLAIMS[1])}, "uses devices.x"),
        ({"classes": ()}, "will not do for request gpu"),
        ({"classes": (device_class("gpu", "false"),)}, "will not do for request gpu"),
        ({"rules": (TaintRule("r", BROKEN, device="gpu-0"),)}, "will not do for request gpu"),
        ({"slices": (replace(ROOM.slices[0], slices=2),)}, "has no device"),
        ({"slices": (ROOM.slices[0], replace(ROOM.slices[0], name="twin"))}, "has no device"),
        (
            {"slices": (replace(ROOM.slices[0], slices=2), replace(ROOM.slices[0], slices=2))},
            "has no device",
        ),
        ({"slices": (ROOM.slices[0], replace(gpus("n1", 2), generation=0))}, ""),
    ],
)
def test_devices_that_changed_are_a_fault(change: dict[str, object], fault: str) -> None:
    found = faults(cluster(replace(ROOM, **change)), [GOOD], [NEXT])  # type: ignore[arg-type]
    assert fault in found if fault else not found


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        (DeviceToleration("broken", "Exists"), True),
        (DeviceToleration("broken", "Equal", "", "NoSchedule"), True),
        (DeviceToleration("broken", "Equal", "x"), False),
        (DeviceToleration("other", "Exists"), False),
        (DeviceToleration("", "Exists", effect="NoExecute"), False),
    ],
)
def test_a_taint_may_be_tolerated(toleration: DeviceToleration, is_tolerated: bool) -> None:  # noqa: FBT001
    wanted = (DeviceRequest("gpu", "gpu", tolerations=(toleration,)),)
    room = replace(
        ROOM,
        rules=(TaintRule("r", BROKEN), TaintRule("s", DeviceTaint("soft", "", "None"))),
        claims=tuple(replace(own, requests=wanted) for own in CLAIMS),
    )
    assert (faults(cluster(room), [GOOD], [NEXT]) == "") is is_tolerated


def test_a_pod_joins_a_claim_that_has_devices_where_these_are() -> None:
    first = claim("c-0", allocated=GOOD.results, nodes=(N1,))
    room = replace(ROOM, claims=(first, CLAIMS[1]))
    joining = replace(GOOD, results=())
    assert faults(cluster(room), [joining], [NEXT]) == ""
    assert "has devices already" in faults(cluster(room), [GOOD], [NEXT])
    taken = replace(NEXT, results=GOOD.results)
    assert "is in use" in faults(cluster(room), [joining], [taken])
    elsewhere = faults(cluster(room), [joining], [NEXT], on=NodeName("n2"))
    assert "cannot use the devices of claim c-0" in elsewhere
    unknown = replace(ROOM, claims=(replace(first, reaches_unknown=True), CLAIMS[1]))
    assert "cannot use the devices" in faults(cluster(unknown), [joining], [NEXT])


@pytest.mark.parametrize(
    ("values", "wanted", "is_right"),
    [
        ((1, 1), ("gpu",), True),
        ((1, 1), (), True),
        ((1, 2), ("gpu",), False),
        ((1, True), ("gpu",), False),
        ((1, 2), ("other",), True),
        ((1, 1), ("other", "gpu"), True),
    ],
)
@pytest.mark.parametrize("is_distinct", [False, True])
def test_devices_with_a_constraint_have_one_value_or_different_ones(
    values: tuple[int, int],
    wanted: tuple[str, ...],
    *,
    is_right: bool,
    is_distinct: bool,
) -> None:
    is_right = is_right is not is_distinct or wanted == ("other",)
    piece = gpus("n1", 2)
    numbered = tuple(
        replace(of, attributes=(Attribute(DRIVER, "numa", value), Attribute(DRIVER, "x", i)))
        for i, (of, value) in enumerate(zip(piece.devices, values, strict=True))
    )
    constraint = AttributeConstraint(AttributeName(DRIVER, "numa"), wanted, is_distinct)
    twice = (DeviceRequest("gpu", "gpu", 2),)
    own = claim("c-0", requests=twice, constraints=(constraint,))
    changed = replace(ROOM, slices=(replace(piece, devices=numbered),), claims=(own, CLAIMS[1]))
    given = replace(GOOD, results=(*GOOD.results, *NEXT.results))
    snapshot = replace(sharing(), devices=changed)
    said = faults(snapshot, [given], [given])
    assert said == ("" if is_right else said)
    how = "are alike" if is_distinct else "differ"
    fault = f"devices of claim c-0 {how} in gpu.example.com/numa, or lack it"
    assert (fault in said) is not is_right
    lacking = replace(snapshot, devices=replace(changed, slices=(piece,)))
    assert ("or lack it" in faults(lacking, [given], [given])) is (wanted != ("other",))
    gone = replace(snapshot, devices=replace(changed, slices=()))
    assert "has no device" in faults(gone, [given], [given])


def sharing() -> Snapshot:
    """The cluster, in which all members name the first claim."""
    base = cluster()
    members = base.gangs[0].members
    one_claim = (PodClaim("gpu", "c-0"),)
    shared = tuple(replace(member, device_claims=one_claim) for member in members)
    return replace(base, gangs=(replace(base.gangs[0], members=shared),))


def test_pods_that_share_a_claim_get_the_same_devices_on_one_node() -> None:
    assert faults(sharing(), [GOOD], [GOOD]) == ""
    other = replace(GOOD, results=NEXT.results)
    assert "which pods share, gets different devices" in faults(sharing(), [GOOD], [other])


def results(*names: str, request: str = "gpu") -> ClaimAllocation:
    given = (DeviceResult(request, DeviceId(DRIVER, "n1", name)) for name in names)
    return ClaimAllocation("c-0", Uid("c-0"), tuple(given))


def alone(request: DeviceRequest) -> Snapshot:
    """The cluster, in which both pods share a claim with this request."""
    changed = (claim("c-0", requests=(request,)), CLAIMS[1])
    return replace(sharing(), devices=replace(ROOM, claims=changed))


@pytest.mark.parametrize(
    ("names", "is_right"),
    [(("gpu-0", "gpu-1"), True), (("gpu-0",), False), (("gpu-0", "gpu-0"), False), ((), False)],
)
def test_a_claim_for_all_devices_gets_each_device_of_its_node_once(
    names: tuple[str, ...],
    is_right: bool,  # noqa: FBT001
) -> None:
    given = results(*names)
    said = faults(alone(DeviceRequest("gpu", "gpu", takes_all=True)), [given], [given])
    assert (said == "") is is_right


def test_a_claim_for_all_devices_of_a_node_without_any_gets_none() -> None:
    every = DeviceRequest("gpu", "gpu", selectors=("false",), takes_all=True)
    assert "too many devices or too few" in faults(alone(every), [results()], [results()])
    unknown = DeviceRequest("gpu", "tpu", takes_all=True)
    assert "too many devices or too few" in faults(alone(unknown), [results()], [results()])


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (results("gpu-0", request="r/small"), ""),
        (results("gpu-0", request="r/large"), "will not do for request r/large"),
        (results("gpu-0", request="r"), "too many devices or too few"),
        (results("gpu-0", "gpu-1", request="r/small"), "too many devices or too few"),
    ],
)
def test_a_request_with_alternatives_gets_a_device_of_one_of_them(
    given: ClaimAllocation, fault: str
) -> None:
    parts = (DeviceRequest("large", "gpu", 1, ("false",)), DeviceRequest("small", "gpu"))
    said = faults(alone(DeviceRequest("r", "", alternatives=parts)), [given], [given])
    assert fault in said
    assert bool(fault) is bool(said)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (results("gpu-0", "gpu-1", request="r/pair"), ""),
        (results("gpu-0", request="r/one"), ""),
        (results("gpu-0", request="r/pair"), "too many devices or too few"),
        (results("gpu-0", "gpu-1", request="r/one"), "too many devices or too few"),
        (results(request="r/one"), "too many devices or too few"),
    ],
)
def test_a_request_gets_as_many_devices_as_the_chosen_alternative_is_for(
    given: ClaimAllocation, fault: str
) -> None:
    parts = (DeviceRequest("pair", "gpu", 2), DeviceRequest("one", "gpu"))
    said = faults(alone(DeviceRequest("r", "", alternatives=parts)), [given], [given])
    assert fault in said
    assert bool(fault) is bool(said)


def test_what_reservations_hold_is_taken() -> None:
    entry = PodReservation(base_key(), Uid("other"), N1, (replace(GOOD, claim="c-1"),))
    other = Reservation(
        gang("b").made.key, Uid("b"), 1, "tutti", "term", 0.0, (entry,), self_uid=Uid("r")
    )
    found = faults(cluster(ROOM, other), [GOOD], [NEXT])
    assert "gpu-0 is in use" in found
    assert "claim c-1 gets devices twice" in found


def base_key() -> PodKey:
    return gang("b").of(1, cpu=1).made.members[0].key


def test_placements_that_hold_together_do_not_share_a_device() -> None:
    snapshot = cluster()
    first = snapshot.gangs[0]
    second = replace(
        first,
        key=first.key._replace(name="b"),
        uid=Uid("b-uid"),
        members=tuple(
            replace(
                m,
                key=m.key._replace(name=f"b-{i}"),
                uid=Uid(f"b-{i}"),
                group="b",
                device_claims=(PodClaim("gpu", f"d-{i}"),),
            )
            for i, m in enumerate(first.members)
        ),
    )
    claims = (*CLAIMS, claim("d-0"), claim("d-1"))
    both = replace(snapshot, gangs=(first, second), devices=replace(ROOM, claims=claims))
    copied = [replace(own, claim=f"d-{i}", uid=Uid(f"d-{i}")) for i, own in enumerate((GOOD, NEXT))]
    own = placement(both, [GOOD], [NEXT])
    late = placement(replace(both, gangs=(second,)), *([given] for given in copied))
    assert plan_checks.upheld(both, [own, late]) == (own,)
    assert plan_checks.upheld(both, [late, own]) == (late,)


def test_admin_access_takes_no_device() -> None:
    watching = tuple(
        claim(name, requests=(DeviceRequest("gpu", "gpu", admin_access=True),))
        for name in ("c-0", "c-1")
    )
    held = claim("held", allocated=GOOD.results)
    snapshot = cluster(replace(ROOM, claims=(*watching, held)))
    same = replace(NEXT, results=GOOD.results)
    assert faults(snapshot, [GOOD], [same]) == ""
    twice = replace(GOOD, results=GOOD.results * 2)
    both = replace(watching[0], requests=(DeviceRequest("gpu", "gpu", 2, admin_access=True),))
    snapshot = cluster(replace(ROOM, claims=(both, watching[1], held)))
    assert "gpu-0 is in use" in faults(snapshot, [twice], [same])


def test_a_reservation_for_admin_access_holds_no_device() -> None:
    watching = claim("c-9", requests=(DeviceRequest("gpu", "gpu", admin_access=True),))
    entry = PodReservation(
        PodKey(NAMESPACE, "x"), Uid("x"), N1, (replace(GOOD, claim="c-9", uid=Uid("c-9")),)
    )
    own = gang("b").of(1, cpu=1).made
    held = Reservation(own.key, own.uid, 1, "", "t", 0.0, (entry,))
    snapshot = cluster(replace(ROOM, claims=(*CLAIMS, watching)), held)
    assert "in use" not in faults(snapshot, [GOOD], [NEXT])


def with_counters(most: str, *more: ResourceSlice) -> Snapshot:
    """Two devices that consume three of a counter each."""
    (one, other) = gpus("n1", 2).devices
    uses = (Counter("set", "cores", "3"),)
    piece = replace(
        gpus("n1", 0),
        slices=2 + len(more),
        devices=(replace(one, counters=uses), replace(other, counters=uses)),
    )
    sets = replace(piece, name="sets", devices=(), counters=(Counter("set", "cores", most),))
    return cluster(replace(ROOM, slices=(piece, sets, *more)))


def test_devices_do_not_exceed_counters() -> None:
    assert faults(with_counters("6"), [GOOD], [NEXT]) == ""
    said = faults(with_counters("5"), [GOOD], [NEXT])
    assert said == (f"pod ml/a-1: device {DRIVER}/n1/gpu-1 needs more of a counter than is left")


def test_a_pool_whose_counters_contradict_each_other_has_no_devices() -> None:
    twice = replace(with_counters("6").devices.slices[1], name="again", slices=3)
    assert "has no device" in faults(with_counters("6", twice), [GOOD], [NEXT])
    assert "has no device" in faults(with_counters("-6"), [GOOD], [NEXT])
    elsewhere = replace(gpus("n2", 0), counters=(Counter("set", "cores", "-1"),))
    snapshot = with_counters("6")
    room = replace(snapshot.devices, slices=(*snapshot.devices.slices, elsewhere))
    assert faults(replace(snapshot, devices=room), [GOOD], [NEXT]) == ""
    unknown = replace(snapshot.devices.slices[1], counters=())
    room = replace(snapshot.devices, slices=(snapshot.devices.slices[0], unknown))
    assert "has no device" in faults(replace(snapshot, devices=room), [GOOD], [NEXT])
