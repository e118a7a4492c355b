"""Print collisions per thousand bindings: Tutti beside kube-scheduler, and two kube-schedulers.

Run by `make conformance`. Every run has a control plane of its own and asks for the same pods.
"""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from .load import Load
from .running import Figures, beside_tutti, two_kube_schedulers

COLUMNS = (
    "gangs' scheduler",
    "bindings",
    "of kube-scheduler",
    "collisions by it",
    "by kube-scheduler",
    "per 1,000",
    "onto room seen taken",
    "rejected",
    "seconds",
)


@click.command()
@click.option("--gangs", default=250, show_default=True, help="Gangs of 8 on the shared nodes.")
@click.option("--ordinary", default=2000, show_default=True, help="Pods of kube-scheduler.")
@click.option("--nodes", default=30, show_default=True, help="Nodes of 32 cpu.")
@click.option("--rounds", default=1, show_default=True, help="Runs of each, alternating.")
def main(gangs: int, ordinary: int, nodes: int, rounds: int) -> None:
    """Count collisions on nodes that two schedulers share."""
    table = Table(*COLUMNS, title="Collisions on shared nodes")
    for seed in range(rounds):
        load = Load(gangs=gangs, ordinary=ordinary, nodes=nodes, own_gangs=gangs // 5, seed=seed)
        for cluster in (beside_tutti, two_kube_schedulers):
            with cluster(load) as run:
                run.play()
                table.add_row(*_row(run.judge()))
    Console(width=140).print(table)


def _row(figures: Figures) -> tuple[str, ...]:
    return (
        figures.name,
        f"{figures.bindings}",
        f"{figures.ordinary}",
        f"{figures.by_gangs}",
        f"{figures.by_ordinary}",
        f"{figures.per_thousand:.1f}",
        "?" if figures.visible is None else f"{figures.visible}",
        f"{figures.rejected}",
        f"{figures.seconds:.0f}",
    )


if __name__ == "__main__":
    main()
