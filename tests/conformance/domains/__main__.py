"""``python -m tests.conformance.domains``: gangs in one domain, placed by three schedulers.

Tutti, the topology scheduling of kube-scheduler (an alpha of Kubernetes 1.37) and Kueue's
Topology Aware Scheduling before kube-scheduler. First gangs one by one, each beside pods of its
own that are there already, then scenes of several gangs that have a placement together. An oracle
knows which gangs have one. The exit code is 1 if Tutti leaves out one of those, or starts one
without.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rich.console import Console

from ...bench.load.gangs import Form
from ...harness.controlplane.pins import NATIVE_GANG_API, chosen_k8s
from . import drawn, scenes
from .playing import NAMES, PATIENCE_SECONDS, players
from .telling import gangs_table, misses, scenes_table, wrongs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cases import Case
    from .playing import Player
    from .telling import Outcome, Results

_EVERY = 20  # cases: how often it is told how far each scheduler is


def main(arguments: Sequence[str]) -> int:
    """Play all, print who placed what; 1 if Tutti leaves out a gang, or starts one wrongly."""
    options = _options(arguments)
    if chosen_k8s() not in NATIVE_GANG_API:
        print(f"not on Kubernetes {chosen_k8s()}, which has no PodGroups of its own")
        return 0
    names = options.only or NAMES
    single = [*drawn.cases(options.seed, options.gangs)]
    joint = [*scenes.scenes(options.seed, options.scenes)]
    by_player = played(names, [*single, *joint], options.patience)
    results: Results = [
        (case, {name: outcomes[i] for name, outcomes in by_player.items()})
        for i, case in enumerate((*single, *joint))
    ]
    ones, scene_results = results[: len(single)], results[len(single) :]
    console = Console(width=190)
    if ones:
        console.print(gangs_table(ones, names))
    if scene_results:
        console.print(scenes_table(scene_results, names))
    for name in names:
        for sentence in wrongs(results, name):
            console.print(sentence, highlight=False)
    missed = misses(results, Form.TUTTI)
    for sentence in missed:
        console.print(sentence, highlight=False)
    return int(bool(missed or wrongs(results, Form.TUTTI)))


def played(
    names: Sequence[str], cases: Sequence[Case], patience: float = PATIENCE_SECONDS
) -> dict[str, list[Outcome | None]]:
    """What each scheduler makes of each case; all schedulers are at work at the same time."""

    def play(player: Player) -> list[Outcome | None]:
        outcomes = []
        for number, case in enumerate(cases, 1):
            outcomes.append(player.play(case, patience))
            if number % _EVERY == 0:
                print(f"{player.name}: {number} of {len(cases)} cases", flush=True)
        return outcomes

    with players(names) as made, ThreadPoolExecutor(len(made)) as pool:
        return dict(zip(names, pool.map(play, made), strict=True))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.domains",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=NAMES, help="these schedulers alone")
    parser.add_argument(
        "--gangs", type=int, default=200, help="gangs one by one that have a placement (200)"
    )
    parser.add_argument("--scenes", type=int, default=20, help="scenes of several gangs (20)")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws others (1)")
    parser.add_argument(
        "--patience",
        type=float,
        default=PATIENCE_SECONDS,
        help=f"seconds that every scheduler has for a case ({PATIENCE_SECONDS:.0f})",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
