"""What the claims of our pods lead to, as claims, volumes and classes come, change and go."""

from dataclasses import replace
from typing import Any

import pytest

from tutti import dump
from tutti.dump.load import snapshot_of
from tutti.filters import volume_supply
from tutti.filters.node_rules import fits_node
from tutti.gang import finding_text
from tutti.kube.list_watch import Item, ObjectList
from tutti.model.cluster import (
    GATE,
    BoundBy,
    ForeignPod,
    Member,
    Phase,
    PodReservation,
    Reservation,
    Snapshot,
)
from tutti.model.decisions import Policy, Reason
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, PodKey, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import NodeTerm
from tutti.model.volumes import (
    NO_PROVISIONER,
    NO_STORAGE,
    PLENTY,
    Attachment,
    Capacity,
    Claim,
    ClaimKey,
    ClaimRef,
    Driver,
    NodeDrivers,
    Offer,
    Reach,
    Storage,
    StorageClass,
    Volume,
    VolumeChoice,
    VolumeRequest,
    available,
    one_of_those_with,
)
from tutti.planning.plan import SHARED, plan
from tutti.state.cluster_state import ClusterState
from tutti.state.reflectors import storage_into
from tutti.state.storage import claim_demand
from tutti.state.storage.attach_limits import Handle, handle
from tutti.strategies import load
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.verify.plan_checks import violations

from ....harness.builders import (
    AMPLE_BUDGET,
    NAMESPACE,
    gang,
    member,
    node,
    reservation,
    resources,
    shape,
    single,
)

ZONE = "topology.kubernetes.io/zone"
BETA = "failure-domain.beta.kubernetes.io/zone"
FIELD = "spec.volumes[].persistentVolumeClaim"
IN_Z1 = ((Requirement(ZONE, "In", ("z1",)),),)
HERE = Volume("pv", IN_Z1)


HOST = "kubernetes.io/hostname"
LATER = StorageClass("later", waits=True, provisioner=NO_PROVISIONER)
KINDS = ("claims", "volumes", "classes", "nodes", "drivers", "attachments")


def claim(name: str = "data", **changes: Any) -> Claim:
    """A claim that is bound to the volume ``pv``, or requests any volume of its class."""
    made = replace(Claim(ClaimKey(NAMESPACE, name), "pv", is_bound=True), **changes)
    if made.is_bound or made.request is not None:
        return made
    return replace(made, request=VolumeRequest(made.storage_class))


def open_claim(name: str = "data", **request: Any) -> Claim:
    """A claim that waits for its pod."""
    wanted = VolumeRequest(**{"storage_class": "later", "size": 10, **request})
    changes = {"storage_class": wanted.storage_class, "request": wanted, "uid": f"uid-{name}"}
    return claim(name, volume="", is_bound=False, version="7", **changes)


def local(name: str, host: str = "n1", **offer: Any) -> Volume:
    """An available volume of one node."""
    way = (Requirement(HOST, "In", (host,)),)
    return Volume(name, (way,), offer=Offer(**{"storage_class": "later", "size": 10, **offer}))


class Observed:
    """A World that knows a node and has listed all claims, volumes and classes: there are none."""

    def __init__(self, *, is_listed: bool = True, binds: bool = True) -> None:
        self.wakes = 0
        self.version = 1
        self.state = ClusterState(self.wake, binds_volumes=binds)
        self.storage = self.state.storage
        self.state.nodes.put(Item(Uid("n1"), 1, node("n1", cpu=4).made))
        for kind in KINDS if is_listed else ():
            self.list(kind)

    def wake(self) -> None:
        """Count."""
        self.wakes += 1

    def list(self, kind: str, **items: Any) -> None:
        """Show a list of a kind, by uid."""
        store = getattr(self.storage, kind)
        self.version += 1
        listed = [Item(Uid(uid), self.version, one) for uid, one in items.items()]
        store.replace(ObjectList(listed), self.version, store.began())

    def put(self, kind: str, value: Any, uid: str = "") -> None:
        """Show an object."""
        self.version += 1
        getattr(self.storage, kind).put(Item(Uid(uid or kind), self.version, value))

    def waits(self, name: str = "a", *claims: str, **changes: Any) -> Member:
        """Show a pod of ours that names these claims."""
        made = replace(
            member(name, shape(cpu=1)), claims=tuple(sorted(claims or ("data",))), **changes
        )
        self.version += 1
        self.state.pods.pending.put(Item(made.uid, self.version, made))
        return made

    def pins(self, name: str, *claims: str) -> None:
        """Show a pod that was handed over on n1, and that kube-scheduler has not bound."""
        made = replace(
            member(name, shape(cpu=1)),
            claims=claims,
            bound_by=BoundBy.KUBE_SCHEDULER,
            node=NodeName("n1"),
            is_handed_over=True,
        )
        self.version += 1
        self.state.pods.pinned.put(Item(made.uid, self.version, made))

    @property
    def seen(self) -> Snapshot:
        """What a decision would see."""
        return self.state.snapshot(7.0)

    @property
    def members(self) -> tuple[Member, ...]:
        """The pods, as a decision would see them."""
        return tuple(member for gang in self.seen.gangs for member in gang.members)

    @property
    def member(self) -> Member:
        """The only pod, as a decision would see it."""
        (found,) = self.members
        return found

    def reach(self) -> tuple[Reach, ...]:
        """The reach of the only pod."""
        return self.member.shape.volume_reach

    def lacks(self) -> tuple[str, ...]:
        """What is wrong with the claims of the only pod."""
        return self.member.volume_problems


def test_a_pod_without_claims_is_what_it_was() -> None:
    one = Observed(is_listed=False)
    made = member("a", shape(cpu=1))
    one.state.pods.pending.put(Item(made.uid, 2, made))
    assert one.member is made
    assert not one.storage.are_wanted
    assert one.seen.storage is NO_STORAGE


def test_a_pod_with_claims_asks_for_them_to_be_listed_and_waits_until_they_are() -> None:
    one = Observed(is_listed=False)
    one.waits()
    assert one.storage.are_wanted
    assert one.lacks() == ("claims and volumes are still being listed",)
    one.list("claims", c=claim())
    one.list("volumes", v=HERE)
    one.list("nodes")
    one.list("drivers")
    one.list("attachments")
    assert one.lacks()
    wakes = one.wakes
    one.list("classes")
    assert one.wakes > wakes
    assert (one.lacks(), one.member.shape.volume_reach) == ((), (IN_Z1,))
    one.list("classes")  # once more
    assert one.lacks() == ()


TROUBLES = {
    "missing": (None, "claim data does not exist"),
    "lost": (claim(is_lost=True), "claim data is lost: volume pv is gone"),
    "leaving": (claim(terminating=True), "claim data is being deleted"),
    "half bound": (claim(is_bound=False), "claim data is not bound yet"),
    "unbound": (claim(volume="", is_bound=False), "claim data is not bound yet"),
    "of a class that binds at once": (
        claim(volume="", is_bound=False, storage_class="now"),
        "claim data is not bound yet",
    ),
    "bound to nothing": (
        claim(volume="gone"),
        "claim data is bound to volume gone, which does not exist",
    ),
}


@pytest.mark.parametrize(("found", "want"), TROUBLES.values(), ids=TROUBLES)
def test_a_pod_says_what_is_wrong_with_its_claims(found: Claim | None, want: str) -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("classes", StorageClass("now"))
    if found is not None:
        one.put("claims", found)
    one.waits()
    assert (one.lacks(), one.member.unsupported_fields) == ((want,), ())


OPEN = {
    "waits for its pod": (
        claim(volume="", is_bound=False, storage_class="later"),
        HERE,
        "unbound, WaitForFirstConsumer",
    ),
    "of a kind that drivers took over": (claim(), replace(HERE, in_tree="cinder"), "cinder"),
}


@pytest.mark.parametrize(("found", "volume", "want"), OPEN.values(), ids=OPEN)
def test_what_is_not_modelled_yet_is_named(found: Claim, volume: Volume, want: str) -> None:
    one = Observed(binds=False)
    one.put("volumes", volume)
    one.put("classes", StorageClass("later", waits=True))
    one.put("claims", found)
    one.waits(unsupported_fields=("spec.resourceClaims",))
    assert one.member.unsupported_fields == ("spec.resourceClaims", f"{FIELD} ({want})")
    assert one.lacks() == ()


@pytest.mark.parametrize(("found", "volume", "want"), OPEN.values(), ids=OPEN)
def test_what_kube_scheduler_models_does_not_keep_its_pods(
    found: Claim, volume: Volume, want: str
) -> None:
    one = Observed()
    one.put("volumes", volume)
    one.put("classes", StorageClass("later", waits=True))
    one.put("claims", found)
    one.waits(bound_by=BoundBy.KUBE_SCHEDULER)
    fields = one.member.unsupported_fields
    assert want not in " ".join(fields)
    assert one.lacks() == ()


def test_whatever_changes_is_seen_at_once() -> None:
    one = Observed()
    one.waits()
    wakes = one.wakes
    one.put("claims", claim())
    assert one.lacks() == ("claim data is bound to volume pv, which does not exist",)
    one.put("volumes", Volume("other"), "other")
    one.put("volumes", HERE)
    assert one.lacks() == ()
    assert one.wakes > wakes
    assert [volume.name for volume in one.seen.storage.volumes] == ["pv"]
    one.put("claims", claim(volume="", is_bound=False, storage_class="later"))
    assert one.lacks() == ("claim data is not bound yet",)
    one.put("classes", StorageClass("later", waits=True))
    assert one.lacks() == ()
    one.storage.classes.drop(Uid("classes"))
    assert one.lacks() == ("claim data is not bound yet",)
    one.storage.claims.drop(Uid("claims"))
    assert one.lacks() == ("claim data does not exist",)


def test_what_changes_without_a_meaning_for_anybody_is_passed_over() -> None:
    one = Observed()
    one.put("claims", claim())
    one.put("volumes", HERE)
    one.put("classes", StorageClass("now"))
    one.waits()
    seen, wakes = one.seen.gangs, one.wakes
    one.put("claims", claim())
    one.put("volumes", HERE)
    one.put("classes", StorageClass("now"))
    assert (one.seen.gangs, one.wakes) == (seen, wakes)


def test_of_two_claims_of_one_name_the_later_is_it() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.waits()
    one.put("claims", claim(terminating=True), "old")
    one.put("claims", claim(), "new")
    one.storage.claims.drop(Uid("old"))
    assert one.lacks() == ()


def test_a_pod_that_is_over_or_gone_names_nothing_any_more() -> None:
    one = Observed()
    one.put("claims", claim())
    made, other = one.waits(), one.waits("b", "data", "more")
    assert [each.key.name for each in one.seen.storage.claims] == ["data"]
    over = replace(made, node=NodeName("n1"), phase=Phase.SUCCEEDED)
    one.state.pods.bound.put(Item(made.uid, 90, over))
    assert one.seen.storage.claims == (claim(),)
    one.state.pods.pending.drop(other.uid)
    assert one.seen.storage == NO_STORAGE
    assert one.storage.are_wanted  # for good: the streams go on


def test_what_was_bound_by_us_keeps_its_claims_until_the_watch_shows_it() -> None:
    one = Observed()
    one.put("claims", claim())
    one.put("volumes", HERE)
    one.waits()
    one.state.pods.assume(one.member, NodeName("n1"))
    one.state.pods.confirm(one.member.uid, 1.0)
    assert (one.member.node, one.member.shape.volume_reach) == ("n1", (IN_Z1,))
    one.put("claims", claim(terminating=True))
    assert one.lacks() == ("claim data is being deleted",)


def test_equal_pods_with_equal_reach_share_one_shape() -> None:
    one = Observed()
    one.put("claims", claim(), "c1")
    one.put("claims", claim("more"), "c2")
    one.put("volumes", HERE)
    for name, named in (("a", "data"), ("b", "more")):
        one.waits(name, named)
    ours = [member for gang in one.seen.gangs for member in gang.members]
    assert ours[0].shape is ours[1].shape


PLACES = {
    "in one zone": ((ZONE, "z1"), {"z1": True, "z2": False, "": False}),
    "in two": ((ZONE, "z1__z2"), {"z1": True, "z2": True, "z3": False}),
    "an empty part says nothing": ((ZONE, "z1__"), {"z1": True, "z2": True}),
    "by the older label": ((BETA, "z1"), {"z1": True, "z2": False}),
}


@pytest.mark.parametrize(("label", "want"), PLACES.values(), ids=PLACES)
def test_a_volume_is_reached_from_the_zones_that_it_is_labelled_with(
    label: tuple[str, str], want: dict[str, bool]
) -> None:
    reach = tuple(Volume("pv", places=(label,)).reach)
    asking = replace(shape(cpu=1), volume_reach=reach)
    for zone, is_reached in want.items():
        labels = {ZONE: zone} if zone else {"topology.kubernetes.io/region": "r"}
        there = replace(node("n1", cpu=4).made, labels=tuple(labels.items()))
        assert (fits_node(asking, there) is None) is is_reached, zone
    assert fits_node(asking, node("n1", cpu=4).made) is None  # in no zone at all
    if label[0] == BETA:
        own = replace(node("n1", cpu=4).made, labels=((BETA, "z2"), (ZONE, "z1")))
        assert fits_node(asking, own) == "out of reach of a volume"


OURS, THEIRS = Volume("pv", driver="one.csi", handle="a"), Volume("pv", driver="two.csi")
ATTACH = "attach:one.csi"
N1, N2 = NodeName("n1"), NodeName("n2")


def drivers(name: str, **limits: int | None) -> NodeDrivers:
    """The drivers of a node: ``one`` is ``one.csi``."""
    return NodeDrivers(NodeName(name), tuple((f"{each}.csi", n) for each, n in limits.items()))


class Attaching(Observed):
    """A World of two nodes and of two claims with volumes of one driver."""

    def __init__(self) -> None:
        super().__init__()
        self.state.nodes.put(Item(Uid("n2"), 1, node("n2", cpu=4).made))
        for name in ("data", "more"):
            self.put("claims", claim(name, volume=f"pv-{name}"), f"claim-{name}")
            self.put("volumes", replace(OURS, name=f"pv-{name}", handle=name), f"volume-{name}")

    def runs(self, name: str, on: NodeName, *claims: str, uid: str = "") -> None:
        """Show a pod of somebody else's that has a node."""
        known = Uid(uid or name)
        self.version += 1
        foreign_pod = ForeignPod(known, on, resources(pods=1), NAMESPACE, claims=claims)
        self.state.pods.bound.put(Item(known, self.version, foreign_pod))

    def asks(self, name: str = "a") -> int:
        """How many volumes one of our pods counts as."""
        ours = (member for gang in self.seen.gangs for member in gang.members)
        return next(each for each in ours if each.key.name == name).shape.requests[ATTACH]

    def room(self, name: str = "n1") -> tuple[int, int]:
        """What a node takes of volumes, and has."""
        found = next(node for node in self.seen.nodes if node.name == name)
        assert self.state.node(found.name) == found
        return found.allocatable[ATTACH], found.used[ATTACH]

    def shares(self, name: str = "a") -> bool:
        """Whether a volume that one of our pods counts has other users."""
        ours = (member for gang in self.seen.gangs for member in gang.members)
        found = next(each for each in ours if each.key.name == name)
        assert not (found.volume_problems)
        assert not (found.unsupported_fields)
        return found.shape.shares_volumes


def test_where_no_node_has_a_limit_nothing_is_counted() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=None))
    attaching.waits("a", "data", "more")
    attaching.waits("b", "data")
    assert (attaching.asks(), attaching.room(), attaching.shares()) == (0, (0, 0), False)


def test_volumes_count_by_driver_once_a_node_has_a_limit() -> None:
    attaching = Attaching()
    attaching.waits("a", "data", "more")
    attaching.put("nodes", drivers("n1", one=2, two=1))
    assert (attaching.asks(), attaching.room("n1"), attaching.room("n2")) == (
        2,
        (2, 0),
        (PLENTY, 0),
    )
    attaching.put("nodes", drivers("n1", one=3, two=1))
    assert attaching.room("n1") == (3, 0)
    attaching.put("nodes", drivers("n1", one=3, two=1))
    attaching.storage.nodes.drop(Uid("nodes"))
    assert (attaching.asks(), attaching.room("n1")) == (0, (0, 0))


def test_a_driver_that_is_needed_keeps_pods_off_nodes_without_it() -> None:
    attaching = Attaching()
    attaching.waits("a", "data")
    attaching.put("nodes", drivers("n1", one=None))
    attaching.put("drivers", Driver("one.csi"))
    assert attaching.asks() == 0
    attaching.put("drivers", Driver("one.csi", is_needed=True))
    assert (attaching.asks(), attaching.room("n1"), attaching.room("n2")) == (
        1,
        (PLENTY, 0),
        (0, 0),
    )
    attaching.put("drivers", Driver("one.csi", is_needed=True))
    attaching.storage.drivers.drop(Uid("drivers"))
    assert attaching.asks() == 0


def test_a_volume_counts_once_by_node_whoever_uses_it() -> None:
    attaching = Attaching()
    attaching.waits("a", "data")
    attaching.put("nodes", drivers("n1", one=2), "l1")
    attaching.put("attachments", Attachment(N1, "one.csi", "pv-data"))
    attaching.put("attachments", Attachment(N1, "one.csi", "unknown"), "unknown")
    assert attaching.room() == (2, 1)  # attached, although nobody uses it
    attaching.put("claims", claim("other", volume="pv-other"), "other")
    attaching.put("volumes", Volume("pv-other", driver="two.csi", handle="o"), "other")
    attaching.runs("x", N1, "data", "other")
    attaching.runs("y", N1, "data", "more", "gone")
    assert attaching.room() == (2, 2)
    attaching.put("attachments", Attachment(N2, "one.csi", "pv-data"))
    assert (attaching.room("n1"), attaching.room("n2")) == ((2, 2), (PLENTY, 1))
    attaching.storage.attachments.drop(Uid("attachments"))
    attaching.put("attachments", Attachment(N1, "one.csi", "unknown"), "unknown")
    assert attaching.room("n2") == (PLENTY, 0)
    attaching.put("volumes", replace(OURS, name="pv-more", handle="data"), "volume-more")
    assert attaching.room() == (2, 1)  # one handle, one volume
    attaching.put("volumes", replace(OURS, name="pv-more", handle="more"), "volume-more")
    assert attaching.room() == (2, 2)
    attaching.state.pods.bound.drop(Uid("y"))
    attaching.state.pods.bound.drop(Uid("x"))
    assert attaching.room() == (2, 0)


def test_a_volume_that_is_attached_and_becomes_known_counts() -> None:
    attaching = Attaching()
    attaching.waits("a", "data")
    attaching.put("nodes", drivers("n1", one=2), "l1")
    attaching.put("attachments", Attachment(N1, "one.csi", "late"))
    assert attaching.room() == (2, 0)
    attaching.put("volumes", Volume("late", driver="one.csi", handle="late"), "late")
    assert attaching.room() == (2, 1)


def test_claims_of_running_pods_that_have_no_volume_yet_count_by_their_class() -> None:
    attaching = Attaching()
    attaching.waits("a", "data")
    attaching.put("nodes", drivers("n1", one=2, two=1), "l1")
    attaching.put("claims", claim("open", volume="", is_bound=False, storage_class="later"), "open")
    attaching.runs("x", N1, "open")
    assert attaching.room() == (2, 0)
    attaching.put("classes", StorageClass("later", provisioner="one.csi"))
    assert attaching.room() == (2, 1)


def test_our_own_pods_count_where_we_bind_them() -> None:
    attaching = Attaching()
    made = attaching.waits("a", "data")
    attaching.put("nodes", drivers("n1", one=2))
    attaching.state.pods.assume(attaching.member, N1)
    assert (attaching.room(), attaching.asks()) == ((2, 1), 1)
    assert next(node for node in attaching.seen.nodes if node.name == "n1").used == resources(
        pods=1, cpu=1
    ) + Resources.of({ATTACH: 1})
    attaching.state.pods.retract(made.uid)
    assert attaching.room() == (2, 0)


def test_a_volume_that_several_wait_for_counts_for_each_of_them() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=2))
    attaching.waits("a", "data")
    assert not attaching.shares()
    other = attaching.waits("b", "data", "more")
    assert (attaching.shares("a"), attaching.shares("b")) == (True, True)
    assert (attaching.asks("a"), attaching.asks("b")) == (1, 2)
    attaching.waits("c", "more")
    attaching.state.pods.pending.drop(other.uid)
    assert (attaching.shares("a"), attaching.shares("c")) == (False, False)


def test_a_volume_that_a_pod_with_a_node_has_counts_for_those_that_wait() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=2), "l1")
    attaching.waits("a", "data")
    for i in range(4):
        attaching.runs(f"x{i}", N1, "data")
        assert (attaching.asks(), attaching.shares()) == (1, True)
    assert attaching.room() == (2, 1)
    for i in range(4):
        attaching.state.pods.bound.drop(Uid(f"x{i}"))
        assert attaching.shares() == (i < 3)


def test_a_pod_with_a_node_frees_no_volume_that_others_name() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=2), "l1")
    ours = replace(member("a", shape(cpu=1)), claims=("data", "more"), node=N1)
    attaching.state.pods.bound.put(Item(ours.uid, 50, ours))
    assert (attaching.asks(), attaching.shares()) == (2, False)
    attaching.waits("b", "data")
    assert (attaching.asks("a"), attaching.shares("a")) == (1, False)
    assert (attaching.asks("b"), attaching.shares("b")) == (1, True)
    assert attaching.room() == (2, 2)


def test_a_claim_for_one_pod_is_no_volume_that_pods_share() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=2), "l1")
    attaching.put("claims", claim(volume="pv-data", for_one_pod=True), "claim-data")
    attaching.waits("a", "data")
    attaching.waits("b", "data")
    assert (attaching.asks(), attaching.shares()) == (1, False)
    attaching.put("claims", claim("more", volume="pv-data"), "claim-more")
    attaching.waits("c", "more")
    assert (attaching.shares("a"), attaching.shares("c")) == (True, True)


def test_where_a_limit_may_count_a_shared_volume_twice_nothing_is_proved() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=1), "l1")
    attaching.put("nodes", drivers("n2", one=0), "l2")
    attaching.waits("a", "data")
    attaching.waits("b", "data")
    seen = attaching.seen
    made = plan(seen, load("ilp"), BestFit(), AMPLE_BUDGET)
    assert [placement.gang.name for placement in made.placements] == ["a"]
    assert (made.proved, made.shortfall) == (False, SHARED)
    assert [level.bound for level in made.levels] == [None]
    (waits,) = made.rejections
    assert waits.reason is Reason.BUDGET_EXHAUSTED
    assert finding_text.sentence(waits).endswith(f"not proved to be the best choice: {SHARED}")
    assert not violations(seen, made)


def test_where_a_node_has_enough_for_each_pod_that_it_could_hold_a_shared_volume_is_exact() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=4), "l1")
    attaching.put("nodes", drivers("n2", one=4), "l2")
    for i in range(10):  # a node has the CPU of four
        attaching.waits(f"a{i}", "data")
    made = plan(attaching.seen, load("ilp"), BestFit(), AMPLE_BUDGET)
    assert (made.proved, len(made.placements)) == (True, 8)
    assert {waits.reason for waits in made.rejections} == {Reason.NOT_ENOUGH_ROOM}
    attaching.runs("x", N2, "more")
    assert not plan(attaching.seen, load("ilp"), BestFit(), AMPLE_BUDGET).proved


def test_room_that_a_reservation_holds_twice_for_a_volume_is_no_proof() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=2), "l1")
    attaching.put("nodes", drivers("n2", one=0), "l2")
    attaching.put("claims", claim("own", volume="pv-own"), "claim-own")
    own = replace(OURS, name="pv-own", handle="own")
    attaching.put("volumes", own, "volume-own")
    for name in ("a", "b"):
        attaching.waits(name, "data")
        held = reservation(single(name), (name, "n1"))
        attaching.state.reservations.store.put(Item(Uid(f"of-{name}"), 60, held))
    attaching.waits("c", "own")
    seen = attaching.seen
    assert len(seen.reservations) == 2
    made = plan(seen, load("ilp"), BestFit(), AMPLE_BUDGET)
    assert (made.placements, made.proved, made.shortfall) == ((), False, SHARED)


IN_USE = "claim data is for one pod (ReadWriteOncePod), and"
OF_DATA = one_of_those_with("data")


def of_one_pod(one: Observed) -> list[tuple[bool, bool]]:
    """Whether each pod has the label of the claim, and the rule about it; the two go together."""
    members = [member for gang in one.seen.gangs for member in gang.members]
    return [
        (OF_DATA in dict(m.labels), bool(m.shape.rules.anti_affinity))
        for m in sorted(members, key=lambda m: m.key)
    ]


def test_a_claim_for_one_pod_waits_until_nobody_has_a_node_with_it() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim(for_one_pod=True))
    one.waits()
    assert (one.lacks(), one.member.unsupported_fields) == ((), ())
    running = ForeignPod(Uid("x"), N1, resources(pods=1), NAMESPACE, claims=("data",))
    one.state.pods.bound.put(Item(Uid("x"), 50, running))
    assert one.lacks() == (f"{IN_USE} a pod on node n1 has it",)
    one.state.pods.bound.drop(Uid("x"))
    assert one.lacks() == ()
    ours = replace(member("b", shape(cpu=1)), claims=("data",), node=N2)
    one.state.pods.bound.put(Item(ours.uid, 51, ours))
    problems = {m.key.name: m.volume_problems for gang in one.seen.gangs for m in gang.members}
    assert problems == {"a": (f"{IN_USE} pod b on node n2 has it",), "b": ()}
    assert of_one_pod(one) == [(False, False), (False, False)]


def test_of_the_pods_that_wait_with_a_claim_for_one_pod_one_may_start() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim(for_one_pod=True))
    first = one.waits()
    assert of_one_pod(one) == [(False, False)]  # nobody else would take it
    one.waits("b", "data", labels=(("app", "x"),))
    one.waits("c", "other")
    assert of_one_pod(one) == [(True, True), (True, True), (False, False)]
    one.put("claims", claim())
    assert of_one_pod(one) == [(False, False)] * 3
    one.put("claims", claim(for_one_pod=True))
    one.state.pods.pending.drop(first.uid)
    assert of_one_pod(one) == [(False, False)] * 2


def test_however_many_pods_wait_with_a_claim_for_one_pod_all_see_that_one_has_a_node() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim(for_one_pod=True))
    for i in range(20):
        one.waits(f"a{i}")
    assert of_one_pod(one) == [(True, True)] * 20
    running = ForeignPod(Uid("x"), N1, resources(pods=1), NAMESPACE, claims=("data",))
    one.state.pods.bound.put(Item(Uid("x"), 50, running))
    problems = {m.volume_problems for gang in one.seen.gangs for m in gang.members}
    assert problems == {(f"{IN_USE} a pod on node n1 has it",)}


def test_another_pod_that_waits_with_a_claim_for_one_pod_changes_nothing_for_those_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim(for_one_pod=True))
    for i in range(20):
        one.waits(f"a{i}")
    touched: list[set[Uid]] = []
    monkeypatch.setattr(one.storage, "_notify", touched.append)
    last = one.waits("b")
    one.state.pods.pending.drop(last.uid)
    assert touched == [set(), set()]


def test_each_user_of_a_claim_sees_a_pod_that_names_another_claim_as_well() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=2), "l1")
    attaching.put("claims", claim("own", volume="pv-own"), "claim-own")
    own = replace(OURS, name="pv-own", handle="own")
    attaching.put("volumes", own, "volume-own")
    attaching.waits("a", "data")
    attaching.waits("b", "own")
    both = attaching.waits("c", "data", "own")
    assert [attaching.shares(name) for name in "ab"] == [True, True]
    attaching.state.pods.pending.drop(both.uid)
    assert [attaching.shares(name) for name in "ab"] == [False, False]


def test_a_claim_for_one_pod_is_chosen_a_volume_for_the_pod_that_starts() -> None:
    one = Observed()
    one.put("classes", LATER)
    one.put("volumes", local("pv1"), "v1")
    one.put("claims", replace(open_claim(), for_one_pod=True), "uid-data")
    one.waits("a")
    one.waits("b")
    assert of_one_pod(one) == [(True, True)] * 2
    members = [m for gang in one.seen.gangs for m in gang.members]
    assert [m.unsupported_fields for m in members] == [(), ()]
    assert [dict(m.shape.requests.amounts)[COUNT] for m in members] == [1, 1]
    first, second = (m.uid for m in members)
    assert first != second
    one.put("volumes", replace(local("pv1"), claim=ClaimRef(ClaimKey(NAMESPACE, "data"))), "v1")
    bound = claim(volume="pv1", for_one_pod=True, storage_class="later", uid="uid-data")
    one.put("claims", bound, "uid-data")
    assert of_one_pod(one) == [(True, True)] * 2


def test_a_dump_of_pods_that_share_a_claim_for_one_pod_has_no_rule_of_it() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim(for_one_pod=True, uid="u"))
    one.waits("a")
    one.waits("b")
    setup = dump.PlannerConfig("tutti", "bestfit", Policy(), {})
    text = dump.write(one.seen, setup)
    assert "cluster:" not in text
    assert OF_DATA not in text
    again = snapshot_of(dump.read([dump.Text("d", text.encode())]))
    assert again.gangs == one.seen.gangs
    assert of_one_pod(one) == [(True, True)] * 2


HANDLES = {
    "of a driver": (OURS, None, Handle("one.csi", "a")),
    "of a driver that says no handle": (THEIRS, None, None),
    "of a kind that a driver took over": (
        Volume("pv", in_tree="cinder"),
        None,
        Handle("cinder.csi.openstack.org", "volume pv"),
    ),
    "of a kind that is not counted": (Volume("pv", in_tree="vsphereVolume"), None, None),
    "of no driver": (HERE, None, None),
    "to be made": (None, StorageClass("c", provisioner="x"), Handle("x", "claim ml/data")),
    "to be made by what a driver took over": (
        None,
        StorageClass("c", provisioner="kubernetes.io/gce-pd"),
        Handle("pd.csi.storage.gke.io", "claim ml/data"),
    ),
    "to be made by nobody": (None, None, None),
}


@pytest.mark.parametrize(("volume", "made_by", "want"), HANDLES.values(), ids=HANDLES)
def test_what_is_attached_for_a_claim(
    volume: Volume | None, made_by: StorageClass | None, want: Handle | None
) -> None:
    assert handle(claim(), volume, made_by) == want


def test_attached_volumes_are_room_that_plans_keep_to() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=1), "l1")
    attaching.put("nodes", drivers("n2", one=0), "l2")
    attaching.waits("a", "data")
    attaching.waits("b", "more")
    seen = attaching.seen
    made = plan(seen, BestFit(), BestFit(), Budget())
    assert [
        (placement.gang.name, placement.assignments[0].node) for placement in made.placements
    ] == [("a", "n1")]
    (waits,) = made.rejections
    assert "needs 1 cpu, 1 volume of one.csi" in finding_text.sentence(waits)
    assert not violations(seen, made)
    both = replace(
        made.placements[0].assignments[0], pod=PodKey(NAMESPACE, "b"), uid=Uid("ml/b-uid")
    )
    more = replace(made.placements[0], gang=waits.gang, uid=both.uid, assignments=(both,))
    broken = replace(made, placements=(*made.placements, more))
    assert violations(seen, broken) == ("pod ml/b: node n1 has too little volumes of one.csi",)


def test_a_dump_holds_what_others_leave_of_a_limit() -> None:
    attaching = Attaching()
    attaching.put("nodes", drivers("n1", one=3), "l1")
    attaching.put("drivers", Driver("one.csi", is_needed=True))
    attaching.waits("a", "data")
    attaching.waits("c", "more", "gone", node=NodeName("n1"))
    over = attaching.waits("d", "more")
    attaching.state.pods.bound.put(
        Item(over.uid, 70, replace(over, node=NodeName("n1"), phase=Phase.SUCCEEDED))
    )
    attaching.put("claims", claim("other", volume="pv-other"), "claim-other")
    attaching.put("volumes", replace(OURS, name="pv-other", handle="other"), "volume-other")
    attaching.runs("x", N1, "other")
    assert (attaching.room("n1"), attaching.room("n2")) == ((3, 2), (0, 0))
    setup = dump.PlannerConfig("tutti", "bestfit", Policy(), {})
    text = dump.write(attaching.seen, setup)
    assert "attach:" not in text
    again = snapshot_of(dump.read([dump.Text("d", text.encode())]))
    assert again.gangs == attaching.seen.gangs
    there = [(node.allocatable[ATTACH], node.used[ATTACH]) for node in again.nodes]
    assert there == [(2, 1), (0, 0)]


def test_there_is_a_stream_for_each_store() -> None:
    state = ClusterState(lambda: None)
    sinks = [feed.sink for feed in storage_into(state)]
    assert sinks == [getattr(state.storage, kind) for kind in KINDS]


def test_a_dump_holds_what_claims_lead_to() -> None:
    one = Observed()
    one.put("claims", claim(uid="u1"), "c1")
    one.put("claims", claim("lost", is_lost=True, for_one_pod=True, terminating=True), "c2")
    one.put("claims", claim("open", volume="", is_bound=False, storage_class="later"), "c3")
    one.put("claims", claim("soon", is_bound=False, volume="pv2", storage_class="now"), "c4")
    one.put("volumes", replace(HERE, places=((ZONE, "z1__z2"),)))
    one.put("volumes", Volume("pv2", ((),), driver="one.csi", handle="h", in_tree="cinder"), "v2")
    one.put("classes", StorageClass("later", waits=True, provisioner="one.csi"), "s1")
    one.put("classes", StorageClass("now"), "s2")
    one.waits("a")
    one.waits("b", "data", "lost", "open", "soon")
    one.waits("c", "gone", "data")
    setup = dump.PlannerConfig("tutti", "bestfit", Policy(), {})
    text = dump.write(one.seen, setup)
    again = snapshot_of(dump.read([dump.Text("d", text.encode())]))
    assert _anonymous(again.storage) == _anonymous(one.seen.storage)
    assert again.gangs == one.seen.gangs


def _anonymous(storage: Storage) -> Storage:
    """The storage without the uids of claims."""
    return replace(storage, claims=tuple(replace(one, uid="") for one in storage.claims))


def test_a_dump_holds_what_claims_may_get_that_wait() -> None:
    one = Observed()
    one.list("capacities")
    zone = ((Requirement(ZONE, "In", ("z1",)),),)
    one.put("classes", replace(LATER, provisioner="one.csi", topologies=zone), "s1")
    one.put("classes", replace(LATER, name="nowhere", topologies=()), "s2")
    one.put("drivers", Driver("one.csi", has_capacity=True))
    one.put("capacities", Capacity("later", zone[0], 50))
    gold = (Requirement("tier", "In", ("gold",)),)
    strange: dict[str, Any] = {
        "modes": ("ReadWriteOnce",),
        "is_block": True,
        "attributes_class": "quick",
    }
    one.put("claims", replace(open_claim(selector=gold, **strange), owner="o"), "uid-data")
    one.put("claims", open_claim("odd", selector=None), "uid-odd")
    pinned = replace(open_claim("pinned"), selected_node=NodeName("n1"))
    one.put("claims", pinned, "uid-pinned")
    one.put("claims", open_claim("bare", storage_class="nowhere"), "uid-bare")
    one.put("volumes", local("pv1", labels=(("tier", "gold"),), **strange), "v1")
    ref = ClaimRef(ClaimKey(NAMESPACE, "pinned"), "uid-pinned")
    one.put("volumes", replace(local("pv2"), claim=ref), "v2")
    one.waits("a", "data", "odd", "pinned", "bare", "a-own", own_claims=("a-own",))
    setup = dump.PlannerConfig("tutti", "bestfit", Policy(), {})
    text = dump.write(one.seen, setup)
    again = snapshot_of(dump.read([dump.Text("d", text.encode())]))
    assert again.storage == one.seen.storage
    assert again.gangs == one.seen.gangs
    assert again.nodes == one.seen.nodes


def test_a_dump_of_a_tutti_that_binds_no_claims_says_so() -> None:
    one = Observed(binds=False)
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.waits()
    setup = dump.PlannerConfig("tutti", "bestfit", Policy(), {}, binds_volumes=False)
    text = dump.write(one.seen, setup)
    again = snapshot_of(dump.read([dump.Text("d", text.encode())]))
    assert again.gangs == one.seen.gangs
    wrong = text.replace('\\"bindVolumes\\": false', '\\"bindVolumes\\": 7')
    assert wrong != text
    with pytest.raises(dump.BadFile, match="neither true nor false"):
        dump.read([dump.Text("d", wrong.encode())])


COUNT = available(volume_supply.phrase(VolumeRequest("later", 10)))


def test_a_claim_that_waits_takes_one_of_the_local_volumes_of_a_node() -> None:
    one = Observed()
    one.state.nodes.put(Item(Uid("n1"), 2, node("n1", cpu=4).labelled(**{HOST: "n1"}).made))
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.waits()
    assert one.member.shape.requests[COUNT] == 1
    assert one.seen.nodes[0].allocatable[COUNT] == 0
    one.put("volumes", local("pv1"), "v1")
    one.put("volumes", local("small", size=9), "v2")
    assert one.seen.nodes[0].allocatable[COUNT] == 1
    assert one.lacks() == ()
    assert one.member.unbound_claims == ("data",)
    made = plan(one.seen, BestFit(), BestFit(), Budget())
    assert violations(one.seen, made) == ()
    ((choice,),) = (placement.volumes for placement in made.placements)
    assert choice == VolumeChoice("data", "uid-data", "7", NodeName("n1"), "pv1")
    one.storage.volumes.drop(Uid("v1"))
    assert one.seen.nodes[0].allocatable[COUNT] == 0


def test_a_claim_of_a_class_that_provisions_reaches_where_it_can() -> None:
    one = Observed()
    zone = ((Requirement(ZONE, "In", ("z1",)),),)
    one.put("classes", replace(LATER, provisioner="one.csi", topologies=zone))
    one.put("claims", open_claim(), "uid-data")
    one.waits()
    assert one.reach() == (zone,)
    assert not bool(one.storage.needs_capacities)
    one.put("drivers", Driver("one.csi", has_capacity=True))
    assert bool(one.storage.needs_capacities)
    assert one.lacks() == ("claims and volumes are still being listed",)
    one.list("capacities")
    assert one.lacks() == ()
    assert one.member.shape.requests[COUNT] == 1  # no node has any
    one.put("capacities", Capacity("later", (Requirement("a", "Exists"),), 10))
    assert one.reach() == (((Requirement("a", "Exists"),),), zone)
    one.put("capacities", Capacity("later", (Requirement("a", "Exists"),), 9))
    assert one.member.shape.requests[COUNT] == 1
    wakes = one.wakes
    one.put("capacities", Capacity("later", (Requirement("a", "Exists"),), 9))
    assert one.wakes == wakes
    one.put("capacities", Capacity("later", (Requirement("a", "Exists"),), 10))
    assert one.member.shape.requests[COUNT] == 0
    one.storage.capacities.drop(Uid("capacities"))
    assert one.member.shape.requests[COUNT] == 1


def test_a_node_that_is_selected_for_a_claim_is_the_only_one() -> None:
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi"))
    one.put("claims", replace(open_claim(), selected_node=NodeName("n7")), "uid-data")
    one.waits()
    here = Requirement("metadata.name", "In", ("n7",))
    assert one.member.shape.required == (NodeTerm(fields=(here,)),)
    one.put("classes", LATER)
    assert one.member.shape.volume_reach == ((),)


def test_pods_that_share_a_claim_reach_where_it_can_be_provisioned() -> None:
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi", topologies=IN_Z1))
    one.put("claims", open_claim(), "uid-data")
    one.waits("a")
    one.waits("b")
    for waiting in one.members:
        assert (waiting.unsupported_fields, waiting.volume_problems) == ((), ())
        assert (waiting.shape.volume_reach, waiting.unbound_claims) == ((IN_Z1,), ("data",))
    # As for kube-scheduler, a node that is selected for it already is the only one.
    one.put("claims", replace(open_claim(), selected_node=NodeName("n7")), "uid-data")
    here = (NodeTerm(fields=(Requirement("metadata.name", "In", ("n7",)),)),)
    assert [waiting.shape.required for waiting in one.members] == [here, here]


def test_pods_that_share_a_claim_are_not_modelled_where_volumes_are_counted() -> None:
    one = Observed()
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.waits("a")
    other = one.waits("b")
    counted = (f"{FIELD} ({claim_demand.COUNTED})",)
    assert [waiting.unsupported_fields for waiting in one.members] == [counted, counted]
    one.state.pods.pending.drop(other.uid)
    assert one.member.unsupported_fields == ()


def test_a_claim_that_pods_share_is_bound_for_those_of_its_reservations_first() -> None:
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi", topologies=IN_Z1))
    one.put("claims", open_claim(), "uid-data")
    pods = [one.waits(name) for name in ("a", "b", "c")]
    here = NodeName("n1")
    choice = VolumeChoice("data", "uid-data", "7", here)
    first, second = (
        replace(
            held(choice),
            uid=Uid(name),
            self_uid=Uid(name),
            entries=(PodReservation(pod.key, pod.uid, NodeName(place)),),
        )
        for name, pod, place in (("r", pods[0], "n1"), ("s", pods[1], "n2"))
    )
    one.state.reservations.store.put(Item(Uid("r"), 9, first))
    one.state.reservations.store.put(Item(Uid("s"), 9, second))
    one.put("claims", replace(open_claim(), selected_node=here), "uid-data")
    waits = ("claim data is being bound for other pods that name it",)
    a, b, c = one.members
    assert (a.unbound_claims, a.volume_problems, a.shape) == (("data",), (), pods[0].shape)
    assert (b.unbound_claims, b.volume_problems, b.shape) == (("data",), (), pods[1].shape)
    assert (c.unbound_claims, c.volume_problems) == ((), waits)
    # The same while no watch has shown the volume.
    one.put("claims", claim(uid="uid-data"), "uid-data")
    assert [m.volume_problems for m in one.members] == [(), (), waits]
    one.put("claims", replace(open_claim(), selected_node=here), "uid-data")
    # What one Reservation gives back is still chosen by the other.
    one.state.reservations.store.drop(Uid("s"))
    assert [m.volume_problems for m in one.members] == [(), waits, waits]
    assert one.storage.abandoned() == []
    one.state.reservations.store.put(Item(Uid("r"), 10, replace(first, entries=second.entries)))
    assert [m.volume_problems for m in one.members] == [waits, (), waits]
    one.put("volumes", HERE)
    one.put("claims", claim(uid="uid-data"), "uid-data")
    assert [m.shape.volume_reach for m in one.members] == [(IN_Z1,)] * 3


def test_what_keeps_claims_from_being_modelled_is_said() -> None:
    one = Observed()
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.put("volumes", replace(local("pv1"), affinity=None), "v1")
    one.waits()
    assert one.member.unsupported_fields == (f"{FIELD} ({volume_supply.SHARED})",)
    one.put("claims", open_claim(selector=None), "uid-data")
    assert one.lacks() == ("claim data has a selector that cannot be read",)


HANDED: dict[str, Any] = {"bound_by": BoundBy.KUBE_SCHEDULER, "gates": (GATE,)}


@pytest.mark.parametrize("binds", [True, False])
def test_a_claim_that_kube_scheduler_binds_still_decides_to_which_nodes_its_pod_may_be_pinned(
    *, binds: bool
) -> None:
    one = Observed(binds=binds)
    one.state.nodes.put(Item(Uid("n1"), 2, node("n1", cpu=4).labelled(**{HOST: "n1"}).made))
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.waits(**HANDED)
    assert one.member.shape.requests[COUNT] == 1
    assert plan(one.seen, BestFit(), BestFit(), Budget()).placements == ()  # it has no volume
    one.put("volumes", local("pv1"), "v1")
    (placement,) = plan(one.seen, BestFit(), BestFit(), Budget()).placements
    assert placement.volumes == ()  # kube-scheduler chooses
    assert violations(one.seen, plan(one.seen, BestFit(), BestFit(), Budget())) == ()
    there = Requirement("metadata.name", "In", ("n7",))
    one.put("claims", replace(open_claim(), selected_node=NodeName("n7")), "uid-data")
    assert one.member.shape.required == (NodeTerm(fields=(there,)),)
    prebound = replace(local("pv1", "n8"), claim=ClaimRef(ClaimKey(NAMESPACE, "data")))
    one.put("volumes", prebound, "v1")
    assert one.reach() == tuple(prebound.reach)
    one.put("volumes", HERE, "v2")
    one.put("claims", claim(), "uid-data")
    assert one.reach() == tuple(HERE.reach)
    assert one.member.unbound_claims == ()
    one.put("claims", claim(is_lost=True), "uid-data")
    assert one.lacks() == ("claim data is lost: volume pv is gone",)


def test_pods_that_share_a_claim_with_one_of_kube_scheduler_wait_until_it_is_bound() -> None:
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi"))
    one.put("claims", open_claim(), "uid-data")
    ours = [one.waits(name) for name in ("a", "b", "c")]
    handed = one.waits("k", **HANDED)
    mixed = (f"{FIELD} ({claim_demand.OF_KUBE_SCHEDULER})",)
    assert [m.unsupported_fields for m in one.members] == [mixed, mixed, mixed, ()]
    one.state.pods.pending.drop(handed.uid)
    assert [m.unsupported_fields for m in one.members] == [(), (), ()]
    # Once Tutti has chosen, kube-scheduler's pod waits, and is not pinned.
    choice = VolumeChoice("data", "uid-data", "7", NodeName("n1"))
    entries = tuple(PodReservation(pod.key, pod.uid, NodeName("n1")) for pod in ours)
    one.state.reservations.store.put(Item(Uid("r"), 9, replace(held(choice), entries=entries)))
    one.waits("l", **HANDED)
    waits = ("claim data is being bound for other pods that name it",)
    assert [m.unsupported_fields for m in one.members] == [(), (), (), ()]
    assert [m.volume_problems for m in one.members] == [(), (), (), waits]
    # The choice for a claim of the same name that is gone counts no more.
    one.put("claims", replace(open_claim(), uid="newer"), "uid-newer")
    assert [m.unsupported_fields for m in one.members] == [mixed, mixed, mixed, ()]


def test_where_drivers_have_capacity_for_the_claims_of_kube_scheduler_is_asked_for() -> None:
    one = Observed(binds=False)
    one.put("classes", replace(LATER, provisioner="one.csi"))
    one.put("drivers", Driver("one.csi", has_capacity=True))
    one.put("claims", open_claim(), "uid-data")
    one.waits()
    assert not one.storage.needs_capacities  # Tutti binds no claims
    one.waits(**HANDED)
    assert one.storage.needs_capacities


def test_a_pod_that_is_handed_over_takes_a_local_volume_until_kube_scheduler_chooses_it() -> None:
    one = Observed()
    one.state.nodes.put(Item(Uid("n1"), 2, node("n1", cpu=4).labelled(**{HOST: "n1"}).made))
    one.put("classes", LATER)
    one.put("claims", open_claim("first"), "uid-first")
    one.put("claims", open_claim("second"), "uid-second")
    one.put("volumes", local("pv1"), "v1")
    one.pins("a", "first")
    one.waits("b", "second", **HANDED)
    (seen,) = one.seen.nodes
    assert (seen.allocatable[COUNT], seen.used[COUNT]) == (1, 1)
    one.put("volumes", local("pv2"), "v2")
    assert one.seen.nodes[0].allocatable[COUNT] == 2
    one.put("volumes", replace(local("pv1"), claim=ClaimRef(ClaimKey(NAMESPACE, "first"))), "v1")
    (seen,) = one.seen.nodes
    assert (seen.allocatable[COUNT], seen.used[COUNT]) == (1, 0)


def test_a_claim_that_several_pods_of_kube_scheduler_name_takes_no_local_volume() -> None:
    one = Observed()
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.waits("a", **HANDED)
    one.waits("b", **HANDED)
    members = [m for gang in one.seen.gangs for m in gang.members]
    assert [m.unsupported_fields for m in members] == [(), ()]
    assert not any(COUNT in dict(m.shape.requests.amounts) for m in members)


def test_of_the_pods_of_kube_scheduler_with_a_claim_for_one_pod_one_is_pinned() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim(for_one_pod=True))
    one.waits("a", **HANDED)
    one.waits("b", **HANDED)
    fields = {m.unsupported_fields for gang in one.seen.gangs for m in gang.members}
    assert fields == {()}
    assert of_one_pod(one) == [(True, True)] * 2


def test_claims_of_kube_schedulers_pods_do_not_keep_the_claims_of_others() -> None:
    one = Observed()
    one.put("classes", LATER)
    one.put("volumes", local("pv1", size=20, modes=("ReadWriteOnce",)), "v1")
    one.put("claims", open_claim("ours", size=20), "uid-ours")
    one.put("claims", open_claim("theirs", modes=("ReadWriteOnce",)), "uid-theirs")
    one.waits("a", "ours")
    one.waits("b", "theirs", **HANDED)
    ours, theirs = (m for gang in one.seen.gangs for m in gang.members)
    assert (ours.unsupported_fields, ours.unbound_claims) == ((), ("ours",))
    assert (theirs.unsupported_fields, theirs.unbound_claims) == ((), ())
    one.waits("b", "theirs")
    fields = [m.unsupported_fields for gang in one.seen.gangs for m in gang.members]
    assert fields == [(), (f"{FIELD} ({volume_supply.OVERLAPS})",)]


def test_claims_of_kube_schedulers_pods_are_counted_in_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(volume_supply, "MOST_COUNTS", 1)
    one = Observed()
    one.put("classes", LATER)
    one.put("volumes", local("pv1", size=20), "v1")
    one.put("claims", open_claim("ours", size=20), "uid-ours")
    one.put("claims", open_claim("theirs"), "uid-theirs")
    late = (f"{FIELD} ({volume_supply.TOO_MANY})",)

    def said() -> tuple[str, ...]:
        (ours,) = (m for gang in one.seen.gangs for m in gang.members if m.key.name == "a")
        return ours.unsupported_fields

    one.waits("a", "ours", created=2.0)
    one.waits("b", "theirs", created=1.0, **HANDED)
    assert said() == late
    one.waits("b", "theirs", created=3.0, **HANDED)
    assert said() == ()
    one.waits("b", "theirs", created=1.0, gates=("x/y",))
    assert said() == ()
    one.waits("b", "theirs", created=1.0)
    assert said() == late
    one.waits("c", "theirs", created=1.0)  # no pod of several gets its volume
    assert said() == ()


def test_of_claims_that_overlap_the_one_goes_on_whose_pod_has_waited_longer() -> None:
    one = Observed()
    one.put("classes", LATER)
    one.put("volumes", local("pv1", size=20, modes=("ReadWriteOnce",)), "v1")
    one.put("claims", open_claim("big", size=20), "uid-big")
    one.put("claims", open_claim("once", modes=("ReadWriteOnce",)), "uid-once")
    overlap = (f"{FIELD} ({volume_supply.OVERLAPS})",)

    def said() -> list[tuple[str, ...]]:
        return [m.unsupported_fields for gang in one.seen.gangs for m in gang.members]

    one.waits("a", "big", created=2.0)
    one.waits("b", "once", created=1.0)
    assert said() == [overlap, ()]
    one.waits("b", "once", created=1.0, gates=("x/y",))
    assert said() == [(), overlap]
    one.waits("b", "once", created=1.0)
    assert said() == [overlap, ()]
    one.waits("c", "once", created=1.0)
    assert said() == [(), overlap, overlap]


def test_a_claim_of_an_ephemeral_volume_has_to_be_the_pods_own() -> None:
    one = Observed()
    one.put("volumes", HERE)
    one.put("claims", claim("a-own", owner="another"))
    made = one.waits("a", "a-own", own_claims=("a-own",))
    assert one.lacks() == ("claim a-own is not of this pod",)
    one.put("claims", claim("a-own", owner=made.uid))
    assert one.lacks() == ()


def held(*choices: VolumeChoice) -> Reservation:
    """A Reservation that has chosen these volumes."""
    made = reservation(gang("g").of(1, cpu=1), ("g-0", "n1"))
    return replace(made, volumes=choices, self_uid=Uid("r"))


def test_what_a_reservation_has_chosen_is_for_no_other_claim() -> None:
    one = Observed()
    one.state.nodes.put(Item(Uid("n1"), 2, node("n1", cpu=4).labelled(**{HOST: "n1"}).made))
    one.put("classes", LATER)
    one.put("claims", open_claim(), "uid-data")
    one.put("claims", open_claim("other"), "uid-other")
    one.put("volumes", local("pv1"), "v1")
    one.waits("a")
    one.waits("b", "other")
    here = NodeName("n1")
    choice = VolumeChoice("data", "uid-data", "7", here, "pv1")
    one.state.reservations.store.put(Item(Uid("r"), 9, held(choice)))
    one.state.reservations.store.put(Item(Uid("r"), 10, replace(held(choice), term="2")))
    one.state.reservations.store.put(Item(Uid("s"), 10, replace(held(), uid=Uid("s"))))
    assert one.storage.claim(ClaimKey(NAMESPACE, "data")) is not None
    first, second = (m for gang in one.seen.gangs for m in gang.members)
    assert first.shape.volume_reach == (local("pv1").affinity,)
    assert first.shape.requests[COUNT] == 0
    assert second.shape.requests[COUNT] == 1
    assert one.seen.nodes[0].allocatable[COUNT] == 0
    # Another client takes it, and the Reservation cannot be carried out.
    taken = replace(local("pv1"), claim=ClaimRef(ClaimKey("etl", "x")))
    one.put("volumes", taken, "v1")
    first, _ = (m for gang in one.seen.gangs for m in gang.members)
    assert first.volume_problems == ("claim data lost volume pv1",)
    one.storage.volumes.drop(Uid("v1"))
    first, _ = (m for gang in one.seen.gangs for m in gang.members)
    assert first.volume_problems == ("claim data lost volume pv1",)
    # Once it is for the claim, it decides where the pod goes, whatever was chosen.
    mine = replace(local("pv2", "n2"), claim=ClaimRef(ClaimKey(NAMESPACE, "data"), "uid-data"))
    one.put("volumes", mine, "v2")
    first, _ = (m for gang in one.seen.gangs for m in gang.members)
    assert first.shape.volume_reach == (mine.affinity,)
    one.put("volumes", replace(mine, offer=Offer("later", 9)), "v2")
    first, _ = (m for gang in one.seen.gangs for m in gang.members)
    assert first.volume_problems == ("claim data lost volume pv1",)


def test_a_claim_whose_volume_no_watch_has_shown_yet_is_arriving() -> None:
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi"))
    one.put("claims", open_claim(), "uid-data")
    one.waits()
    here = NodeName("n1")
    choice = VolumeChoice("data", "uid-data", "7", here)
    one.state.reservations.store.put(Item(Uid("r"), 9, held(choice)))
    one.put("claims", replace(open_claim(), selected_node=here), "uid-data")
    assert one.member.unbound_claims == ("data",)
    one.put("claims", claim(uid="uid-data"), "uid-data")
    assert (one.member.unbound_claims, one.lacks()) == (("data",), ())
    one.put("volumes", HERE)
    assert not one.seen.gangs[0].members[0].unbound_claims


def test_claims_of_a_reservation_that_is_gone_are_abandoned_while_a_node_is_selected() -> None:
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi"))
    one.waits()
    here = NodeName("n1")
    choice = VolumeChoice("data", "uid-data", "7", here)
    selected = replace(open_claim(), selected_node=here)
    one.put("claims", selected, "uid-data")
    assert one.storage.abandoned() == []
    one.state.reservations.store.put(Item(Uid("r"), 9, held(choice)))
    one.state.reservations.store.drop(Uid("r"))
    key = ClaimKey(NAMESPACE, "data")
    assert one.storage.abandoned() == [(key, choice)]
    one.put("claims", replace(open_claim(), version="8"), "uid-data")
    assert one.storage.abandoned() == []
    one.put("claims", replace(selected, version="9"), "uid-data")
    assert one.storage.abandoned() == []


def test_a_node_that_an_earlier_leader_selects_late_is_noticed() -> None:
    """Its write succeeds only while the claim has the version that its Reservation named."""
    one = Observed()
    one.put("classes", replace(LATER, provisioner="one.csi"))
    one.waits()
    here = NodeName("n1")
    choice = VolumeChoice("data", "uid-data", "7", here)
    one.put("claims", replace(open_claim(), version="7"), "uid-data")
    one.state.reservations.store.put(Item(Uid("r"), 9, held(choice)))
    one.state.reservations.store.drop(Uid("r"))
    assert one.storage.abandoned() == []
    wakes = one.wakes
    late = replace(open_claim(), version="8", selected_node=here)
    one.put("claims", late, "uid-data")
    assert one.wakes > wakes
    assert one.storage.abandoned() == [(ClaimKey(NAMESPACE, "data"), choice)]
