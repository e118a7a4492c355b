"""``python -m tests.bench.planner.child``: one case in a process whose memory is its own.

Reads what to measure from stdin and writes the figures to stdout, both as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.model.decisions import Objective

from . import traces
from .scenes import Scene
from .trials import Case, Figures, Kind, measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .isolation import Source

GC_THRESHOLD = 20_000  # as in the operator's process


def asked(case: Case, source: Source) -> str:
    """What to tell the process."""
    return json.dumps(asdict(case) | {"scene": case.scene.plain} | asdict(source))


def answer(text: str) -> Figures:
    """Measure what was asked for."""
    plain: Mapping[str, object] = json.loads(text)
    scene = Scene.of(plain["scene"])  # type: ignore[arg-type]
    case = Case(
        Kind(str(plain["kind"])), scene, str(plain["strategy"]), Objective(str(plain["objective"]))
    )
    nodes, pods = (Path(str(plain[name])) if plain[name] else None for name in ("nodes", "pods"))
    seed = int(str(plain["seed"]))
    return measured(case, traces.read(nodes, pods, seed), seed)


if __name__ == "__main__":
    gc.set_threshold(GC_THRESHOLD)
    json.dump(asdict(answer(sys.stdin.read())), sys.stdout)
