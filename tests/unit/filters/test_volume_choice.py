"""Which volume each claim gets, and how far a choice has come."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tutti.filters import volume_choice
from tutti.filters.volume_choice import ChoiceStates, Stage
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Assignment, Placement
from tutti.model.decisions import Claim as GangClaim
from tutti.model.inter_pod import HOSTNAME, Requirement
from tutti.model.keys import NodeName
from tutti.model.volumes import (
    NO_PROVISIONER,
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

from ...harness.builders import NAMESPACE, gang, node, reservation, snapshot_of

HOST = HOSTNAME
N1, N2 = NodeName("n1"), NodeName("n2")
CLASSES = (
    StorageClass("disk", waits=True, provisioner="one.csi"),
    StorageClass("local", waits=True, provisioner=NO_PROVISIONER),
)


def local(name: str, host: str = "n1", size: int = 10, storage_class: str = "local") -> Volume:
    way = (Requirement(HOST, "In", (host,)),)
    return Volume(name, (way,), offer=Offer(storage_class, size))


def claim(name: str, size: int = 10, storage_class: str = "local") -> Claim:
    request = VolumeRequest(storage_class, size)
    key = ClaimKey(NAMESPACE, name)
    return Claim(
        key, "", storage_class=storage_class, request=request, uid=f"u-{name}", version="7"
    )


def cluster(
    *claims: Claim, volumes: tuple[Volume, ...] = (), storage: Storage | None = None
) -> Snapshot:
    """Two nodes, and a gang with a member for each claim."""
    made = gang("a").of(len(claims), cpu=1).made
    members = tuple(
        replace(member, claims=(one.key.name,), unbound_claims=(one.key.name,))
        for member, one in zip(made.members, claims, strict=True)
    )
    nodes = [node(name, cpu=9).labelled(**{HOST: name}) for name in ("n1", "n2")]
    snapshot = snapshot_of(*nodes)
    stored = storage or Storage(claims, volumes, CLASSES)
    return replace(snapshot, gangs=(replace(made, members=members),), storage=stored)


def placed(snapshot: Snapshot, *nodes: NodeName) -> Placement:
    (one,) = snapshot.gangs
    assignments = tuple(
        Assignment(member.key, member.uid, member.version, at)
        for member, at in zip(one.members, nodes, strict=False)
    )
    return Placement(one.key, one.uid, 1, assignments)


def chosen(snapshot: Snapshot, *nodes: NodeName) -> dict[str, str]:
    """The volume of each claim that has a choice."""
    ((placement,), _) = volume_choice.with_volumes(snapshot, [placed(snapshot, *nodes)], [])
    return {choice.claim: choice.volume for choice in placement.volumes}


def test_without_claims_that_wait_nothing_is_chosen() -> None:
    snapshot = snapshot_of(node("n1", cpu=1), gang("a").of(1, cpu=1))
    placement = placed(snapshot, N1)
    assert volume_choice.with_volumes(snapshot, [placement], []) == ((placement,), ())


def test_the_smallest_volume_of_the_node_that_will_do_is_chosen() -> None:
    volumes = (
        local("big", size=30),
        local("fit", size=11),
        local("far", "n2"),
        local("low", size=9),
    )
    assert chosen(cluster(claim("c"), volumes=volumes), N1) == {"c": "fit"}
    assert chosen(cluster(claim("c"), volumes=volumes), N2) == {"c": "far"}


def test_the_most_demanding_claim_chooses_first_and_none_gets_the_same() -> None:
    volumes = (local("v10", size=10), local("v20", size=20))
    snapshot = cluster(claim("small", 5), claim("large", 15), volumes=volumes)
    assert chosen(snapshot, N1, N1) == {"small": "v10", "large": "v20"}
    volumes = (local("v20", size=20), local("v30", size=30))
    snapshot = cluster(claim("small", 5), claim("large", 25), volumes=volumes)
    assert chosen(snapshot, N1, N1) == {"small": "v20", "large": "v30"}
    assert chosen(cluster(claim("a"), claim("b"), volumes=volumes[:1]), N1, N1) == {"a": "v20"}


def test_what_a_reservation_has_chosen_is_taken() -> None:
    volumes = (local("v10", size=10), local("v20", size=20))
    snapshot = cluster(claim("c"), volumes=volumes)
    held = replace(
        reservation(gang("b").of(1), ("b-0", "n1")),
        volumes=(VolumeChoice("other", "u", "1", N1, "v10"),),
    )
    assert chosen(replace(snapshot, reservations=(held,)), N1) == {"c": "v20"}


def test_a_volume_that_is_for_the_claim_already_goes_first() -> None:
    key = ClaimKey(NAMESPACE, "c")
    mine = replace(local("mine", size=99), claim=ClaimRef(key, "u-c"))
    assert chosen(cluster(claim("c"), volumes=(local("v10"), mine)), N1) == {"c": "mine"}
    others = replace(mine, claim=ClaimRef(key, "older"))
    assert chosen(cluster(claim("c"), volumes=(local("v10"), others)), N1) == {"c": "v10"}


def test_volumes_that_several_nodes_reach_are_candidates_and_those_taken_over_are_not() -> None:
    shared = Volume("net", offer=Offer("disk", 10))
    old = replace(shared, name="old", in_tree="cinder")
    snapshot = cluster(claim("c", storage_class="disk"), volumes=(old, shared))
    assert chosen(snapshot, N1) == {"c": "net"}


def test_pods_on_several_nodes_that_share_a_claim_get_one_new_volume() -> None:
    data = claim("data", storage_class="disk")
    near = local("near", storage_class="disk")
    snapshot = cluster(data, data, data, volumes=(near,))
    snapshot = replace(snapshot, storage=Storage((data,), (near,), CLASSES))
    assert chosen(snapshot, N1, N1) == {"data": "near"}
    ((placement,), _) = volume_choice.with_volumes(snapshot, [placed(snapshot, N2, N1, N1)], [])
    assert placement.volumes == (VolumeChoice("data", "u-data", "7", N2),)


def test_claims_that_a_pod_shares_with_different_pods_are_provisioned_for_its_node() -> None:
    """One names the first claim, the other both."""
    both = ("data", "more")
    claims = tuple(claim(name, storage_class="disk") for name in both)
    snapshot = cluster(*claims)
    (made,) = snapshot.gangs
    first, second = made.members
    members = (first, replace(second, claims=both, unbound_claims=both))
    snapshot = replace(snapshot, gangs=(replace(made, members=members),))
    ((placement,), _) = volume_choice.with_volumes(snapshot, [placed(snapshot, N1, N2)], [])
    assert [(choice.claim, choice.node) for choice in placement.volumes] == [
        ("data", N2),
        ("more", N2),
    ]


def test_where_none_is_left_a_volume_is_provisioned() -> None:
    snapshot = cluster(claim("a", storage_class="disk"), claim("b", storage_class="disk"))
    assert chosen(snapshot, N1, N2) == {"a": "", "b": ""}
    assert chosen(cluster(claim("a")), N1) == {}
    gone = cluster(claim("a"), storage=Storage((claim("a"),)))
    assert chosen(gone, N1) == {}


def test_a_capacity_is_needed_where_the_driver_publishes_them() -> None:
    one = claim("a", storage_class="disk")
    capacity = Capacity("disk", (Requirement(HOST, "In", ("n2",)),), 10)
    driver = Driver("one.csi", has_capacity=True)
    snapshot = cluster(one, storage=Storage((one,), (), CLASSES, (driver,), (capacity,)))
    assert chosen(snapshot, N1) == {}
    assert chosen(snapshot, N2) == {"a": ""}


def test_a_claim_that_is_being_provisioned_goes_on_with_that() -> None:
    one = replace(claim("a"), selected_node=N1)
    assert chosen(cluster(one, volumes=(local("v10"),)), N1) == {"a": ""}


def test_of_what_is_not_known_nothing_is_chosen() -> None:
    snapshot = cluster(claim("a"), volumes=(local("v10"),))
    assert chosen(snapshot, NodeName("n9")) == {}
    bound = replace(claim("a"), request=None)
    assert chosen(cluster(bound, volumes=(local("v10"),)), N1) == {}
    unknown = replace(snapshot, storage=Storage((), (local("v10"),), CLASSES))
    assert chosen(unknown, N1) == {}


def test_a_gang_that_ends_others_gets_its_volumes_as_well() -> None:
    snapshot = cluster(claim("c"), volumes=(local("v10"),))
    placement = placed(snapshot, N1)
    zero = Fraction(0)
    made = GangClaim(
        placement.gang,
        placement.uid,
        1,
        placement.assignments,
        (),
        by_guarantee=False,
        cost=zero,
        bound=zero,
    )
    _, (with_volume,) = volume_choice.with_volumes(snapshot, [], [made])
    assert [choice.volume for choice in with_volume.volumes] == ["v10"]


STATIC = VolumeChoice("c", "u-c", "7", N1, "v10")
DYNAMIC = replace(STATIC, volume="")
FREE = claim("c", storage_class="disk")
BOUND = replace(FREE, volume="v10", is_bound=True, request=None, version="")
TAKEN = replace(local("v10"), claim=ClaimRef(ClaimKey(NAMESPACE, "other")))
MINE = replace(local("v10"), claim=ClaimRef(FREE.key, "u-c"))
BEGUN = replace(FREE, selected_node=N1, version="8")
STATES = {
    "available": (STATIC, FREE, local("v10"), Stage.CHOSEN),
    "given": (STATIC, FREE, MINE, Stage.WRITTEN),
    "taken": (STATIC, FREE, TAKEN, Stage.LOST),
    "released": (STATIC, FREE, replace(local("v10"), offer=None), Stage.LOST),
    "the volume is gone": (STATIC, FREE, None, Stage.LOST),
    "bound": (STATIC, BOUND, MINE, Stage.BOUND),
    "bound to what is not known yet": (STATIC, BOUND, None, Stage.WRITTEN),
    "another claim of that name": (STATIC, replace(FREE, uid="x"), MINE, Stage.LOST),
    "the claim is being deleted": (STATIC, replace(FREE, terminating=True), MINE, Stage.LOST),
    "the claim is gone": (STATIC, None, MINE, Stage.LOST),
    "to be provisioned": (DYNAMIC, FREE, None, Stage.CHOSEN),
    "being provisioned": (DYNAMIC, BEGUN, None, Stage.WRITTEN),
    "elsewhere": (DYNAMIC, replace(FREE, selected_node=N2), None, Stage.LOST),
    "given up": (DYNAMIC, replace(FREE, version="9"), None, Stage.LOST),
}  # fmt: skip


@pytest.mark.parametrize(("choice", "found", "volume", "want"), STATES.values(), ids=STATES)
def test_claims_and_volumes_say_how_far_a_choice_has_come(
    choice: VolumeChoice, found: Claim | None, volume: Volume | None, want: Stage
) -> None:
    claims = () if found is None else (found,)
    states = ChoiceStates.of(Storage(claims, () if volume is None else (volume,)))
    state = states.state(choice, NAMESPACE)
    assert state.stage is want
    assert bool(state.sentence) is (want is not Stage.BOUND)


def test_a_claim_without_a_choice_has_lost() -> None:
    snapshot = cluster(FREE)
    held = replace(reservation(gang("a").of(1), ("a-0", "n1")), volumes=(DYNAMIC,))
    (member,) = snapshot.gangs[0].members
    states = ChoiceStates.of(snapshot.storage)
    assert [s.stage for s in states.of_members(held, [member])] == [Stage.CHOSEN]
    bare = replace(held, volumes=())
    assert [s.stage for s in states.of_members(bare, [member])] == [Stage.LOST]
