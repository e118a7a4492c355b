"""The volumes of a plan checked: each claim gets one that its pod can use, and no two the same.

It shares no code with what chooses volumes. Source: kube-scheduler's VolumeBinding.
"""

from collections.abc import Iterator, Mapping, Sequence

from ..filters.node_rules import label_holds
from ..model.cluster import Gang, Node, Snapshot
from ..model.decisions import Assignment
from ..model.volumes import Claim, ClaimKey, Reach, Storage, StorageClass, Volume, VolumeChoice
from .lookup import SnapshotLookup


def chosen_before(snapshot: Snapshot) -> dict[str, str]:
    """The volumes that standing Reservations have chosen, with the uids of their claims."""
    return {
        choice.volume: choice.uid
        for reservation in snapshot.reservations
        for choice in reservation.volumes
        if choice.volume
    }


def faults(
    assignments: Sequence[Assignment],
    choices: Sequence[VolumeChoice],
    gang: Gang,
    index: SnapshotLookup,
    taken: dict[str, str],
) -> Iterator[str]:
    """One sentence for each fault of these choices; adds their volumes to ``taken``.

    A claim may keep the volume that the Reservation of a pod that is gone has chosen for it.
    """
    members = index.members(gang.key)
    by_claim = {choice.claim: choice for choice in choices}
    if len(by_claim) < len(choices):
        yield "a claim gets two volumes"
    wanted = {
        name: (member, assignment.node)
        for assignment in assignments
        if (member := members.get(assignment.uid)) is not None
        for name in member.unbound_claims
    }
    for name in sorted(wanted.keys() ^ by_claim.keys()):
        why = "it gets no volume" if name in wanted else "no pod waits for its volume"
        yield f"claim {name}: {why}"
    for name in sorted(wanted.keys() & by_claim.keys()):
        (member, at), choice = wanted[name], by_claim[name]
        key = ClaimKey(member.key.namespace, name)
        claim, node = index.claims.get(key), index.nodes.get(at)
        if claim is None or node is None or (claim.uid, choice.node) != (choice.uid, at):
            yield f"claim {name}: its volume is for another claim or node"
        elif choice.volume:
            volume = index.volumes.get(choice.volume)
            if taken.get(choice.volume, choice.uid) != choice.uid:
                yield f"claim {name}: another claim gets volume {choice.volume}"
            elif volume is None or not _will_do(claim, volume, dict(node.labels)):
                yield f"claim {name}: volume {choice.volume} will not do on {at}"
            taken[choice.volume] = choice.uid
        elif not _can_be_made(claim, index.storage, node):
            yield f"claim {name}: no volume can be provisioned on {at}"


def _will_do(claim: Claim, volume: Volume, labels: Mapping[str, str]) -> bool:
    request, offer, ref = claim.request, volume.offer, volume.claim
    if request is None or offer is None:
        return False
    if not all(_is_in(reach, labels) for reach in volume.reach):
        return False
    if offer.size < request.size or offer.is_block != request.is_block:
        return False
    if ref is not None:
        return ref.key == claim.key and ref.uid in ("", claim.uid)
    own = dict(offer.labels)
    return (
        offer.storage_class == claim.storage_class
        and offer.attributes_class == request.attributes_class
        and not set(request.modes) - set(offer.modes)
        and request.selector is not None
        and all(label_holds(requirement, own) for requirement in request.selector)
    )


def _can_be_made(claim: Claim, storage: Storage, node: Node) -> bool:
    classes = [c for c in storage.classes if c.name == claim.storage_class]
    if claim.request is None or not classes or not classes[0].provisions:
        return False
    if claim.selected_node not in (None, node.name):
        return False
    labels = dict(node.labels)
    topologies = classes[0].topologies
    if topologies is not None and not _is_in(topologies, labels):
        return False
    return not _has_capacities(classes[0], storage) or any(
        capacity.storage_class == claim.storage_class
        and capacity.largest >= claim.request.size
        and _is_in((capacity.way,), labels)
        for capacity in storage.capacities
    )


def _has_capacities(storage_class: StorageClass, storage: Storage) -> bool:
    return any(
        driver.has_capacity and driver.name == storage_class.provisioner
        for driver in storage.drivers
    )


def _is_in(reach: Reach, labels: Mapping[str, str]) -> bool:
    return any(all(label_holds(requirement, labels) for requirement in way) for way in reach)
