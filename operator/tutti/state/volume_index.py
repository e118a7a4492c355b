"""Claims, volumes and classes by name, and the handle of the volume of each claim.

This module knows no pods; ``claim_index`` does.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from ..model.keys import Uid
from ..model.volumes import Claim, ClaimKey, Storage, StorageClass, Volume
from .attach_limits import Handle, handle
from .claim_users import drop

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _ByName(Generic[K, V]):
    """Values by name; of two with one name, the last one counts."""

    def __init__(self, key: Callable[[V], K]) -> None:
        self._key = key
        self._by_key: dict[K, tuple[Uid, V]] = {}

    def changed(self, uid: Uid, old: V | None, new: V | None) -> K | None:
        """Take in a change of one object; return its name, or None if nothing changed."""
        value = new if new is not None else old
        if value is None or old == new:
            return None
        key = self._key(value)
        if new is not None:
            self._by_key[key] = uid, new
        elif key in self._by_key and self._by_key[key][0] == uid:
            del self._by_key[key]
        return key

    def get(self, key: K) -> V | None:
        """The value of this name; None if there is none."""
        entry = self._by_key.get(key)
        return None if entry is None else entry[1]

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def those(self, keys: Iterable[K]) -> tuple[V, ...]:
        """The known values of these names, in the order of the names."""
        values = (self.get(key) for key in sorted(keys, key=str))
        return tuple(value for value in values if value is not None)


class VolumeIndex:
    """The volume, the class and the handle of each claim."""

    def __init__(self) -> None:
        self._claims: _ByName[ClaimKey, Claim] = _ByName(lambda claim: claim.key)
        self._volumes: _ByName[str, Volume] = _ByName(lambda volume: volume.name)
        self._classes: _ByName[str, StorageClass] = _ByName(
            lambda storage_class: storage_class.name
        )
        self._naming: dict[str, set[ClaimKey]] = {}  # the claims that name a volume
        self._sharing: dict[Handle, set[ClaimKey]] = {}  # the claims that share a handle
        self._filed: dict[ClaimKey, Handle] = {}  # the handle of each claim

    def claim_changed(self, uid: Uid, old: Claim | None, new: Claim | None) -> list[ClaimKey]:
        """Take in a change of a claim; return the claims whose volume or handle may differ now."""
        key = self._claims.changed(uid, old, new)
        if key is None:
            return []
        if old is not None:
            drop(self._naming, old.volume, key)
        if (claim := self._claims.get(key)) is not None:
            self._naming.setdefault(claim.volume, set()).add(key)
        before = self.sharing([key])
        self._file(key)
        return [*before, key]

    def volume_changed(self, uid: Uid, old: Volume | None, new: Volume | None) -> list[ClaimKey]:
        """Take in a change of a volume; return the claims whose volume or handle may differ."""
        name = self._volumes.changed(uid, old, new)
        naming = [] if name is None else list(self._naming.get(name, ()))
        before = self.sharing(naming)
        for key in naming:
            self._file(key)
        return [*before, *naming]

    def class_changed(self, uid: Uid, old: StorageClass | None, new: StorageClass | None) -> None:
        """Take in a change of a class, to which any claim without a volume may belong."""
        if self._classes.changed(uid, old, new) is not None:
            for key in list(self._claims):
                self._file(key)

    def _file(self, key: ClaimKey) -> None:
        """Compute the handle of a claim again."""
        old = self._filed.pop(key, None)
        if old is not None:
            drop(self._sharing, old, key)
        claim = self._claims.get(key)
        if claim is None:
            return
        attached = handle(
            claim, self._volumes.get(claim.volume), self._classes.get(claim.storage_class)
        )
        if attached is not None:
            self._filed[key] = attached
            self._sharing.setdefault(attached, set()).add(key)

    def claim(self, key: ClaimKey) -> Claim | None:
        """The claim of this name."""
        return self._claims.get(key)

    def volume(self, name: str) -> Volume | None:
        """The volume of this name."""
        return self._volumes.get(name)

    def volume_of(self, key: ClaimKey) -> Volume | None:
        """The volume that a claim names."""
        claim = self._claims.get(key)
        return None if claim is None else self._volumes.get(claim.volume)

    def handle(self, key: ClaimKey) -> Handle | None:
        """The handle of the volume that is attached for a claim; None if none is attached."""
        return self._filed.get(key)

    def sharing(self, keys: Iterable[ClaimKey]) -> set[ClaimKey]:
        """These claims, and the claims that share a handle with one of them."""
        own_keys = set(keys)
        handles = {handle for key in own_keys if (handle := self._filed.get(key)) is not None}
        return own_keys.union(*(self._sharing[handle] for handle in handles))

    def waits_for_a_pod(self, claim: Claim) -> bool:
        """Whether a claim is bound only once a pod that names it gets a node."""
        storage_class = self._classes.get(claim.storage_class)
        is_free = not (claim.volume or claim.is_lost or claim.terminating)
        return is_free and storage_class is not None and storage_class.waits

    def snapshot(self, keys: Iterable[ClaimKey]) -> Storage:
        """These claims, their volumes and their classes."""
        claims = self._claims.those(keys)
        volumes = self._volumes.those({claim.volume for claim in claims})
        names = {claim.storage_class for claim in claims if not claim.is_bound}
        return Storage(claims, volumes, self._classes.those(names))
