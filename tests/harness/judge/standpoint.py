"""Whose doings are judged: the names by which Tutti's are told from everybody else's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .audit import AuditEntry
from .views import Key, Pod


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Tutti's user, its scheduler name, and the namespaces that matter (None: all).

    Where others bind to the nodes too, ``seen`` has, by the uid of each pod that Tutti bound, up to
    which revision Tutti had seen bound pods when it sent the binding. None: nobody else binds.
    """

    operator_user: str
    scheduler_name: str = "tutti"
    namespaces: frozenset[str] | None = None
    seen: Mapping[str, int] | None = None
    binders: Mapping[Key, Sequence[AuditEntry]] = field(default_factory=dict)
    evictions: Mapping[Key, Sequence[AuditEntry]] = field(default_factory=dict)
    hand_overs: Mapping[Key, Sequence[AuditEntry]] = field(default_factory=dict)

    def is_ours(self, pod: Pod) -> bool:
        """Whether the pod names Tutti's scheduler, or is one that Tutti hands over."""
        return pod.scheduler == self.scheduler_name or pod.is_handed

    def looks_at(self, namespace: str) -> bool:
        """Whether findings in this namespace are wanted."""
        return self.namespaces is None or namespace in self.namespaces

    def binder(self, pod: Pod) -> str:
        """Say who bound the pod; where the log is silent, the scheduler that the pod names.

        A pod that is handed over counts as bound by the user that removed its gate.
        """
        if entry := self.placing(pod):
            return entry.user
        return self.operator_user if self.is_ours(pod) else f"scheduler {pod.scheduler}"

    def placing(self, pod: Pod) -> AuditEntry | None:
        """Give the request that bound the pod, or handed it over; None where the log is silent."""
        requests = [
            entry
            for entry in self._placers(pod).get(pod.key, ())
            if not entry.uid or entry.uid == pod.uid
        ]
        return requests[-1] if requests else None

    def had_not_seen(self, ours: Iterable[str], other: Pod, arrival: int) -> bool:
        """Whether Tutti had not seen another's pod on its node when it sent the first binding.

        ``ours`` are the uids of the pods that it bound. ``arrival`` is the revision at which the
        other pod got its node.
        """
        if self.seen is None or self.bound_by_us(other):
            return False
        first = min((self.seen[uid] for uid in ours if uid in self.seen), default=None)
        if first is None:
            raise LookupError(f"the operator's log says of none of {[*ours]} that it was bound")
        return arrival > first

    def _placers(self, pod: Pod) -> Mapping[Key, Sequence[AuditEntry]]:
        return self.hand_overs if pod.is_handed else self.binders

    def bound_by_us(self, pod: Pod) -> bool:
        """Whether Tutti bound the pod."""
        return self.binder(pod) == self.operator_user

    def evicted_by_us(self, pod: Pod) -> bool:
        """Whether Tutti evicted the pod."""
        return any(
            entry.user == self.operator_user and (not entry.uid or entry.uid == pod.uid)
            for entry in self.evictions.get(pod.key, ())
        )
