"""Volumes of claims: each for one claim, as a Reservation says, before a gang begins; none deleted.

A claim or a volume counts as Tutti's if it has written it; what others write is judged nowhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .audit import AuditEntry
from .bindings import Begun, bound_in
from .claim_views import Volume, VolumeClaim
from .findings import Finding, Findings, Promise
from .replay import Step
from .standpoint import Standpoint
from .views import Key, Node, Pod, Reservation

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"


@dataclass(slots=True)
class _Books:
    """What is known of claims, volumes, and what Reservations say of them or ever said."""

    claims: dict[Key, VolumeClaim] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    holders: dict[str, set[Key]] = field(default_factory=dict)  # claims by the volume they name
    pods: dict[str, Pod] = field(default_factory=dict)  # that name claims
    nodes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    reservations: dict[str, Reservation] = field(default_factory=dict)
    nodes_said: set[tuple[str, str]] = field(default_factory=set)  # by uid of the claim
    volumes_said: set[tuple[str, str]] = field(default_factory=set)
    begun: Begun = field(default_factory=Begun)

    def take(self, step: Step) -> None:
        """Apply one step."""
        self.begun.take(step)
        self._forget(step.before)
        match step.after:
            case VolumeClaim() as claim:
                self.claims[claim.key] = claim
                if claim.volume:
                    self.holders.setdefault(claim.volume, set()).add(claim.key)
            case Volume() as volume:
                self.volumes[volume.key.name] = volume
            case Pod() as pod if pod.volume_claims:
                self.pods[pod.uid] = pod
            case Node() as node:
                self.nodes[node.key.name] = node.labels
            case Reservation() as reservation:
                self.reservations[reservation.uid] = reservation
                for promise in reservation.volumes:
                    self.nodes_said.add((promise.uid, promise.node))
                    self.volumes_said.add((promise.uid, promise.volume))

    def _forget(self, before: object) -> None:
        match before:
            case VolumeClaim() as claim:
                self.claims.pop(claim.key, None)
                self.holders.get(claim.volume, set()).discard(claim.key)
            case Volume() as volume:
                self.volumes.pop(volume.key.name, None)
            case Pod() as pod:
                self.pods.pop(pod.uid, None)
            case Node() as node:
                self.nodes.pop(node.key.name, None)
            case Reservation() as reservation:
                self.reservations.pop(reservation.uid, None)

    def claims_of(self, pod: Pod) -> Iterator[tuple[str, VolumeClaim | None]]:
        """The claims of a pod by name; None for one that does not exist."""
        for name in pod.volume_claims:
            yield name, self.claims.get(Key(pod.key.namespace, name))


def judge_volumes(
    steps: Sequence[Step], entries: Sequence[AuditEntry], standpoint: Standpoint
) -> Findings:
    """Check what Tutti writes, and each binding, at its revision; and what is left in the end."""
    own = [
        entry
        for entry in entries
        if entry.user == standpoint.operator_user
        and entry.resource in (CLAIMS, VOLUMES)
        and entry.is_write
        and entry.succeeded
    ]
    violations = [
        Finding(Promise.VOLUMES, str(entry.key), f"{entry}: nothing of volumes is ever deleted")
        for entry in own
        if "delete" in entry.verb
    ]
    written = {(entry.resource, entry.namespace, entry.name) for entry in own}
    books = _Books()
    unproved: list[Finding] = []
    judged = 0
    for step in steps:
        books.take(step)
        key, faults = _faults(step, books, written, standpoint)
        if key is None or not (standpoint.looks_at(key.namespace) or not key.namespace):
            continue
        judged += 1
        for fault in faults:
            finding = Finding(Promise.VOLUMES, str(key), fault, step.revision)
            (violations if step.gap is None else unproved).append(finding)
    left = [
        Finding(Promise.VOLUMES, str(claim.key), f"claim {claim.key} {why}")
        for claim in sorted(books.claims.values(), key=lambda claim: claim.key)
        if (CLAIMS, *claim.key) in written and standpoint.looks_at(claim.key.namespace)
        for why in _left(claim, books)
    ]
    return Findings(tuple(violations), unproved=tuple(unproved), unfinished=(*left,), judged=judged)


def _faults(
    step: Step, books: _Books, written: set[tuple[str, str, str]], standpoint: Standpoint
) -> tuple[Key | None, list[str]]:
    """Whose step it is if it is judged, and what is wrong with it."""
    now, before = step.after, step.before
    if step.initial:
        return None, []
    match now:
        case Volume() if (VOLUMES, "", now.key.name) in written:
            old = before.claim_uid if isinstance(before, Volume) else ""
            return now.key, [*_gift_faults(now, old, books)] if now.claim_uid != old else []
        case VolumeClaim() if {(CLAIMS, *now.key), (VOLUMES, "", now.volume)} & written:
            old_claim = before if isinstance(before, VolumeClaim) else None
            return now.key, [*_claim_faults(now, old_claim, books)]
    pod = bound_in(step, standpoint)
    if pod is None or pod.is_handed:
        return None, []
    faults = [*_binding_faults(pod, books)]
    return (pod.key if pod.volume_claims or faults else None), faults


def _gift_faults(volume: Volume, old: str, books: _Books) -> Iterator[str]:
    """What is wrong with a volume that Tutti wrote and that is for another claim than before."""
    name = volume.key.name
    if not volume.claim_uid:
        return  # the PV controller takes back what it could not bind
    if old:
        yield f"volume {name} was for claim {old}, and is given to {'/'.join(volume.claim)}"
    if (volume.claim_uid, name) not in books.volumes_said:
        yield f"volume {name} is given to claim {'/'.join(volume.claim)}, as no Reservation said"


def _claim_faults(now: VolumeClaim, before: VolumeClaim | None, books: _Books) -> Iterator[str]:
    """What is wrong with a claim that Tutti wrote, or whose volume it wrote."""
    was_selected, had = (before.selected_node, before.volume) if before else ("", "")
    is_said = (now.uid, now.selected_node) in books.nodes_said
    if now.selected_node not in ("", was_selected) and not is_said:
        yield f"claim {now.key} is to be provisioned for {now.selected_node}, as nobody said"
    others = books.holders.get(now.volume, set()) - {now.key}
    if now.volume not in ("", had) and others:
        names = ", ".join(map(str, sorted(others)))
        yield f"claim {now.key} gets volume {now.volume}, which {names} has"


def _binding_faults(pod: Pod, books: _Books) -> Iterator[str]:
    for name, claim in books.claims_of(pod):
        if claim is None or not claim.is_bound:
            state = "does not exist" if claim is None else "has no volume"
            yield f"pod {pod.key} is bound to {pod.node}, but its claim {name} {state}"
            continue
        volume = books.volumes.get(claim.volume)
        if volume is not None and not volume.is_reached_from(books.nodes.get(pod.node, {})):
            yield f"pod {pod.key} is bound to {pod.node}, which does not reach {claim.volume}"
    if not (books.pods and books.begun.is_first(pod)):
        return
    named = {
        uid
        for reservation in books.reservations.values()
        if reservation.gang == pod.gang
        for uid in reservation.named
    }
    for uid in sorted(named - {pod.uid}):
        other = books.pods.get(uid)
        if other is None or not other.is_waiting:
            continue
        for name, claim in books.claims_of(other):
            if claim is not None and not (claim.is_bound or claim.terminating):
                yield (
                    f"pod {pod.key} is the first of its gang to be bound, and claim {name} "
                    f"of {other.key} has no volume yet"
                )


def _left(claim: VolumeClaim, books: _Books) -> Iterator[str]:
    """Whether a claim is still to be provisioned in the end, and no Reservation holds it."""
    if not claim.selected_node or claim.volume or claim.terminating:
        return
    promises = (p for reservation in books.reservations.values() for p in reservation.volumes)
    if claim.uid not in {promise.uid for promise in promises}:
        yield f"is still to be provisioned for {claim.selected_node}"
