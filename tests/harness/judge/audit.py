"""The API server's audit log: who wrote what, and what was denied.

A Binding answers a bare Status, so the log gives no order of bindings: that is the watch's part.
Main value: ``read_audit``, which keeps writes and denials and skips the mass of reads unparsed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from .views import Key

READS = frozenset({"get", "list", "watch"})
_READ_MARKS = tuple(f'"verb":"{verb}"'.encode() for verb in sorted(READS))
_DENIED_MARK = b'"code":403'


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One finished request."""

    user: str
    verb: str
    resource: str  # with its subresource: ``pods/binding``
    group: str
    namespace: str
    name: str
    code: int
    at: datetime | None
    uid: str = ""  # of what was written to, where the request or the log names it
    denied: bool = False  # refused by authorization, not by admission
    answered: datetime | None = None
    fields: frozenset[str] = frozenset()  # of the request, as far as the log has its body

    @property
    def key(self) -> Key:
        """Whom the request was about."""
        return Key(self.namespace, self.name)

    @property
    def is_write(self) -> bool:
        """Whether the verb changes something."""
        return self.verb not in READS

    @property
    def succeeded(self) -> bool:
        """Whether the server carried it out."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        """Say the request as one would type it."""
        where = f"{self.resource}{'.' + self.group if self.group else ''}"
        return f"{self.verb} {where} {self.key} ({self.code})"


def read_audit(path: Path) -> tuple[AuditEntry, ...]:
    """Read the writes and the denials of a log; a last line still being written is left out."""
    with path.open("rb") as lines:
        return tuple(_entries(lines))


def lines_from(path: Path, offset: int) -> bytes:
    """What a log says from this byte on; a line that begins before it is left out."""
    with path.open("rb") as log:
        if offset:
            log.seek(offset - 1)
            log.readline()
        return log.read()


def between(
    entries: Iterable[AuditEntry], began: datetime | None, ended: datetime | None
) -> tuple[AuditEntry, ...]:
    """Keep the requests that arrived in this time."""
    return tuple(
        entry
        for entry in entries
        if entry.at is None
        or ((began is None or entry.at >= began) and (ended is None or entry.at <= ended))
    )


def binders(entries: Sequence[AuditEntry]) -> Mapping[Key, tuple[AuditEntry, ...]]:
    """Find the bindings that were carried out, by pod."""
    return _created(entries, "pods/binding", "bindings")


def evictions(entries: Sequence[AuditEntry]) -> Mapping[Key, tuple[AuditEntry, ...]]:
    """Find the evictions that were carried out, by pod."""
    return _created(entries, "pods/eviction")


def hand_overs(entries: Sequence[AuditEntry]) -> Mapping[Key, tuple[AuditEntry, ...]]:
    """Find the patches that removed scheduling gates, by pod."""
    by_pod: dict[Key, list[AuditEntry]] = {}
    for entry in entries:
        is_change = entry.resource == "pods" and entry.verb in ("patch", "update")
        if is_change and entry.succeeded and "spec.schedulingGates" in entry.fields:
            by_pod.setdefault(entry.key, []).append(entry)
    return {key: tuple(of_pod) for key, of_pod in by_pod.items()}


class Deletions:
    """Who deleted the objects of a resource, each deletion given once, in the order of the log."""

    def __init__(self, entries: Iterable[AuditEntry], resource: str) -> None:
        self._by_key: dict[Key, list[AuditEntry]] = {}
        for entry in entries:
            if entry.resource == resource and "delete" in entry.verb and entry.succeeded:
                self._by_key.setdefault(entry.key, []).append(entry)

    def next_of(self, key: Key) -> AuditEntry | None:
        """Give the next deletion by name, else its namespace's; None where the log is silent."""
        by_name = self._by_key.get(key)
        if by_name:
            return by_name.pop(0)
        of_all = self._by_key.get(Key(key.namespace, ""))
        return of_all[0] if of_all else None


def _created(
    entries: Sequence[AuditEntry], *resources: str
) -> Mapping[Key, tuple[AuditEntry, ...]]:
    by_object: dict[Key, list[AuditEntry]] = {}
    for entry in entries:
        if entry.resource in resources and entry.verb == "create" and entry.succeeded:
            by_object.setdefault(entry.key, []).append(entry)
    return {key: tuple(of_pod) for key, of_pod in by_object.items()}


def _entries(lines: Iterable[bytes]) -> Iterator[AuditEntry]:
    audit_ids: set[str] = set()
    for line in lines:
        if _DENIED_MARK not in line and any(mark in line for mark in _READ_MARKS):
            continue
        if not line.endswith(b"\n"):
            continue
        raw = json.loads(line)
        if raw.get("stage") == "RequestReceived" or raw.get("auditID") in audit_ids:
            continue
        audit_ids.add(raw.get("auditID") or f"line {len(audit_ids)}")
        if raw.get("objectRef") or (raw.get("responseStatus") or {}).get("code") == 403:
            yield entry_of(raw)


def _fields(body: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a body, two levels of them: ``spec.weight``; ``spec`` where it is empty."""
    for name, value in body.items():
        if isinstance(value, Mapping) and value:
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name


def entry_of(raw: Mapping[str, Any]) -> AuditEntry:
    """Read one line of the log."""
    target = raw.get("objectRef") or {}
    subresource = target.get("subresource")
    resource = target.get("resource") or raw.get("requestURI", "")
    code = int((raw.get("responseStatus") or {}).get("code") or 0)
    decision = (raw.get("annotations") or {}).get("authorization.k8s.io/decision", "forbid")
    body = raw.get("requestObject") or {}
    metadata = body.get("metadata") or {}
    conditions = (body.get("deleteOptions") or {}).get("preconditions") or {}  # of an eviction
    stamp = raw.get("requestReceivedTimestamp")
    end = raw.get("stageTimestamp")
    is_dry = "dryRun=" in raw.get("requestURI", "")
    return AuditEntry(
        user=(raw.get("impersonatedUser") or raw.get("user") or {}).get("username", ""),
        verb="get" if is_dry else raw.get("verb", ""),  # a dry run changes nothing
        resource=f"{resource}/{subresource}" if subresource else resource,
        group=target.get("apiGroup", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name") or metadata.get("name", ""),
        code=code,
        at=datetime.fromisoformat(stamp) if stamp else None,
        uid=metadata.get("uid") or conditions.get("uid") or target.get("uid") or "",
        denied=code == 403 and decision == "forbid",
        answered=datetime.fromisoformat(end) if end else None,
        fields=frozenset(_fields(body)),
    )
