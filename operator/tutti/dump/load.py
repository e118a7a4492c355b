"""Snapshots from files: what a dump, ``kubectl get`` output or manifests would look like live.

The same code folds them that folds the watches, so that nothing is understood differently.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from ..gang import demand
from ..kube.list_watch import Item
from ..model.cluster import ForeignPod, Gang, Member, Snapshot
from ..model.keys import Uid
from ..state.cluster_state import ClusterState
from ..state.store import Store
from . import Objects

V = TypeVar("V")


def snapshot_of(found: Objects) -> Snapshot:
    """The Snapshot at the time that the files were taken."""
    state = ClusterState(lambda: None)
    bound: list[tuple[str, Member | ForeignPod]] = [(one.uid, one) for one in found.occupants]
    bound += [(one.uid, one) for one in found.members if one.node is not None]
    _fill(state.groups, ((one.uid, one) for one in found.groups))
    _fill(state.pending, ((one.uid, one) for one in found.members if one.node is None))
    _fill(state.nodes, ((one.name, one) for one in found.nodes))
    _fill(state.bound, bound)
    _fill(state.pinned, ())
    _fill(state.classes, ((one.name, one) for one in found.classes))
    _fill(state.namespaces, ((one.name, one) for one in found.namespaces))
    _fill(state.reservations, ((str(one.self_uid), one) for one in found.reservations))
    _fill(state.storage.claims, (("/".join(one.key), one) for one in found.claims))
    _fill(state.storage.volumes, ((one.name, one) for one in found.volumes))
    _fill(state.storage.classes, ((one.name, one) for one in found.storage_classes))
    _fill(state.storage.nodes, ((one.node, one) for one in found.node_drivers))
    _fill(state.storage.drivers, ((one.name, one) for one in found.drivers))
    numbered = enumerate(found.attachments)
    _fill(state.storage.attachments, ((f"attachment-{i}", one) for i, one in numbered))
    return _reminded(state.snapshot(found.taken_at), found)


def _fill(store: Store[V], values: Iterable[tuple[str, V]]) -> None:
    items = [Item(Uid(uid), 1, value) for uid, value in values]
    store.replace(items, 1, store.began())


def _reminded(snapshot: Snapshot, found: Objects) -> Snapshot:
    """What only the operator that wrote the dump remembered: what went, and what was refused."""
    if found.header is None:
        return snapshot
    finished = found.header.finished

    def reminded(gang: Gang) -> Gang:
        roles = finished.get(str(gang.key), ()) if not gang.is_single else ()
        return replace(gang, finished=tuple(roles)) if roles else gang

    gangs = tuple(reminded(gang) for gang in snapshot.gangs)
    settled = frozenset(gang.uid for gang in gangs if demand.is_settled(gang))
    bereft, refused = found.header.bereft, found.header.refused
    return replace(snapshot, gangs=gangs, settled=settled, bereft=bereft, refused=refused)
