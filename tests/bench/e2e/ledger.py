"""The API server's audit log as the clock and the account book of a round.

While a round runs, new lines are only searched for bindings. The others are parsed when it is
over, and bindings as soon as somebody asks for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_IS_BINDING = b'"subresource":"binding"'
_IS_CREATED = b'"code":201'
_ERRORS_FROM = 400
HARNESS = "admin"  # who creates pods, and ends those that have run


@dataclass(frozen=True, slots=True)
class Write:
    """One write that was carried out: by whom, to what, and when it was answered."""

    user: str
    verb: str
    resource: str  # with its subresource: "pods/binding"
    name: str
    at: float  # seconds since the epoch, by the API server's clock


class Ledger:
    """The writes since the last `mark`; `follow` must be called to see more of them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._lines: list[bytes] = []
        self._bindings: list[bytes] = []
        self._partial = b""
        self.bound = 0
        self.mark()

    def close(self) -> None:
        """Stop reading."""
        self._file.close()

    def mark(self) -> None:
        """Forget what was written so far."""
        self.follow()
        self._lines = []
        self._bindings = []
        self.bound = 0

    def follow(self) -> int:
        """Read what is new; answers how many writes that is."""
        *lines, self._partial = (self._partial + self._file.read()).split(b"\n")
        self._lines += lines
        bindings = [line for line in lines if _IS_BINDING in line and _IS_CREATED in line]
        self._bindings += bindings
        self.bound += len(bindings)
        return len(lines)

    def bindings(self) -> Iterator[Write]:
        """The bindings that `follow` has read since the last call or the mark."""
        bindings, self._bindings = self._bindings, []
        return _writes(bindings)

    def writes(self) -> Iterator[Write]:
        """Every write since the mark that was not refused, in the order of the answers."""
        return _writes(self._lines)


def _writes(lines: Iterable[bytes]) -> Iterator[Write]:
    for line in lines:
        entry = json.loads(line)
        about = entry.get("objectRef", {})
        if entry.get("responseStatus", {}).get("code", _ERRORS_FROM) >= _ERRORS_FROM:
            continue
        inner = about.get("subresource")
        yield Write(
            user=entry["user"]["username"],
            verb=entry["verb"],
            resource=about.get("resource", "") + (f"/{inner}" if inner else ""),
            name=about.get("name", ""),
            at=datetime.fromisoformat(entry["stageTimestamp"]).timestamp(),
        )
