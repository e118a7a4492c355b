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


def _row(found: Figures) -> tuple[str, ...]:
    return (
        found.name,
        f"{found.bindings}",
        f"{found.ordinary}",
        f"{found.by_gangs}",
        f"{found.by_ordinary}",
        f"{found.per_thousand:.1f}",
        f"{found.visible}",
        f"{found.rejected}",
        f"{found.seconds:.0f}",
    )


if __name__ == "__main__":
    main()
