"""What clusters and pods look like: read from CSV files, or generated to look like such files.

The columns are those of alibaba/clusterdata's cluster-trace-gpu-v2023, whatever else is in a file.
"""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")

MEBI = 2**20
GIBI = 2**30

NODE_COLUMNS = ("cpu_milli", "memory_mib", "gpu")
POD_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu")

_LIKENESS_NODES = 1_523
_LIKENESS_PODS = 8_000
# Cores, memory in Gi, GPUs, model, and how many of a hundred nodes are so.
_MACHINES = (
    (96, 384, 8, "large", 38),
    (128, 768, 8, "huge", 3),
    (104, 512, 2, "double", 26),
    (16, 120, 2, "small", 9),
    (32, 128, 4, "quad", 3),
    (8, 32, 1, "single", 2),
    (32, 256, 0, "", 11),
    (96, 512, 0, "", 8),
)
# GPUs of a shape, and how many shapes ask for so many.
_ASKING = ((8, 6), (4, 3), (2, 4), (1, 74), (0, 25))


class TraceError(Exception):
    """A file that is no such list; the message names file, line and column."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One row of a list of nodes."""

    cpu_milli: int
    memory: int  # bytes
    gpus: int
    model: str = ""  # of the GPUs


@dataclass(frozen=True, slots=True)
class Ask:
    """One row of a list of pods; shares of a GPU count as a whole one."""

    cpu_milli: int
    memory: int  # bytes
    gpus: int
    models: tuple[str, ...] = ()  # any of these; any at all, if empty

    def fits(self, machine: Machine) -> bool:
        """Whether an empty node of this kind could run it."""
        return (
            self.cpu_milli <= machine.cpu_milli
            and self.memory <= machine.memory
            and self.gpus <= machine.gpus
            and (not self.models or machine.model in self.models)
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """A cluster's nodes, and the pods that were seen there."""

    machines: tuple[Machine, ...]
    asks: tuple[Ask, ...]

    def shapes(self, least_gpus: int = 0) -> Sequence[Ask]:
        """What pods ask for, each once, the most frequent first; at least so many GPUs."""
        counted = Counter(ask for ask in self.asks if ask.gpus >= least_gpus)
        return sorted(counted, key=lambda ask: (-counted[ask], _order(ask)))


def read(nodes: Path | None, pods: Path | None, seed: int) -> Trace:
    """The trace in these files; what is not given is generated.

    Raises:
        TraceError: a file is not such a list.
    """
    likeness = generated(_LIKENESS_NODES, _LIKENESS_PODS, seed)
    return Trace(
        _rows(nodes, NODE_COLUMNS, _machine) if nodes else likeness.machines,
        _rows(pods, POD_COLUMNS, _ask) if pods else likeness.asks,
    )


def generated(nodes: int, pods: int, seed: int) -> Trace:
    """A cluster of about the same mix as that trace: a few kinds of nodes, many shapes of pods."""
    rng = random.Random(seed)
    weights = [machine[-1] for machine in _MACHINES]
    kinds = [Machine(c * 1000, g * GIBI, gpus, model) for c, g, gpus, model, _ in _MACHINES]
    machines = rng.choices(kinds, weights, k=nodes)
    shapes = [_invented(gpus, rng) for gpus, count in _ASKING for _ in range(count)]
    rng.shuffle(shapes)
    # Few shapes make up most pods, and several GPUs are seldom asked for.
    often = [(0.02 if ask.gpus > 1 else 1.0) / (i + 1) for i, ask in enumerate(shapes)]
    drawn = rng.choices(shapes, often, k=max(0, pods - len(shapes)))
    return Trace(tuple(sorted(machines, key=_kind_order)), (*shapes, *drawn))


def many_shapes(count: int, seed: int) -> Sequence[Ask]:
    """So many shapes of which three quarters ask for no GPU."""
    rng = random.Random(seed)
    found: dict[Ask, None] = {}
    while len(found) < count:
        gpus = 0 if len(found) % 4 else rng.choice((1, 1, 2, 4, 8))
        found[_invented(gpus, rng)] = None
    return tuple(found)


def _invented(gpus: int, rng: random.Random) -> Ask:
    """A shape that some of the kinds of nodes could run."""
    cores = (
        rng.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 32)) if not gpus else rng.uniform(2, 12) * gpus
    )
    cpu = int(cores * 10) * 100
    memory = int(cpu / 1000 * rng.uniform(1.5, 4.0)) + 1
    return Ask(cpu, memory * GIBI, gpus)


def _rows(
    path: Path, columns: Iterable[str], make: Callable[[Mapping[str, str]], T]
) -> tuple[T, ...]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in columns if name not in (rows.fieldnames or ())]
            if missing:
                raise TraceError(f"{path}: there is no column {', '.join(missing)}")
            found = tuple(_made(path, rows.line_num, row, make) for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: it cannot be read: {error}") from error
    if not found:
        raise TraceError(f"{path}: there are no rows")
    return found


def _made(
    path: Path, line: int, row: Mapping[str, str], make: Callable[[Mapping[str, str]], T]
) -> T:
    try:
        return make(row)
    except (TypeError, ValueError) as error:
        raise TraceError(f"{path}: line {line}: {error}") from error


def _machine(row: Mapping[str, str]) -> Machine:
    return Machine(
        _whole(row["cpu_milli"]),
        _whole(row["memory_mib"]) * MEBI,
        _whole(row["gpu"]),
        row.get("model") or "",
    )


def _ask(row: Mapping[str, str]) -> Ask:
    gpus = max(_whole(row["num_gpu"]), math.ceil(_whole(row.get("gpu_milli") or "0") / 1000))
    models = tuple(name for name in (row.get("gpu_spec") or "").split("|") if name)
    return Ask(_whole(row["cpu_milli"]), _whole(row["memory_mib"]) * MEBI, gpus, models)


def _whole(text: str) -> int:
    """An amount, rounded up."""
    number = math.ceil(float(text))
    if number < 0:
        raise ValueError(f"{text} is less than nothing")
    return number


def _order(ask: Ask) -> tuple[int, int, int, tuple[str, ...]]:
    return (-ask.gpus, -ask.cpu_milli, -ask.memory, ask.models)


def _kind_order(machine: Machine) -> tuple[int, int, int]:
    return (-machine.gpus, -machine.cpu_milli, -machine.memory)
