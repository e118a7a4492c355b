"""Claims, volumes and classes by name, and the handle of the volume of each claim.

This module knows no pods; ``claim_index`` does.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import Generic, TypeVar

from ...filters import volume_rules, volume_supply
from ...model.keys import Uid
from ...model.volumes import (
    Capacity,
    Claim,
    ClaimKey,
    Driver,
    Storage,
    StorageClass,
    Volume,
    way_order,
)
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
        self._drivers: _ByName[str, Driver] = _ByName(lambda driver: driver.name)
        self._capacities: dict[Uid, Capacity] = {}
        self._available: dict[str, dict[str, Volume]] = {}  # by class, then by name
        self._prebound: dict[ClaimKey, set[str]] = {}  # the volumes that are for a claim
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
        if name is None:
            return []
        if old is not None:
            self._withdraw(old)
        if (volume := self._volumes.get(name)) is not None:
            self._offer(volume)
        naming = list(self._naming.get(name, ()))
        before = self.sharing(naming)
        for key in naming:
            self._file(key)
        return [*before, *naming]

    def _offer(self, volume: Volume) -> None:
        """Note which claims may get a volume, or have it."""
        if volume.claim is not None:
            self._prebound.setdefault(volume.claim.key, set()).add(volume.name)
        elif volume.offer is not None:
            self._available.setdefault(volume.offer.storage_class, {})[volume.name] = volume

    def _withdraw(self, volume: Volume) -> None:
        """Undo ``_offer``."""
        if volume.claim is not None:
            drop(self._prebound, volume.claim.key, volume.name)
        elif volume.offer is not None:
            offered = self._available.get(volume.offer.storage_class, {})
            offered.pop(volume.name, None)
            if not offered:
                self._available.pop(volume.offer.storage_class, None)

    def driver_changed(self, uid: Uid, old: Driver | None, new: Driver | None) -> None:
        """Take in a change of a driver."""
        self._drivers.changed(uid, old, new)

    def capacity_changed(self, uid: Uid, new: Capacity | None) -> None:
        """Take in a change of a capacity."""
        self._capacities.pop(uid, None)
        if new is not None:
            self._capacities[uid] = new

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

    def volume_for(self, claim: Claim) -> Volume | None:
        """The volume that is for a claim that is not bound to it yet; None if there is none."""
        names = sorted(self._prebound.get(claim.key, ()))
        volumes = (volume for volume in self._volumes.those(names) if volume.is_for(claim))
        return next(
            (
                volume
                for volume in volumes
                if claim.request is not None and volume_rules.has_size(claim.request, volume)
            ),
            None,
        )

    def needs_capacities(self, claim: Claim) -> bool:
        """Whether CSIStorageCapacities say where the volume of a claim can be provisioned."""
        storage_class = self._classes.get(claim.storage_class)
        driver = None if storage_class is None else self._drivers.get(storage_class.provisioner)
        return driver is not None and driver.has_capacity

    def supply(
        self,
        waiting: Iterable[volume_supply.Waiting],
        taken: Collection[str],
    ) -> volume_supply.VolumeSupply:
        """What these requests need of nodes; the volumes in ``taken`` are for other claims."""

        @cache
        def volumes_of(name: str) -> Sequence[Volume]:
            offered = self._available.get(name, {})
            return [offered[volume] for volume in sorted(offered.keys() - taken)]

        drivers = self._drivers.those(self._drivers)
        capacities = tuple(self._capacities.values())
        return volume_supply.supply_for(waiting, self._classes.get, volumes_of, drivers, capacities)

    def snapshot(self, keys: Iterable[ClaimKey]) -> Storage:
        """These claims, their volumes and their classes, and what claims that wait may get."""
        claims = self._claims.those(keys)
        names = {claim.volume for claim in claims}
        waiting = [claim for claim in claims if not claim.is_bound]
        classes = self._classes.those({claim.storage_class for claim in waiting})
        for claim in waiting:
            names |= self._prebound.get(claim.key, set())
            names |= self._available.get(claim.storage_class, {}).keys()
        provisioners = {c.provisioner for c in classes if c.waits}
        drivers = [d for d in self._drivers.those(provisioners) if d.has_capacity]
        published = {c.name for c in classes for d in drivers if c.provisioner == d.name}
        capacities = {c for c in self._capacities.values() if c.storage_class in published}
        return Storage(
            claims,
            self._volumes.those(names),
            classes,
            tuple(drivers),
            tuple(sorted(capacities, key=_capacity_order)),
        )


def _capacity_order(capacity: Capacity) -> tuple[object, ...]:
    return capacity.storage_class, way_order(capacity.way), capacity.largest
