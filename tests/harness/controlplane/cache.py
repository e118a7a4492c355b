"""Where binaries and running control planes are kept, outside the checkout.

One folder per pin and key; a file lock keeps two builds of one pin apart.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .pins import Pin, Tool


@dataclass(frozen=True, slots=True)
class Record:
    """What one build of one binary took and gave."""

    module: str
    seconds: float
    megabytes: float


def root() -> Path:
    """The folder of everything that outlives a checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tutti" / "control-plane"


def folder(pin: Pin) -> Path:
    """The folder of this pin's binaries."""
    return root() / f"{pin.name}-{pin.key}"


def records(directory: Path) -> dict[str, Record]:
    """What the builds in this folder took, by binary."""
    try:
        raw = json.loads((directory / "built.json").read_text())
    except FileNotFoundError:
        return {}
    return {name: Record(**record) for name, record in raw.items()}


def add_record(directory: Path, name: str, record: Record) -> None:
    """Add what one build took; the caller holds the folder's lock."""
    raw = {n: asdict(r) for n, r in records(directory).items()} | {name: asdict(record)}
    write(directory / "built.json", json.dumps(raw, indent=1) + "\n")


def usual_seconds(tool: Tool) -> float:
    """How long a cold build of this binary takes: here, if one was slower than elsewhere."""
    seen = (records(path.parent).get(tool.name) for path in root().glob("*/built.json"))
    return max([tool.usual_seconds, *(record.seconds for record in seen if record is not None)])


def write(path: Path, text: str) -> None:
    """Write a whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold this file's lock; `waiting` is called once if somebody else has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
