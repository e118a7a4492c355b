"""What the claims of our pods lead to: worked into each pod, and anew whenever one of them changes.

Separate from the World so that a pod without claims pays nothing. Whether and where a pod's volumes
let it run is answered as kube-scheduler's VolumeBinding and VolumeZone do.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Generic, TypeVar

from .kube.shapes import CLAIM_FIELD
from .model.cluster import Member, Shape
from .model.keys import Uid
from .model.volumes import (
    NO_STORAGE,
    Claim,
    ClaimKey,
    Reach,
    Storage,
    StorageClass,
    Volume,
    sorted_reach,
)
from .store import Store

UNLISTED = "claims and volumes are still being listed"
KNOWN = 16384  # shapes that are shared

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _ByName(Generic[K, V]):
    """Values by name; of two with one name, the one that was shown last is it."""

    def __init__(self, key: Callable[[V], K]) -> None:
        self._key = key
        self._known: dict[K, tuple[Uid, V]] = {}

    def changed(self, uid: Uid, old: V | None, new: V | None) -> None:
        """Take in what one object is now."""
        if new is not None:
            self._known[self._key(new)] = uid, new
        elif old is not None and self._known.get(self._key(old), ("",))[0] == uid:
            del self._known[self._key(old)]

    def get(self, key: K) -> V | None:
        """The value of this name, if there is one."""
        known = self._known.get(key)
        return None if known is None else known[1]


class Claims:
    """Three stores, what is in them by name, and the pods of ours that name claims."""

    def __init__(self, touched: Callable[[Uid], None], wake: Callable[[], None]) -> None:
        """``touched`` is told of each pod whose volumes changed, ``wake`` of every list."""
        self._touched, self._wake = touched, wake
        self.claims: Store[Claim] = Store(self._claim_changed, self._listed)
        self.volumes: Store[Volume] = Store(self._volume_changed, self._listed)
        self.classes: Store[StorageClass] = Store(self._class_changed, self._listed)
        self._by_claim: _ByName[ClaimKey, Claim] = _ByName(lambda one: one.key)
        self._by_volume: _ByName[str, Volume] = _ByName(lambda one: one.name)
        self._by_class: _ByName[str, StorageClass] = _ByName(lambda one: one.name)
        self._named: dict[Uid, tuple[ClaimKey, ...]] = {}
        self._users: dict[ClaimKey, set[Uid]] = {}
        self._was_listed = False
        self._shown: Storage | None = NO_STORAGE  # None: to be made
        self.are_wanted = False  # some pod of ours names one, or did

    @property
    def _is_listed(self) -> bool:
        stores = (self.claims, self.volumes, self.classes)
        return all(store.is_synced for store in stores)

    def _listed(self, _began: int) -> None:
        """A list was taken in; who waited for the first one looks again."""
        if self._is_listed and not self._was_listed:
            self._was_listed = True
            self._touch(list(self._users))
        self._wake()

    def _claim_changed(self, uid: Uid, old: Claim | None, new: Claim | None) -> None:
        self._by_claim.changed(uid, old, new)
        seen = new or old
        if seen is not None and old != new:
            self._touch([seen.key])

    def _volume_changed(self, uid: Uid, old: Volume | None, new: Volume | None) -> None:
        self._by_volume.changed(uid, old, new)
        seen = new or old
        if seen is not None and old != new:
            self._touch([key for key in self._users if self._names(key, seen.name)])

    def _class_changed(self, uid: Uid, old: StorageClass | None, new: StorageClass | None) -> None:
        """Classes are few and hardly ever change: whoever names a claim looks again."""
        self._by_class.changed(uid, old, new)
        if old != new:
            self._touch(list(self._users))

    def pod_changed(self, uid: Uid, member: Member | None) -> None:
        """A pod of ours came, went or is another now."""
        old = self._named.pop(uid, ())
        new: tuple[ClaimKey, ...] = ()
        if member is not None and member.claims and not member.is_over:
            new = tuple(ClaimKey(member.key.namespace, name) for name in member.claims)
            self._named[uid] = new
            self.are_wanted = True
        if old == new:
            return
        self._shown = None
        for key in old:
            self._users[key].discard(uid)
            if not self._users[key]:
                del self._users[key]
        for key in new:
            self._users.setdefault(key, set()).add(uid)

    def seen(self, member: Member) -> Member:
        """The pod with what its claims demand; what it lacks where they lead nowhere yet."""
        if not member.claims:
            return member
        if not self._is_listed:
            return replace(member, lacking=(UNLISTED,))
        lacking: list[str] = []
        unmodelled: set[str] = set()
        reach: set[Reach] = set()
        for name in member.claims:
            claim = self._by_claim.get(ClaimKey(member.key.namespace, name))
            volume = None if claim is None else self._by_volume.get(claim.volume)
            if claim is not None and volume is not None and not _trouble(claim, volume):
                reach.update(volume.reach)
                unmodelled.update(_open(claim, volume))
            elif claim is not None and self._waits_for_a_pod(claim):
                unmodelled.add(f"{CLAIM_FIELD} (unbound, WaitForFirstConsumer)")
            else:
                lacking.append(f"claim {name} {_trouble(claim, volume)}")
        return replace(
            member,
            shape=_shared_shape(member.shape, sorted_reach(reach)),
            lacking=tuple(lacking),
            unmodelled=tuple(sorted({*member.unmodelled, *unmodelled})),
        )

    def shown(self) -> Storage:
        """All that the claims of our pods lead to."""
        if self._shown is None:
            claims = _known(self._by_claim, self._users)
            volumes = _known(self._by_volume, {one.volume for one in claims})
            names = {one.storage_class for one in claims if not one.is_bound}
            self._shown = Storage(claims, volumes, _known(self._by_class, names))
        return self._shown

    def _names(self, key: ClaimKey, volume: str) -> bool:
        claim = self._by_claim.get(key)
        return claim is not None and claim.volume == volume

    def _waits_for_a_pod(self, claim: Claim) -> bool:
        """Whether it is bound only once a pod that names it is."""
        found = self._by_class.get(claim.storage_class)
        is_free = not (claim.volume or claim.is_lost or claim.terminating)
        return is_free and found is not None and found.waits

    def _touch(self, keys: list[ClaimKey]) -> None:
        self._shown = None
        uids = {uid for key in keys for uid in self._users.get(key, ())}
        for uid in sorted(uids):
            self._touched(uid)


def _known(among: _ByName[K, V], keys: Iterable[K]) -> tuple[V, ...]:
    """Those of these names that are there, in the order of the names."""
    found = (among.get(key) for key in sorted(keys, key=str))
    return tuple(one for one in found if one is not None)


def _trouble(claim: Claim | None, volume: Volume | None) -> str:
    """Why nobody who names the claim can run anywhere; empty if nothing is wrong with it."""
    if claim is None:
        return "does not exist"
    if claim.is_lost:
        return f"is lost: volume {claim.volume} is gone"
    if claim.terminating:
        return "is being deleted"
    if not claim.is_bound:
        return "is not bound yet"
    return f"is bound to volume {claim.volume}, which does not exist" if volume is None else ""


def _open(claim: Claim, volume: Volume) -> Iterator[str]:
    """What of a bound claim asks for rules that are not known yet."""
    if claim.for_one_pod:
        yield f"{CLAIM_FIELD} (ReadWriteOncePod)"
    if volume.driver:
        yield f"{CLAIM_FIELD} (driver {volume.driver})"
    if volume.in_tree:
        yield f"{CLAIM_FIELD} ({volume.in_tree})"


@lru_cache(maxsize=KNOWN)
def _shared_shape(shape: Shape, reach: tuple[Reach, ...]) -> Shape:
    return replace(shape, reach=reach) if reach else shape
