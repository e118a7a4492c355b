"""Whose doings are judged: the names by which Tutti's are told from everybody else's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from .audit import AuditEntry
from .views import Key, Pod


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Tutti's user, its scheduler name, and the namespaces that matter (None: all).

    ``unseen_seconds`` is how long what others put on a node may be unknown to Tutti there.
    """

    operator_user: str
    scheduler_name: str = "tutti"
    namespaces: frozenset[str] | None = None
    unseen_seconds: float = 0.0
    binders: Mapping[Key, Sequence[AuditEntry]] = field(default_factory=dict)
    arrivals: Mapping[Key, Sequence[AuditEntry]] = field(default_factory=dict)
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
        users = [
            entry.user
            for entry in self._placers(pod).get(pod.key, ())
            if not entry.uid or entry.uid == pod.uid
        ]
        if users:
            return users[-1]
        return self.operator_user if self.is_ours(pod) else f"scheduler {pod.scheduler}"

    def may_not_have_seen(self, ours: Pod, other: Pod) -> bool:
        """Whether another's pod came so short before ours was bound that Tutti may not know it."""
        if not self.unseen_seconds or self.bound_by_us(other):
            return False
        came, sent = self._last(self.arrivals, other), self._last(self._placers(ours), ours)
        if came is None or came.answered is None or sent is None or sent.at is None:
            return False
        return sent.at - came.answered < timedelta(seconds=self.unseen_seconds)

    def _placers(self, pod: Pod) -> Mapping[Key, Sequence[AuditEntry]]:
        return self.hand_overs if pod.is_handed else self.binders

    def _last(self, entries: Mapping[Key, Sequence[AuditEntry]], pod: Pod) -> AuditEntry | None:
        of_pod = (
            entry for entry in entries.get(pod.key, ()) if not entry.uid or entry.uid == pod.uid
        )
        return max(of_pod, key=lambda entry: (entry.at is not None, entry.at), default=None)

    def bound_by_us(self, pod: Pod) -> bool:
        """Whether Tutti bound the pod."""
        return self.binder(pod) == self.operator_user

    def evicted_by_us(self, pod: Pod) -> bool:
        """Whether Tutti evicted the pod."""
        return any(
            entry.user == self.operator_user and (not entry.uid or entry.uid == pod.uid)
            for entry in self.evictions.get(pod.key, ())
        )
