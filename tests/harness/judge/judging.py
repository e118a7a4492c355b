"""From a history and an audit log to a verdict.

``weigh`` is a pure function, tested with histories written by hand; ``judge`` reads the log first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from . import audit as audits
from .audit import AuditEntry
from .capacity import judge_capacity
from .devices import judge_devices
from .domains import judge_domains
from .ending import judge_ends
from .evicting import judge_evicting
from .findings import Verdict
from .hands_off import judge_hands
from .history import History
from .limits import judge_limits
from .protecting import judge_protections
from .replay import replay
from .reserving import judge_reserving
from .standpoint import Standpoint
from .volumes import judge_volumes
from .wholeness import judge_wholeness


def judge(
    history: History,
    *,
    audit: Path,
    operator_user: str,
    scheduler_name: str = "tutti",
    namespaces: Collection[str] | None = None,
    seen: Mapping[str, int] | None = None,
) -> Verdict:
    """Judge what happened while the witness watched, in all or in these namespaces.

    P8 is judged in all namespaces: hands off means everywhere. ``seen`` is for nodes that
    others bind to as well (see Standpoint): an over-commit by what was not seen is a collision.
    """
    standpoint = Standpoint(
        operator_user=operator_user,
        scheduler_name=scheduler_name,
        namespaces=None if namespaces is None else frozenset(namespaces),
        seen=seen,
    )
    return weigh(history, audits.read_audit(audit), standpoint)


def weigh(history: History, entries: Sequence[AuditEntry], standpoint: Standpoint) -> Verdict:
    """Judge every promise over one replay; findings come in the order of revisions."""
    heard = audits.between(entries, history.began, history.ended)
    standpoint = replace(
        standpoint,
        binders=audits.binders(heard),
        evictions=audits.evictions(heard),
        hand_overs=audits.hand_overs(heard),
    )
    steps = replay(history)
    whole = judge_wholeness(steps, heard, standpoint)
    room = judge_capacity(steps, standpoint)
    reserved = judge_reserving(steps, heard, standpoint)
    limits = judge_limits(steps, heard, standpoint)
    hands = judge_hands(steps, heard, standpoint)
    ends = judge_ends(steps, standpoint)
    evicted = judge_evicting(steps, standpoint)
    kept = judge_protections(steps, heard, standpoint)
    domains = judge_domains(steps, standpoint)
    devices = judge_devices(steps, heard, standpoint)
    volumes = judge_volumes(steps, heard, standpoint)
    of_pods = (whole, room, reserved, limits, hands, ends, evicted, kept)
    all_findings = (*of_pods, domains, devices, volumes)
    return Verdict(
        violations=tuple(
            sorted(
                (finding for findings in all_findings for finding in findings.violations),
                key=lambda finding: (finding.revision is None, finding.revision or 0),
            )
        ),
        collisions=room.collisions,
        broken=whole.broken,
        unfinished=tuple(finding for findings in all_findings for finding in findings.unfinished),
        unproved=tuple(finding for findings in all_findings for finding in findings.unproved),
        bindings=room.judged,
        gangs=whole.judged,
        writes=hands.judged,
        charges=limits.judged,
        ends=ends.judged,
        protections=kept.judged,
        domains=domains.judged,
        devices=devices.judged,
        volumes=volumes.judged,
    )
