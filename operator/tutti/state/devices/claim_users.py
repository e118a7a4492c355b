"""The claims by name, our pods that name them, and the Reservations that hold devices for them."""

from collections.abc import Collection, Iterator, Sequence

from ...model.cluster import Member, PodReservation, Reservation
from ...model.devices.claims import ClaimName, DeviceClaim, PodClaim
from ...model.keys import Uid


class ClaimUsers:
    """Claims and pods, and which pods changed since they were last taken."""

    def __init__(self) -> None:
        self._claims: dict[ClaimName, DeviceClaim] = {}
        self._pods: dict[Uid, Member] = {}  # of ours that name claims and are not over
        self._by_claim: dict[ClaimName, set[Uid]] = {}
        self._reserved: dict[Uid, PodReservation] = {}
        self._changed: set[Uid] = set()
        self.has_any = False  # whether a pod of ours has ever named a claim

    def claim_changed(self, old: DeviceClaim | None, new: DeviceClaim | None) -> None:
        """Take in a claim; of two of one name, the later counts."""
        if old is not None and self._claims.get(old.key) == old:
            del self._claims[old.key]
        if new is not None:
            self._claims[new.key] = new
        for claim in (old, new):
            if claim is not None:
                self._changed |= self._by_claim.get(claim.key, set())

    def pod_changed(self, uid: Uid, pod: Member | None) -> bool:
        """Take in a pod; returns whether that matters for devices."""
        new = pod if pod is not None and pod.device_claims and not pod.is_over else None
        old = self._pods.get(uid)
        if old is None and new is None:
            return False
        names = {name for member in (old, new) if member is not None for name in _names(member)}
        if new is None:
            del self._pods[uid]
        else:
            self._pods[uid] = new
            self.has_any = True
        is_same = old is not None and new is not None and _use(old) == _use(new)
        if is_same:
            return False
        for name in names:
            users = self._by_claim.setdefault(name, set())
            self._changed |= users
            if new is not None and name in _names(new):
                users.add(uid)
            else:
                users.discard(uid)
            if not users:
                del self._by_claim[name]
        self._changed.add(uid)
        return True

    def reservation_changed(self, old: Reservation | None, new: Reservation | None) -> bool:
        """Take in a Reservation; returns whether a pod that names claims is in it, or was."""
        for entry in () if old is None else old.entries:
            self._reserved.pop(entry.uid, None)
        for entry in () if new is None else new.entries:
            self._reserved[entry.uid] = entry
        entries = [entry for held in (old, new) if held is not None for entry in held.entries]
        touched = {entry.uid for entry in entries if entry.uid in self._pods}
        self._changed |= touched
        return bool(touched)

    def take_changed(self) -> Collection[Uid]:
        """The pods that changed, or whose claims or Reservations did, since the last call."""
        changed = {uid for uid in self._changed if uid in self._pods}
        self._changed = set()
        return changed

    def pods(self) -> Collection[Uid]:
        """Our pods that name claims."""
        return self._pods.keys()

    def named(self, name: ClaimName) -> DeviceClaim | None:
        """The claim of this name."""
        return self._claims.get(name)

    def claim(self, namespace: str, pod_claim: PodClaim) -> DeviceClaim | None:
        """The claim that a pod names; None if it does not exist."""
        return self._claims.get(ClaimName(namespace, pod_claim.claim or ""))

    def reserved(self, uid: Uid) -> PodReservation | None:
        """The entry of a Reservation that has this pod."""
        return self._reserved.get(uid)

    def waiting(self, name: ClaimName) -> Sequence[Member]:
        """Our pods that name this claim and have no node, those without gates first, by key."""
        users = (self._pods[user] for user in self._by_claim.get(name, ()))
        waiting = (user for user in users if user.may_get_a_node)
        return sorted(waiting, key=lambda user: (user.gated, user.key))

    def waiting_claims(self) -> Iterator[tuple[Member, DeviceClaim]]:
        """The claims of our pods that have neither a node nor a Reservation, each with its pod.

        Pods that other controllers hold back by gates come last, and the oldest first.
        """
        waiting = (
            pod
            for uid, pod in self._pods.items()
            if pod.may_get_a_node and uid not in self._reserved
        )
        for pod in sorted(waiting, key=lambda pod: (pod.gated, pod.created, pod.key)):
            for pod_claim in pod.device_claims:
                if (claim := self.claim(pod.key.namespace, pod_claim)) is not None:
                    yield pod, claim

    def orphaned(self) -> Iterator[tuple[DeviceClaim, Sequence[Member]]]:
        """Allocated claims whose only consumers are waiting pods of ours without a Reservation."""
        for name in self._by_claim:
            claim = self._claims.get(name)
            if claim is None or not claim.consumers:
                continue
            unreserved = [user for user in self.waiting(name) if user.uid not in self._reserved]
            if {consumer.uid for consumer in claim.consumers} <= {user.uid for user in unreserved}:
                yield claim, unreserved


def _names(pod: Member) -> Collection[ClaimName]:
    return {ClaimName(pod.key.namespace, claim.claim or "") for claim in pod.device_claims}


def _use(pod: Member) -> tuple[object, ...]:
    """What of a pod matters for devices."""
    return pod.device_claims, pod.node, pod.may_get_a_node, pod.gated
