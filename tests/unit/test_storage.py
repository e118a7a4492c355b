"""What the claims of our pods lead to, as claims, volumes and classes come, change and go."""

from dataclasses import replace
from typing import Any

import pytest

from tutti.feeds import storage_into
from tutti.kube import dump
from tutti.kube.supply import Item
from tutti.model.cluster import Member, Phase, Snapshot
from tutti.model.decisions import Policy
from tutti.model.keys import NodeName, Uid
from tutti.model.rules import Requirement
from tutti.model.volumes import NO_STORAGE, Claim, ClaimKey, StorageClass, Volume
from tutti.planning.feasibility import fits_node
from tutti.replay import snapshot_of
from tutti.world import World

from ..builders import NAMESPACE, member, node, shape

ZONE = "topology.kubernetes.io/zone"
BETA = "failure-domain.beta.kubernetes.io/zone"
FIELD = "spec.volumes[].persistentVolumeClaim"
IN_Z1 = ((Requirement(ZONE, "In", ("z1",)),),)
HERE = Volume("pv", IN_Z1)


def claim(name: str = "data", **changes: Any) -> Claim:
    """A claim that is bound to the volume ``pv``."""
    return replace(Claim(ClaimKey(NAMESPACE, name), "pv", is_bound=True), **changes)


class Observed:
    """A World that knows a node and has listed all claims, volumes and classes: there are none."""

    def __init__(self, *, is_listed: bool = True) -> None:
        self.wakes = 0
        self.version = 1
        self.world = World(self.wake)
        self.storage = self.world.storage
        self.world.nodes.put(Item(Uid("n1"), 1, node("n1", cpu=4).made))
        for kind in ("claims", "volumes", "classes") if is_listed else ():
            self.list(kind)

    def wake(self) -> None:
        """Count."""
        self.wakes += 1

    def list(self, kind: str, **items: Any) -> None:
        """Show a list of a kind, by uid."""
        store = getattr(self.storage, kind)
        self.version += 1
        listed = [Item(Uid(uid), self.version, one) for uid, one in items.items()]
        store.replace(listed, self.version, store.began())

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
        self.world.pending.put(Item(made.uid, self.version, made))
        return made

    @property
    def seen(self) -> Snapshot:
        """What a decision would see."""
        return self.world.snapshot(7.0)

    @property
    def member(self) -> Member:
        """The only pod, as a decision would see it."""
        ((found,),) = (gang.members for gang in self.seen.gangs)
        return found

    def lacks(self) -> tuple[str, ...]:
        """What is wrong with the claims of the only pod."""
        return self.member.lacking


def test_a_pod_without_claims_is_what_it_was() -> None:
    one = Observed(is_listed=False)
    made = member("a", shape(cpu=1))
    one.world.pending.put(Item(made.uid, 2, made))
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
    assert one.lacks()
    wakes = one.wakes
    one.list("classes")
    assert one.wakes > wakes
    assert (one.lacks(), one.member.shape.reach) == ((), (IN_Z1,))
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
    assert (one.lacks(), one.member.unmodelled) == ((want,), ())


OPEN = {
    "waits for its pod": (
        claim(volume="", is_bound=False, storage_class="later"),
        HERE,
        "unbound, WaitForFirstConsumer",
    ),
    "for one pod": (claim(for_one_pod=True), HERE, "ReadWriteOncePod"),
    "of a driver": (claim(), replace(HERE, driver="one.csi"), "driver one.csi"),
    "of a kind that drivers took over": (claim(), replace(HERE, in_tree="cinder"), "cinder"),
}


@pytest.mark.parametrize(("found", "volume", "want"), OPEN.values(), ids=OPEN)
def test_what_is_not_modelled_yet_is_named(found: Claim, volume: Volume, want: str) -> None:
    one = Observed()
    one.put("volumes", volume)
    one.put("classes", StorageClass("later", waits=True))
    one.put("claims", found)
    one.waits(unmodelled=("spec.resourceClaims",))
    assert one.member.unmodelled == ("spec.resourceClaims", f"{FIELD} ({want})")
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
    assert [each.name for each in one.seen.storage.volumes] == ["pv"]
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
    one.world.bound.put(Item(made.uid, 90, over))
    assert one.seen.storage.claims == (claim(),)
    one.world.pending.drop(other.uid)
    assert one.seen.storage == NO_STORAGE
    assert one.storage.are_wanted  # for good: the streams go on


def test_what_was_bound_by_us_keeps_its_claims_until_the_watch_shows_it() -> None:
    one = Observed()
    one.put("claims", claim())
    one.put("volumes", HERE)
    one.waits()
    one.world.assume(one.member, NodeName("n1"))
    one.world.confirm(one.member.uid)
    assert (one.member.node, one.member.shape.reach) == ("n1", (IN_Z1,))
    one.put("claims", claim(terminating=True))
    assert one.lacks() == ("claim data is being deleted",)


def test_equal_pods_with_equal_reach_share_one_shape() -> None:
    one = Observed()
    one.put("claims", claim(), "c1")
    one.put("claims", claim("more"), "c2")
    one.put("volumes", HERE)
    for name, named in (("a", "data"), ("b", "more")):
        one.waits(name, named)
    ours = [each for gang in one.seen.gangs for each in gang.members]
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
    asking = replace(shape(cpu=1), reach=reach)
    for zone, is_reached in want.items():
        labels = {ZONE: zone} if zone else {"topology.kubernetes.io/region": "r"}
        there = replace(node("n1", cpu=4).made, labels=tuple(labels.items()))
        assert (fits_node(asking, there) is None) is is_reached, zone
    assert fits_node(asking, node("n1", cpu=4).made) is None  # in no zone at all
    if label[0] == BETA:
        own = replace(node("n1", cpu=4).made, labels=((BETA, "z2"), (ZONE, "z1")))
        assert fits_node(asking, own) == "out of reach of a volume"


def test_there_is_a_stream_for_each_store() -> None:
    world = World(lambda: None)
    sinks = [feed.sink for feed in storage_into(world)]
    stored = world.storage
    assert sinks == [stored.claims, stored.volumes, stored.classes]


def test_a_dump_holds_what_claims_lead_to() -> None:
    one = Observed()
    one.put("claims", claim(), "c1")
    one.put("claims", claim("lost", is_lost=True, for_one_pod=True, terminating=True), "c2")
    one.put("claims", claim("open", volume="", is_bound=False, storage_class="later"), "c3")
    one.put("claims", claim("soon", is_bound=False, volume="pv2", storage_class="now"), "c4")
    one.put("volumes", replace(HERE, places=((ZONE, "z1__z2"),)))
    one.put("volumes", Volume("pv2", ((),), driver="one.csi", in_tree="cinder"), "v2")
    one.put("classes", StorageClass("later", waits=True), "s1")
    one.put("classes", StorageClass("now"), "s2")
    one.waits("a")
    one.waits("b", "data", "lost", "open", "soon")
    one.waits("c", "gone", "data")
    setup = dump.Setup("tutti", "bestfit", Policy(), {})
    text = dump.write(one.seen, setup)
    again = snapshot_of(dump.read([dump.Text("d", text.encode())]))
    assert again.storage == one.seen.storage
    assert again.gangs == one.seen.gangs
