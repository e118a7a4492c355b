"""How long a gang waits for its nodes: its last member's creation to its last binding.

Run by `make bench-e2e`, on a control plane of its own. Times come from the API server's audit log,
so neither the client's nor the test's delays are in them.
"""

from __future__ import annotations

import json
import statistics
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from .rig import Rig, members, pod_group

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def waits(audit: Path, group: str) -> tuple[float, int]:
    """Seconds from the creation of a gang's last member to its last binding, and all our writes."""
    created: list[datetime] = []
    bound: list[datetime] = []
    for line in audit.read_text().splitlines():
        entry = json.loads(line)
        about = entry.get("objectRef", {})
        if about.get("resource") != "pods" or not about.get("name", "").startswith(f"{group}-"):
            continue
        done = datetime.fromisoformat(entry["stageTimestamp"])
        if entry["verb"] == "create":
            (bound if about.get("subresource") == "binding" else created).append(done)
    return (max(bound) - max(created)).total_seconds(), len(bound)


@click.command()
@click.option("--sizes", default="8,64,512", show_default=True, help="Gang sizes, in members.")
@click.option("--rounds", default=5, show_default=True, help="Gangs of each size, one by one.")
@click.option("--nodes", default=80, show_default=True, help="kwok nodes with 8 GPUs each.")
def main(sizes: str, rounds: int, nodes: int) -> None:
    """Measure a gang's last member's creation to its last binding, per gang size."""
    table = Table("members", "median s", "least s", "most s", "gangs", title=main.help)
    with Rig.start() as rig:
        rig.nodes(nodes, cpu=64, memory="256Gi", gpus=8)
        for size in map(int, sizes.split(",")):
            taken = [_one(rig, f"gang-{size}-{i}", size) for i in range(rounds)]
            table.add_row(str(size), *_figures(taken), str(rounds))
    Console().print(table)


def _one(rig: Rig, name: str, size: int) -> float:
    rig.create(pod_group(name, size))
    rig.create(*members(name, size, gpu=1, cpu="1"))
    rig.until_bound(name, size)
    seconds, bound = waits(rig.plane.audit_log, name)
    assert bound == size
    rig.plane.request("DELETE", "/api/v1/namespaces/ml/pods?gracePeriodSeconds=0")
    rig.delete("ptg", name)
    rig.until(lambda: not rig.pods(), "the pods are gone")
    return seconds


def _figures(taken: Sequence[float]) -> tuple[str, str, str]:
    return tuple(f"{n:.2f}" for n in (statistics.median(taken), min(taken), max(taken)))  # type: ignore[return-value]


if __name__ == "__main__":
    main()
