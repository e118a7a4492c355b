"""Which rights the operator has used, and which it was denied, by the API servers' audit logs.

A denial fails the test in which it happened: the judge says so. That nobody uses a right is
said of a whole run only: `conftest` asks at its end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from . import operator_process
from .judge.audit import entry_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

ACCOUNTS = f"system:serviceaccount:{operator_process.NAMESPACE}:"
_MARK = f'"username":"{ACCOUNTS}'.encode()
Manifest = dict[str, Any]


class Right(NamedTuple):
    """What a rule of a role grants, and a request needs."""

    group: str
    resource: str  # with its subresource: ``pods/binding``
    verb: str

    def __str__(self) -> str:
        """Say it as kubectl would."""
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"


# Rights that the API server asks for within another request, without a line in the audit log.
IMPLIED = {
    Right("resource.k8s.io", "resourceclaims/status", "patch"): Right(
        "resource.k8s.io", "resourceclaims/binding", "patch"
    )
}


class Ledger:
    """What the accounts of the operator have done in all control planes of a run."""

    def __init__(self) -> None:
        self.used: set[Right] = set()
        self.denied: set[Right] = set()

    def read(self, log: Path) -> None:
        """Take in an audit log, if there is one; a last line that is cut off is left out."""
        if not log.is_file():
            return
        with log.open("rb") as lines:
            for line in lines:
                if _MARK in line and line.endswith(b"\n"):
                    self._take(json.loads(line))

    def dump(self) -> dict[str, list[list[str]]]:
        """All of it in plain values, to be sent to another process."""
        return {
            "used": [[*right] for right in self.used],
            "denied": [[*right] for right in self.denied],
        }

    def load(self, sent: Mapping[str, Iterable[Iterable[str]]]) -> None:
        """Take in what another process has sent."""
        self.used.update(Right(*right) for right in sent["used"])
        self.denied.update(Right(*right) for right in sent["denied"])

    def _take(self, raw: Mapping[str, Any]) -> None:
        entry = entry_of(raw)
        right = Right(entry.group, entry.resource, entry.verb)
        if entry.denied:
            self.denied.add(right)
        elif raw.get("objectRef"):  # everybody may look at what kinds there are
            self.used.add(right)
            if right in IMPLIED:
                self.used.add(IMPLIED[right])


def granted(parts: Collection[Manifest]) -> frozenset[Right]:
    """What these objects grant to a ServiceAccount among them."""
    roles = {(part["kind"], part["metadata"]["name"]): part for part in parts}
    accounts = {part["metadata"]["name"] for part in parts if part["kind"] == "ServiceAccount"}
    bound = [
        part["roleRef"]
        for part in parts
        if accounts & {subject["name"] for subject in part.get("subjects", ())}
    ]
    return frozenset(
        right for ref in bound for right in _rights(roles[ref["kind"], ref["name"]]["rules"])
    )


def _rights(rules: Iterable[Mapping[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(group, resource, verb)


def faults(ledger: Ledger, may: Collection[Right], *, is_whole: bool) -> list[str]:
    """What is wrong, a sentence each; of a part of a run nobody can say what it never uses."""
    rights_and_faults = [
        (ledger.denied, "was denied"),
        (ledger.used - set(may), "is not granted by the chart"),
    ]
    if is_whole:
        rights_and_faults.append((set(may) - ledger.used, "is granted and never used"))
    return [f"{right} {what}" for rights, what in rights_and_faults for right in sorted(rights)]
