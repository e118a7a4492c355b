"""However claims, volumes and pods come, change and go, what is seen in the end is the same."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tutti.kube.list_watch import Item, ObjectList
from tutti.model.cluster import ForeignPod, Snapshot
from tutti.model.inter_pod import Requirement
from tutti.model.keys import NodeName, Uid
from tutti.model.volumes import (
    NO_PROVISIONER,
    Attachment,
    Claim,
    ClaimKey,
    ClaimRef,
    Driver,
    NodeDrivers,
    Offer,
    StorageClass,
    Volume,
    VolumeRequest,
)
from tutti.state.cluster_state import ClusterState

from ..harness.builders import NAMESPACE, member, node, resources, shape

NODES = (NodeName("n1"), NodeName("n2"))
CLAIMS, VOLUMES = ("a", "b"), ("v", "w")
DRIVERS, HANDLES = ("one.csi", "two.csi"), ("h", "i")
Event = tuple[str, str, Any]  # a kind, a uid, and what it is now; None: it is gone

_named = st.sampled_from((("a",), ("a",), ("a", "b"), ("b",), ()))
_node = st.sampled_from(NODES)


@st.composite
def _pods(draw: st.DrawFn) -> Event:
    uid, is_ours = draw(st.sampled_from("pqr")), draw(st.booleans())
    claims, at = draw(_named), draw(_node)
    if not is_ours:
        foreign_pod = ForeignPod(
            Uid(f"their-{uid}"), at, resources(pods=1), NAMESPACE, claims=claims
        )
        return "bound", foreign_pod.uid, draw(st.sampled_from((foreign_pod, foreign_pod, None)))
    made = replace(member(f"our-{uid}", shape(cpu=1)), claims=claims)
    return "pending", made.uid, draw(st.sampled_from((made, made, None)))


def _claim(name: str, volume: str, flags: list[bool], of_class: str) -> Claim:
    is_bound, terminating, for_one_pod = flags
    key = ClaimKey(NAMESPACE, name)
    is_bound &= bool(volume)
    return Claim(
        key,
        volume,
        is_bound=is_bound,
        storage_class=of_class,
        terminating=terminating,
        for_one_pod=for_one_pod,
        request=None if is_bound else VolumeRequest(of_class, 10),
        uid=f"uid-{name}",
    )


def _volume(name: str, driver: str, handle: str, size: int, claim: str) -> Volume:
    """A local volume, which may be available or for a claim."""
    way = (Requirement("kubernetes.io/hostname", "In", ("n1",)),)
    ref = ClaimRef(ClaimKey(NAMESPACE, claim)) if claim else None
    offer = Offer("c", size) if size else None
    return Volume(name, (way,), driver=driver, handle=handle, offer=offer, claim=ref)


_flags = st.lists(st.booleans(), min_size=3, max_size=3)
_claims = st.builds(
    _claim,
    st.sampled_from(CLAIMS),
    st.sampled_from((*VOLUMES, *VOLUMES, "")),
    _flags,
    st.sampled_from(("", "c")),
)
_volumes = st.builds(
    _volume,
    st.sampled_from(VOLUMES),
    st.sampled_from((*DRIVERS, "")),
    st.sampled_from(HANDLES),
    st.sampled_from((0, 9, 10, 11)),
    st.sampled_from(("", "", CLAIMS[0])),
)
_classes = st.builds(
    StorageClass,
    st.just("c"),
    waits=st.booleans(),
    provisioner=st.sampled_from((*DRIVERS, NO_PROVISIONER, NO_PROVISIONER)),
)
_limits = st.builds(
    lambda on, most: NodeDrivers(on, ((DRIVERS[0], most),)), _node, st.sampled_from((None, 0, 1, 2))
)
_drivers = st.builds(Driver, st.sampled_from(DRIVERS), is_needed=st.booleans())
_attachments = st.builds(Attachment, _node, st.sampled_from(DRIVERS), st.sampled_from(VOLUMES))


def _shown(kind: str, values: st.SearchStrategy[Any], name: Any) -> st.SearchStrategy[Event]:
    return st.builds(
        lambda one, is_there: (kind, str(name(one)), one if is_there else None),
        values,
        st.sampled_from((True, True, False)),
    )


EVENTS = st.one_of(
    *(_pods() for _ in range(5)),
    _shown("claims", _claims, lambda one: one.key.name),
    _shown("volumes", _volumes, lambda one: one.name),
    _shown("classes", _classes, lambda one: one.name),
    _shown("nodes", _limits, lambda one: one.node),
    _shown("drivers", _drivers, lambda one: one.name),
    _shown("attachments", _attachments, lambda one: f"{one.node}/{one.volume}"),
)
# What most of the rules are about: bound claims, and limits for their driver.
BEFORE: list[Event] = [
    *(
        ("claims", c, _claim(c, v, [True, False, False], ""))
        for c, v in zip("ab", "vw", strict=True)
    ),
    *(
        ("volumes", v, Volume(v, driver=DRIVERS[0], handle=h))
        for v, h in zip("vw", "hi", strict=True)
    ),
    ("nodes", "n1", NodeDrivers(NODES[0], ((DRIVERS[0], 2),))),
]
KINDS = ("claims", "volumes", "classes", "nodes", "drivers", "attachments")


def _told(events: Sequence[Event], *, listed_after: int) -> ClusterState:
    """A World that was told of these, and of all lists once it knew of so many."""
    state = ClusterState(lambda: None)
    for name in NODES:
        labelled = node(name, cpu=4).labelled(**{"kubernetes.io/hostname": name})
        state.nodes.put(Item(Uid(name), 1, labelled.made))
    for at, (kind, uid, one) in enumerate((*events, ("pending", "nobody", None))):
        if at == min(listed_after, len(events)):
            for each in KINDS:
                store = getattr(state.storage, each)
                there = [
                    Item(known, store._versions[known], value)
                    for known, value in store._values.items()
                ]
                store.replace(ObjectList(there), at + 2, store.began())
        store = getattr(state.storage if kind in KINDS else state.pods, kind)
        if one is None:
            store.leave(Uid(uid), at + 3)
        else:
            store.put(Item(Uid(uid), at + 3, one))
    return state


def _seen(events: Sequence[Event], *, listed_after: int) -> Snapshot:
    return _told(events, listed_after=listed_after).snapshot(1.0)


@given(st.lists(EVENTS, max_size=12), st.sampled_from((0, 5, 5, 5, 8, 99)))
def test_what_is_seen_in_the_end_does_not_depend_on_the_way(
    more: list[Event], listed_after: int
) -> None:
    events = [*BEFORE, *more]
    last = {(kind, uid): (kind, uid, one) for kind, uid, one in events}
    final = [event for event in last.values() if event[2] is not None]
    state, plain = _seen(events, listed_after=listed_after), _seen(final, listed_after=len(final))
    assert state.gangs == plain.gangs
    assert state.nodes == plain.nodes
    assert state.storage == plain.storage


@given(st.lists(EVENTS, max_size=12), st.sampled_from((0, 5, 99)))
def test_nothing_is_kept_of_what_is_gone(more: list[Event], listed_after: int) -> None:
    events = [*BEFORE, *more]
    state = _told(
        [*events, *((kind, uid, None) for kind, uid, _ in events)], listed_after=listed_after
    )
    storage = state.storage
    for part in (storage._known, storage._limits, storage._pods):
        for name, value in vars(part).items():
            kept = getattr(value, "_known", value)  # by name
            if name != "limited" and isinstance(kept, dict | set):
                assert not kept, (name, kept)
