"""Makes Snapshots from files: dumps, ``kubectl get`` output or manifests.

The objects go through the cluster state, like the objects of watches, so that both are read in the
same way.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from ..gang import demand
from ..kube import kinds
from ..kube.list_watch import Item, ObjectList
from ..model.cluster import ForeignPod, Gang, Member, Snapshot
from ..model.devices.claims import ClaimName, DeviceClaim
from ..model.keys import Uid
from ..model.queues import Preemption
from ..state.cluster_state import ClusterState
from ..state.store import Store
from . import Objects
from .header import gang_text

V = TypeVar("V")


def snapshot_of(objects: Objects) -> Snapshot:
    """The Snapshot at the time that the files were taken."""
    has_devices = any(objects.items.get(kind) for kind in kinds.DEVICES)
    binds_volumes = objects.header is None or objects.header.setup.binds_volumes
    state = ClusterState(lambda: None, reads_devices=has_devices, binds_volumes=binds_volumes)
    bound: list[tuple[str, Member | ForeignPod]] = [(pod.uid, pod) for pod in objects.occupants]
    bound += [(member.uid, member) for member in objects.members if member.node is not None]
    pending = [(member.uid, member) for member in objects.members if member.node is None]
    _fill(state.pods.pending, pending)
    _fill(state.pods.bound, bound)
    for kind, items in objects.items.items():
        if kind is kinds.JOB and not (items or _has_all_jobs(objects)):
            continue  # such files do not say that there are none
        store = state.stores[kind]
        store.replace(ObjectList(items), 1, store.began())
    for kind in kinds.DEVICES:
        if has_devices and kind not in objects.items:
            _fill(state.stores[kind], ())
    if objects.header is None:
        _add_claims(state)
    return _reminded(state.snapshot(objects.taken_at), objects)


def _has_all_jobs(objects: Objects) -> bool:
    """Whether the files have a dump of Tutti with preemption, which reads Jobs."""
    header = objects.header
    return header is not None and header.setup.policy.preemption is not Preemption.OFF


def _add_claims(state: ClusterState) -> None:
    """Add the claims that Tutti would make for extended resources of pods."""
    for missing in [*state.devices.missing_claims()]:
        member = missing.member
        uid = Uid(f"claim-of-{member.uid}")
        key = ClaimName(member.key.namespace, missing.name)
        requests = missing.plan.requests(missing.classes)
        state.devices.claims.put(Item(uid, 2, DeviceClaim(key, uid, requests, owner=member.uid)))


def _fill(store: Store[V], values: Iterable[tuple[str, V]]) -> None:
    items = (Item(Uid(uid), 1, value) for uid, value in values)
    store.replace(ObjectList(items), 1, store.began())


def _reminded(snapshot: Snapshot, objects: Objects) -> Snapshot:
    """The Snapshot with what only the operator that wrote the dump could know.

    These are finished members that are gone, lost Reservations, refusals and protected gangs.
    """
    if objects.header is None:
        return snapshot
    finished = objects.header.finished

    def with_finished(gang: Gang) -> Gang:
        roles = finished.get(gang_text(gang.key), ()) if not gang.is_single else ()
        return replace(gang, finished=tuple(roles)) if roles else gang

    gangs = tuple(with_finished(gang) for gang in snapshot.gangs)
    settled = frozenset(gang.uid for gang in gangs if demand.is_settled(gang))
    lost_reservations, api_refusals = objects.header.lost_reservations, objects.header.api_refusals
    return replace(
        snapshot,
        gangs=gangs,
        settled=settled,
        lost_reservations=lost_reservations,
        api_refusals=api_refusals,
        protected=objects.header.protected,
    )
