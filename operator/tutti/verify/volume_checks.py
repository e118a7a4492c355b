"""The volumes of a plan checked: each claim gets one that its pods can use, and no two the same.

It shares no code with what chooses volumes. Source: kube-scheduler's VolumeBinding.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    wanted: dict[str, list[Node | None]] = {}  # the nodes of its pods
    for assignment in assignments:
        member = members.get(assignment.uid)
        for name in member.unbound_claims if member is not None else ():
            wanted.setdefault(name, []).append(index.nodes.get(assignment.node))
    for name in sorted(wanted.keys() ^ by_claim.keys()):
        why = "it gets no volume" if name in wanted else "no pod waits for its volume"
        yield f"claim {name}: {why}"
    for name in sorted(wanted.keys() & by_claim.keys()):
        choice, key = by_claim[name], ClaimKey(gang.key.namespace, name)
        claim = index.claims.get(key)
        nodes = {node.name: node for node in wanted[name] if node is not None}
        is_right = (
            claim is not None
            and claim.uid == choice.uid
            and None not in wanted[name]
            and (choice.node in nodes or _is_shared(claim, gang, index))
        )
        if claim is None or not is_right:
            yield f"claim {name}: its volume is for another claim or node"
        elif choice.volume and taken.get(choice.volume, choice.uid) != choice.uid:
            yield f"claim {name}: another claim gets volume {choice.volume}"
        else:
            faults_by_node = _node_faults(claim, choice, nodes.values(), index)
            yield from (f"claim {name}: {why}" for why in faults_by_node)
        if choice.volume:
            taken[choice.volume] = choice.uid


def _node_faults(
    claim: Claim, choice: VolumeChoice, nodes: Iterable[Node], index: SnapshotLookup
) -> Iterator[str]:
    """One sentence for each node on which the pod of a claim cannot use its volume."""
    volume = index.volumes.get(choice.volume)
    for node in nodes:
        if not choice.volume:
            if not _can_be_made(claim, index.storage, node):
                yield f"no volume can be provisioned on {node.name}"
        elif volume is None or not _will_do(claim, volume, dict(node.labels)):
            yield f"volume {choice.volume} will not do on {node.name}"


def _is_shared(claim: Claim, gang: Gang, index: SnapshotLookup) -> bool:
    """Whether other gangs share a claim: its volume may be for the node of a pod of theirs."""
    return not claim.for_one_pod and any(
        claim.key.name in member.unbound_claims
        for other in index.gangs.values()
        if other.key != gang.key and other.key.namespace == claim.key.namespace
        for member in other.members
    )


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
