"""The judge: says afterwards whether the promises of the design were kept.

It imports nothing of Tutti, so that one error cannot hide in both. It reads the API server's
audit log (who wrote what) and its own watch (what happened in which order).
Main value: ``judge(witness.history(), audit=..., operator_user=...)`` gives a ``Verdict``.
"""

from .audit import AuditEntry, lines_from, read_audit
from .findings import Finding, Promise, Verdict, Violation, assert_clean
from .history import Change, Event, Gap, History, Kind
from .judging import judge, weigh
from .standpoint import Standpoint
from .witness import Witness, WitnessError

__all__ = [
    "AuditEntry",
    "Change",
    "Event",
    "Finding",
    "Gap",
    "History",
    "Kind",
    "Promise",
    "Standpoint",
    "Verdict",
    "Violation",
    "Witness",
    "WitnessError",
    "assert_clean",
    "judge",
    "lines_from",
    "read_audit",
    "weigh",
]
