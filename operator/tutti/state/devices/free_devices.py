"""Which devices each node has, which of them are taken, and how they count for the selections.

Only nodes whose devices or claims changed are computed again, unless the selections change.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

from ...filters.devices import counters, pools, requests, rows, selectors
from ...filters.devices.admin_access import Here
from ...filters.devices.bundles import OF_STAND_IN, Seen
from ...filters.devices.counters import NOTHING_SHARED, Key, Shared
from ...filters.devices.pools import PoolName
from ...model.devices.claims import MOST_RESULTS, FreeDevice, NodeDevices, Selection, stand_in
from ...model.devices.inventory import Device, DeviceId, ResourceSlice, TaintRule
from ...model.keys import NodeName, Uid
from ..node_usage import NOTHING_ATTACHED, VolumeUsage
from .admin_rows import AdminRows
from .asked import NOTHING_ASKED, Asked
from .bundle_rows import BundleRows

Place = NodeName | None  # None: devices of several nodes
Amounts = dict[Key, Fraction]
SeenById = dict[DeviceId, Seen]
SHARING = "devices[].consumesCounters"
Holder = tuple[Uid, str]  # a claim, and by what it has the device: its status or a Reservation


class FreeDevices:
    """Devices by pool and node, who holds them, and the counts of each node."""

    def __init__(self) -> None:
        self._pieces: dict[PoolName, dict[Uid, ResourceSlice]] = {}
        self._by_pool: dict[PoolName, Mapping[Place, tuple[Device, ...]]] = {}
        self._unusable: dict[PoolName, Collection[Place]] = {}  # places of pools that do not count
        self._pools_of: dict[Place, set[PoolName]] = {}
        self._place: dict[DeviceId, Place] = {}
        self._holders: dict[DeviceId, set[Holder]] = {}
        self._held: dict[Holder, tuple[DeviceId, ...]] = {}
        self._rules: Sequence[TaintRule] = ()
        self.asked: Asked = NOTHING_ASKED
        self._masks: dict[Place, Mapping[DeviceId, int]] = {}  # of devices that meet a selection
        self._features: dict[Place, Mapping[int, frozenset[str]]] = {}  # unsupported, by selection
        self._known_features: Mapping[int, frozenset[str]] = {}  # of all places
        self._largest: Mapping[int, int] = {}  # devices of a node, by selection that takes them all
        self._stale: set[Place] = set()  # whose devices changed since the last refresh
        self._new: set[Place] = set()  # whose devices changed since ``forget_new``
        self._uncounted: set[Place] = set()  # of whose devices some were taken or given back
        self._counts: dict[Place, VolumeUsage] = {}
        self._counters: dict[PoolName, Mapping[Key, Fraction]] = {}  # of pools that have some
        self._shared: dict[Place, Shared] = {}  # of places with such pools
        self._consuming = 0  # the selections that devices meet which consume counters
        self.bundles = BundleRows()
        self.admin = AdminRows()
        self.rows: Mapping[int, str] = {}
        self._patterns: AbstractSet[frozenset[int]] | None = None  # that rows count; None: outdated
        self._unfit: frozenset[Selection] = frozenset()  # left out, so that rows are few enough
        self.has_new_rows = False  # or new unsupported devices, since the refresh before

    def slice_changed(self, uid: Uid, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Take in a slice of a pool."""
        for piece in (old, new):
            if piece is not None:
                self._pieces.setdefault(pools.pool_of(piece), {}).pop(uid, None)
        if new is not None:
            self._pieces[pools.pool_of(new)][uid] = new
        for pool in {pools.pool_of(piece) for piece in (old, new) if piece is not None}:
            self._update(pool)

    def _update(self, pool: PoolName) -> None:
        """Compute the devices of a pool again."""
        for place, before in self._by_pool.pop(pool, {}).items():
            self._pools_of[place].discard(pool)
            self._stale.add(place)
            for device in before:
                self._place.pop(device.id, None)
        pieces = self._pieces[pool]
        self._stale.update(self._unusable.pop(pool, ()))
        if unusable := pools.unusable_on(pieces.values()):
            self._unusable[pool] = unusable
            self._stale.update(unusable)
        self._counters.pop(pool, None)
        if offered := counters.offered(pools.newest(pieces.values())):
            self._counters[pool] = offered
        if not pieces:
            del self._pieces[pool]
        now = self._by_pool[pool] = pools.devices(pieces.values())
        for place, devices in now.items():
            self._pools_of.setdefault(place, set()).add(pool)
            self._stale.add(place)
            self._new.add(place)
            self._place.update((device.id, place) for device in devices)

    def rules_changed(self, taint_rules: Sequence[TaintRule]) -> None:
        """Take in the rules that give taints to devices."""
        self._rules = taint_rules
        self._stale.update(self._pools_of)

    def hold(self, claim: Uid, by: str, devices: Iterable[DeviceId]) -> None:
        """Let a claim have these devices, and no others, by its status or by a Reservation."""
        holder = claim, by
        before, now = self._held.pop(holder, ()), tuple(devices)
        for device in before:
            self._holders[device].discard(holder)
            if not self._holders[device]:
                del self._holders[device]
        for device in now:
            self._holders.setdefault(device, set()).add(holder)
        if now:
            self._held[holder] = now
        self._uncounted.update(self._place[d] for d in (*before, *now) if d in self._place)

    def may_take(self, device: DeviceId, node: NodeName, claim: Uid) -> bool:
        """Whether a claim may have this device of a node: it exists, and no other claim has it."""
        holders = self._holders.get(device, ())
        is_there = self.is_on(device, node) and device not in self._shared_at(node).blocked
        return is_there and all(of == claim for of, _ in holders)

    def is_on(self, device: DeviceId, node: NodeName) -> bool:
        """Whether a node has this device."""
        return self._place.get(device) == node

    def new_devices(self) -> Collection[Device]:
        """The devices of the places that changed since ``forget_new``."""
        return [device for place in self._new for device in self._at(place)]

    def forget_new(self) -> None:
        """Take in that the devices that are there now are not new any more."""
        self._new = set()

    def all_devices(self) -> Collection[Device]:
        """All devices."""
        return [device for place in self._pools_of for device in self._at(place)]

    def _at(self, place: Place) -> Iterator[Device]:
        for pool in sorted(self._pools_of.get(place, ())):
            yield from self._by_pool[pool].get(place, ())

    @property
    def selections(self) -> tuple[Selection, ...]:
        """The selections of the claims that wait; sorted."""
        return self.asked.selections

    @property
    def left_out(self) -> frozenset[Selection]:
        """The selections that are not counted, as others come first and all are too many."""
        return self.asked.left_out | self._unfit

    def refresh(self, asked: Asked) -> Collection[NodeName] | None:
        """Compute what changed; returns the nodes whose counts changed, or None if all may have."""
        before_asked, self.asked = self.asked, asked
        is_new = asked.counted != before_asked.counted
        if self._unfit or self.bundles.are_left_out:
            is_new |= (asked.turns, asked.ties) != (before_asked.turns, before_asked.ties)
        was = before_asked.selections, before_asked.administered
        if (asked.selections, asked.administered) != was:
            self._stale.update(self._pools_of)
        self.bundles.ties = asked.ties
        self.admin.choose(asked.administered, asked.left_out_administered)
        changed = self._stale | self._uncounted
        if is_new:
            self._patterns = None
            changed |= self._pools_of.keys()
        before = self._known_features, self.admin.features
        self._read_stale()
        if self._counters or self._shared:
            self._share(changed)
        named, largest, bundled = self.rows, self._largest, self.bundles.state
        if is_new or changed:
            self._largest = self._largest_totals()
            if is_new or largest != self._largest:
                counts = {i: self.count(i, 1) for i in self._largest}
                self.bundles.choose(asked.tied, asked.selections, counts)
            self._name_rows()
            for place in changed if largest == self._largest else set(self._masks):
                self._read_bundles(place)
            self.bundles.name()
        self.has_new_rows = (named, largest, bundled) != (
            self.rows,
            self._largest,
            self.bundles.state,
        ) or before != (self._known_features, self.admin.features)
        if self.has_new_rows:
            changed = set(self._masks)
        for place in changed:
            self._count(place)
        self._uncounted = set()
        return None if self.has_new_rows else {place for place in changed if place is not None}

    def _read_stale(self) -> None:
        """Take in the devices of all places that changed."""
        if self._stale:
            for place in self._stale:
                self._read(place)
            self._known_features = self._all_features()
        self._stale = set()

    def _read(self, place: Place) -> None:
        """Take in the devices of a place."""
        self._masks[place], self._features[place] = self._seen(place)
        if self.asked.administered:
            here = Here(tuple(self._at(place)), self._is_whole(place))
            self.admin.read(place, here, self._rules)

    def _seen(self, place: Place) -> tuple[Mapping[DeviceId, int], Mapping[int, frozenset[str]]]:
        """The selections that each device of a place meets, and what is unsupported of these."""
        masks: dict[DeviceId, int] = {}
        features: dict[int, frozenset[str]] = {}
        for device in self._at(place):
            met = [
                i
                for i, selected in enumerate(self.selections)
                if not selected.takes_all and requests.is_met(selected, device, self._rules)
            ]
            if not device.unsupported and met:
                masks[device.id] = sum(1 << i for i in met)
            for i in met if device.unsupported else ():
                features[i] = features.get(i, frozenset()) | _fields(device)
            for i in met if device.counters else ():
                if self.selections[i].alternatives:
                    features[i] = features.get(i, frozenset()) | {f"{SHARING} and firstAvailable"}
        for i, selected in enumerate(self.selections):
            if selected.takes_all:
                for device in self._all_of(place, selected):
                    masks[device.id] = masks.get(device.id, 0) | 1 << i
                    features[i] = features.get(i, frozenset()) | _fields(device)
                    if device.counters:
                        features[i] |= {f"{SHARING} and allocationMode: All"}
        return masks, features

    def _all_of(self, place: Place, selected: Selection) -> Sequence[Device]:
        """The devices of a place that a selection takes, which takes all; none if it cannot."""
        if not self._is_whole(place):
            return ()
        chosen = [d for d in self._at(place) if selectors.matches(selected.expressions, d)]
        is_whole = all(requests.is_untainted(selected, device, self._rules) for device in chosen)
        return chosen if is_whole and len(chosen) <= MOST_RESULTS else ()

    @property
    def have_counters(self) -> bool:
        """Whether some devices may share counters."""
        return bool(self._counters)

    def consumes(self, index: int) -> bool:
        """Whether some device consumes counters that the selection of this index selects."""
        return bool(self._consuming >> index & 1)

    def _share(self, places: Iterable[Place]) -> None:
        """Compute the counters of places."""
        for place in places:
            known: Amounts = {}
            for pool in self._pools_of.get(place, ()):
                known.update(self._counters.get(pool, {}))
            self._shared.pop(place, None)
            if known:
                self._shared[place] = counters.shared(self._at(place), known, self._holders)
        self._consuming = 0
        for place, shared in self._shared.items():
            for device in shared.uses:
                self._consuming |= self._masks[place].get(device, 0)

    def _shared_at(self, place: Place) -> Shared:
        return self._shared.get(place, NOTHING_SHARED)

    def _is_free(self, place: Place, device: DeviceId) -> bool:
        return device not in self._holders and device not in self._shared_at(place).blocked

    def _is_whole(self, place: Place) -> bool:
        """Whether the devices of all pools of a place count."""
        return all(place not in places for places in self._unusable.values())

    def _largest_totals(self) -> Mapping[int, int]:
        """For each selection that takes all of a node, the most devices that a node has for it."""
        return {
            i: max((self._total(place, i) for place in self._masks), default=0)
            for i, selected in enumerate(self.selections)
            if selected.takes_all
        }

    def _total(self, place: Place, index: int) -> int:
        """How many devices of a place the selection of this index selects."""
        return sum(mask >> index & 1 for mask in self._masks[place].values())

    def count(self, index: int, count: int) -> int:
        """How many devices a request counts for that has this selection and this count."""
        return max(self._largest[index], 1) if index in self._largest else count

    def _stand_ins(self, place: Place) -> Iterator[FreeDevice]:
        for i, largest in self._largest.items():
            total = self._total(place, i)
            for number in range(largest - total if total else 0):
                yield FreeDevice(stand_in(i, number), 1 << i)

    def _all_features(self) -> Mapping[int, frozenset[str]]:
        features: dict[int, frozenset[str]] = {}
        for at_place in self._features.values():
            for i, fields in at_place.items():
                features[i] = features.get(i, frozenset()) | fields
        return features

    def unsupported(self, index: int) -> Iterable[str]:
        """The features of devices that this selection meets and that Tutti does not support."""
        return sorted(self._known_features.get(index, ()))

    def _name_rows(self) -> None:
        patterns = {
            frozenset((*masks.values(), *(d.selections for d in self._stand_ins(place))))
            for place, masks in self._masks.items()
        }
        if patterns != self._patterns:
            self._patterns = patterns
            options = self.asked.tied.options
            bits = {of: 1 << i for i, of in enumerate(self.selections) if of not in options}
            groups = [sum(bits.get(of, 0) for of in turn) for turn in self.asked.turns]
            kept, self.rows = rows.fitting_rows(self.selections, patterns, groups)
            self._unfit = frozenset(of for of, bit in bits.items() if not kept & bit)

    def _read_bundles(self, place: Place) -> None:
        """Compute which bundles fit a place."""
        if self.bundles.are_counted:
            masks, shared = self._masks.get(place, {}), self._shared_at(place)
            values = {d.id: self.bundles.values(d) for d in self._at(place) if d.id in masks}
            nothing = (OF_STAND_IN,) * self.bundles.width
            stand_ins: list[Seen] = [
                (of.selections, nothing, ()) for of in (self._stand_ins(place) if masks else ())
            ]
            whole: SeenById = {
                device: (mask, values[device], shared.uses.get(device, ()))
                for device, mask in masks.items()
            }
            free = [seen for device, seen in whole.items() if self._is_free(place, device)]
            self.bundles.read(place, [*whole.values(), *stand_ins], [*free, *stand_ins], shared)

    def _count(self, place: Place) -> None:
        masks = self._masks.get(place, {})
        stand_ins = [device.selections for device in self._stand_ins(place)] if masks else []
        offered = rows.counts([*masks.values(), *stand_ins], self.rows)
        used = rows.counts(
            (mask for device, mask in masks.items() if not self._is_free(place, device)), self.rows
        )
        sets = self.bundles.counted(place)
        usage = VolumeUsage(offered + sets.offered, used + sets.used) if masks else NOTHING_ATTACHED
        self._counts[place] = VolumeUsage(usage.offered + self.admin.offered(place), usage.used)

    def counted(self, node: NodeName) -> VolumeUsage:
        """How many devices a node has for each row, and how many of them are taken."""
        return self._counts.get(node, NOTHING_ATTACHED)

    def nodes(self) -> tuple[NodeDevices, ...]:
        """The free devices of each node that meet some selection."""
        listed = []
        for place, masks in self._masks.items():
            shared = self._shared_at(place)
            free = [
                FreeDevice(device, mask, shared.uses.get(device, ()))
                for device, mask in masks.items()
                if self._is_free(place, device)
            ]
            free += self._stand_ins(place)
            if place is not None and free:
                listed.append(NodeDevices(place, tuple(sorted(free)), shared.free))
        return tuple(sorted(listed, key=lambda here: here.node))


def _fields(device: Device) -> frozenset[str]:
    """The fields of a device that Tutti does not support."""
    return frozenset(f"devices[].{field}" for field in device.unsupported)
