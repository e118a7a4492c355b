"""Plans that give claims volumes that will not do are found out."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tutti.model.cluster import Member, Snapshot
from tutti.model.decisions import Assignment, Placement, Plan
from tutti.model.inter_pod import Requirement
from tutti.model.keys import GangKey, NodeName
from tutti.model.volumes import (
    Capacity,
    Claim,
    ClaimKey,
    ClaimRef,
    Driver,
    Offer,
    Storage,
    StorageClass,
    Volume,
    VolumeChoice,
    VolumeRequest,
)
from tutti.verify import plan_checks

from ...harness.builders import NAMESPACE, GangBuilder, gang, node, reservation, snapshot_of

HOST = "kubernetes.io/hostname"
N1, N2 = NodeName("n1"), NodeName("n2")
GOLD = (Requirement("tier", "In", ("gold",)),)
REQUEST = VolumeRequest("disk", 10, ("ReadWriteOnce",), selector=GOLD)
CLASS = StorageClass("disk", waits=True, provisioner="one.csi")
OFFER = Offer("disk", 10, ("ReadWriteOnce",), labels=(("tier", "gold"),))
HERE = ((Requirement(HOST, "In", ("n1",)),),)
VOLUMES = (Volume("v0", HERE, offer=OFFER), Volume("v1", HERE, offer=OFFER))


def claim(name: str) -> Claim:
    key = ClaimKey(NAMESPACE, name)
    return Claim(key, storage_class="disk", request=REQUEST, uid=f"u-{name}", version="7")


STORAGE = Storage((claim("c0"), claim("c1")), VOLUMES, (CLASS,))
GANG = gang("a").of(2, cpu=1)


def seen(storage: Storage = STORAGE) -> Snapshot:
    """Two members with a claim each."""
    made = GANG.made
    members = tuple(
        replace(member, claims=(f"c{i}",), unbound_claims=(f"c{i}",))
        for i, member in enumerate(made.members)
    )
    nodes = [node(name, cpu=9).labelled(**{HOST: name}) for name in ("n1", "n2")]
    snapshot = snapshot_of(*nodes)
    return replace(snapshot, gangs=(replace(made, members=members),), storage=storage)


def choice(i: int, volume: str = "", at: NodeName = N1) -> VolumeChoice:
    return VolumeChoice(f"c{i}", f"u-c{i}", "7", at, volume)


def placement(*choices: VolumeChoice) -> Placement:
    """Both members on n1, with these volumes."""
    made = GANG.made
    assignments = tuple(Assignment(m.key, m.uid, m.version, N1) for m in made.members)
    return Placement(made.key, made.uid, made.generation, assignments, volumes=choices)


def faults(*choices: VolumeChoice, snapshot: Snapshot | None = None) -> list[str]:
    """What is wrong with a plan that puts both members on n1."""
    sentences = plan_checks.violations(snapshot or seen(), Plan((placement(*choices),)))
    return [sentence.removeprefix("gang ml/a: ") for sentence in sentences]


def test_claims_that_get_volumes_of_their_own_or_new_ones_are_fine() -> None:
    assert faults(choice(0, "v0"), choice(1, "v1")) == []
    assert faults(choice(0, "v0"), choice(1)) == []


def test_no_claim_goes_without_and_none_gets_two() -> None:
    assert faults(choice(0, "v0")) == ["claim c1: it gets no volume"]
    extra = replace(choice(1, "v1"), claim="c7")
    assert faults(choice(0, "v0"), choice(1), extra) == ["claim c7: no pod waits for its volume"]
    assert faults(choice(0, "v0"), choice(0), choice(1))[0] == "a claim gets two volumes"


def test_no_volume_is_given_twice_or_although_a_reservation_has_it() -> None:
    twice = "claim c1: another claim gets volume v0"
    assert faults(choice(0, "v0"), choice(1, "v0")) == [twice]
    held = replace(
        reservation(gang("b").of(1), ("b-0", "n2")), volumes=(choice(9, "v0", N2), choice(8))
    )
    snapshot = replace(seen(), reservations=(held,))
    assert faults(choice(0), choice(1, "v0"), snapshot=snapshot) == [twice]


def test_a_choice_is_for_this_claim_on_this_node() -> None:
    wrong = ["claim c0: its volume is for another claim or node"]
    assert faults(choice(0, "v0", N2), choice(1)) == wrong
    assert faults(replace(choice(0), uid="older"), choice(1)) == wrong
    unknown = seen(replace(STORAGE, claims=STORAGE.claims[1:]))
    assert faults(choice(0, "v0"), choice(1), snapshot=unknown) == wrong


def sharing(storage: Storage, *others: GangBuilder) -> Snapshot:
    """Both members, and all others, name one claim."""

    def share(member: Member) -> Member:
        return replace(member, claims=("c0",), unbound_claims=("c0",))

    nodes = [
        node(name, cpu=9).labelled(**{HOST: name, "zone": zone})
        for name, zone in (("n1", "z1"), ("n2", "z2"))
    ]
    snapshot = snapshot_of(*nodes, GANG.where(share), *(other.where(share) for other in others))
    return replace(snapshot, storage=storage)


def shared_faults(snapshot: Snapshot, chosen: VolumeChoice) -> list[str]:
    """What is wrong with a plan that puts the members on n1 and n2 with this volume for both."""
    made = placement(chosen)
    first, second = made.assignments
    spread = replace(made, assignments=(first, replace(second, node=N2)))
    sentences = plan_checks.violations(snapshot, Plan((spread,)))
    return [sentence.removeprefix("gang ml/a: ") for sentence in sentences]


def test_pods_that_share_a_claim_get_one_volume_that_all_of_their_nodes_can_use() -> None:
    storage = replace(STORAGE, claims=STORAGE.claims[:1])
    assert shared_faults(sharing(storage), choice(0)) == []
    assert shared_faults(sharing(storage), choice(0, at=N2)) == []
    assert shared_faults(sharing(storage), choice(0, "v0")) == [
        "claim c0: volume v0 will not do on n2"
    ]
    in_z1 = replace(CLASS, topologies=((Requirement("zone", "In", ("z1",)),),))
    assert shared_faults(sharing(replace(storage, classes=(in_z1,))), choice(0)) == [
        "claim c0: no volume can be provisioned on n2"
    ]


def test_a_claim_that_gangs_share_may_be_provisioned_for_a_pod_of_another() -> None:
    storage = replace(STORAGE, claims=STORAGE.claims[:1])
    wrong = ["claim c0: its volume is for another claim or node"]
    elsewhere, other = choice(0, at=NodeName("n3")), gang("b").of(1, cpu=1)
    assert shared_faults(sharing(storage), elsewhere) == wrong
    assert shared_faults(sharing(storage, other), elsewhere) == []
    snapshot = sharing(storage, other)
    ours, theirs = snapshot.gangs
    moved = replace(theirs, key=GangKey("etl", "b"))
    assert shared_faults(replace(snapshot, gangs=(ours, moved)), elsewhere) == wrong
    for_one = replace(storage, claims=(replace(storage.claims[0], for_one_pod=True),))
    assert shared_faults(sharing(for_one, other), elsewhere)[:1] == wrong


Change = Callable[[Volume], Volume]
UNFIT: dict[str, Change] = {
    "gone": lambda v: replace(v, name="other"),
    "released": lambda v: replace(v, offer=None),
    "out of reach": lambda v: replace(v, affinity=((Requirement(HOST, "In", ("n2",)),),)),
    "too small": lambda v: replace(v, offer=replace(OFFER, size=9)),
    "of another mode": lambda v: replace(v, offer=replace(OFFER, is_block=True)),
    "of another class": lambda v: replace(v, offer=replace(OFFER, storage_class="slow")),
    "of other attributes": lambda v: replace(v, offer=replace(OFFER, attributes_class="x")),
    "for other access": lambda v: replace(v, offer=replace(OFFER, modes=("ReadOnlyMany",))),
    "of other labels": lambda v: replace(v, offer=replace(OFFER, labels=())),
    "of another claim": lambda v: replace(v, claim=ClaimRef(ClaimKey(NAMESPACE, "x"))),
    "of an older claim": lambda v: replace(v, claim=ClaimRef(ClaimKey(NAMESPACE, "c0"), "old")),
}


@pytest.mark.parametrize("change", UNFIT.values(), ids=UNFIT)
def test_a_volume_that_will_not_do_is_found_out(change: Change) -> None:
    storage = replace(STORAGE, volumes=(change(VOLUMES[0]),))
    want = ["claim c0: volume v0 will not do on n1"]
    assert faults(choice(0, "v0"), choice(1), snapshot=seen(storage)) == want


def test_a_volume_that_is_for_the_claim_already_will_do() -> None:
    ref = ClaimRef(ClaimKey(NAMESPACE, "c0"), "u-c0")
    mine = replace(VOLUMES[0], claim=ref, offer=replace(OFFER, labels=()))
    storage = replace(STORAGE, volumes=(mine,))
    assert faults(choice(0, "v0"), choice(1), snapshot=seen(storage)) == []
    unreadable = replace(claim("c0"), request=replace(REQUEST, selector=None))
    storage = replace(STORAGE, claims=(unreadable, claim("c1")))
    assert faults(choice(0, "v0"), choice(1), snapshot=seen(storage)) == [
        "claim c0: volume v0 will not do on n1"
    ]


FAR = ((Requirement(HOST, "In", ("n2",)),),)
PUBLISHING = Driver("one.csi", has_capacity=True)
UNMADE = {
    "no class": replace(STORAGE, classes=()),
    "no provisioner": replace(STORAGE, classes=(replace(CLASS, provisioner=""),)),
    "topologies": replace(STORAGE, classes=(replace(CLASS, topologies=FAR),)),
    "no capacity": replace(STORAGE, drivers=(PUBLISHING,)),
    "too little capacity": replace(
        STORAGE, drivers=(PUBLISHING,), capacities=(Capacity("disk", HERE[0], 9),)
    ),
    "capacity elsewhere": replace(
        STORAGE, drivers=(PUBLISHING,), capacities=(Capacity("disk", FAR[0], 10),)
    ),
    "capacity of another class": replace(
        STORAGE, drivers=(PUBLISHING,), capacities=(Capacity("slow", HERE[0], 10),)
    ),
    "another node is selected": replace(
        STORAGE, claims=(replace(claim("c0"), selected_node=N2), claim("c1"))
    ),
    "it is bound": replace(STORAGE, claims=(replace(claim("c0"), request=None), claim("c1"))),
}


@pytest.mark.parametrize("storage", UNMADE.values(), ids=UNMADE)
def test_a_volume_that_cannot_be_provisioned_is_found_out(storage: Storage) -> None:
    want = "claim c0: no volume can be provisioned on n1"
    assert want in faults(choice(0), choice(1, "v1"), snapshot=seen(storage))


def test_a_volume_can_be_provisioned_where_class_and_capacity_allow_it() -> None:
    here = replace(CLASS, topologies=HERE)
    storage = Storage(
        (replace(claim("c0"), selected_node=N1), claim("c1")),
        VOLUMES,
        (here,),
        (Driver("two.csi", has_capacity=True), PUBLISHING),
        (Capacity("disk", HERE[0], 10),),
    )
    assert faults(choice(0), choice(1, "v1"), snapshot=seen(storage)) == []


def test_a_volume_of_a_bound_claim_is_no_choice() -> None:
    storage = replace(STORAGE, claims=(replace(claim("c0"), request=None), claim("c1")))
    want = "claim c0: volume v0 will not do on n1"
    assert faults(choice(0, "v0"), choice(1), snapshot=seen(storage)) == [want]


def test_of_two_placements_with_one_volume_the_earlier_holds() -> None:
    first = placement(choice(0, "v0"), choice(1, "v1"))
    assert plan_checks.upheld(seen(), [first]) == (first,)
    held = replace(reservation(gang("b").of(1), ("b-0", "n2")), volumes=(choice(9, "v1", N2),))
    other = gang("b").of(1, cpu=1).made
    member = replace(other.members[0], claims=("c2",), unbound_claims=("c2",))
    storage = replace(STORAGE, claims=(*STORAGE.claims, claim("c2")))
    both = seen(storage)
    both = replace(both, gangs=(*both.gangs, replace(other, members=(member,))))
    given = (Assignment(member.key, member.uid, member.version, N1),)
    second = Placement(other.key, other.uid, other.generation, given, volumes=(choice(2, "v1"),))
    assert plan_checks.upheld(both, [second]) == (second,)
    assert plan_checks.upheld(both, [first, second]) == (first,)
    assert plan_checks.upheld(replace(seen(), reservations=(held,)), [first]) == ()
