"""Whose doings are judged: the names by which Tutti's are told from everybody else's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .audit import AuditEntry
from .views import Key, Pod


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Tutti's user, its scheduler name, and the namespaces that matter (None: all)."""

    operator_user: str
    scheduler_name: str = "tutti"
    namespaces: frozenset[str] | None = None
    binders: Mapping[Key, Sequence[AuditEntry]] = field(default_factory=dict)

    def is_ours(self, pod: Pod) -> bool:
        """Whether the pod names Tutti's scheduler."""
        return pod.scheduler == self.scheduler_name

    def looks_at(self, namespace: str) -> bool:
        """Whether findings in this namespace are wanted."""
        return self.namespaces is None or namespace in self.namespaces

    def binder(self, pod: Pod) -> str:
        """Say who bound the pod; where the log is silent, the scheduler that the pod names."""
        users = [
            entry.user
            for entry in self.binders.get(pod.key, ())
            if not entry.uid or entry.uid == pod.uid
        ]
        if users:
            return users[-1]
        return self.operator_user if self.is_ours(pod) else f"scheduler {pod.scheduler}"

    def bound_by_us(self, pod: Pod) -> bool:
        """Whether Tutti bound the pod."""
        return self.binder(pod) == self.operator_user
