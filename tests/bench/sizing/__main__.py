"""Measure it on real API servers of growing clusters; prints the table of docs/operations.md."""

from __future__ import annotations

import time

import click

from ...harness import operator_process
from ...harness.controlplane import ControlPlane, node_manifest
from ...harness.operator_process import OperatorProcess
from ...harness.rig import pod
from ..e2e import usage

PODS = 10  # bound on each node, none of them Tutti's
CLUSTERS = (10, 200, 1000)
PATIENCE = 300.0  # seconds until it knows the cluster


def measured(nodes: int) -> float:
    """The peak of resident memory, in MB, until the replica knows a cluster of so many nodes."""
    with ControlPlane.start() as plane:
        operator_process.install(plane)
        plane.create_namespace("ml")
        plane.create(node_manifest(f"node-{n}", cpu=32, memory="128Gi") for n in range(nodes))
        plane.create(
            pod(f"pod-{n}", scheduler="other", cpu=1, spec={"nodeName": f"node-{n % nodes}"})
            for n in range(nodes * PODS)
        )
        operator = OperatorProcess(plane)
        operator.start(ready=False)
        try:
            deadline = time.monotonic() + PATIENCE
            while operator.probe("readyz") != "ok":
                assert time.monotonic() < deadline, f"not ready:\n{operator.tail()}"
                time.sleep(0.1)
            assert operator.process is not None, "it has answered"
            return usage.of(operator.process.pid).peak_megabytes
        finally:
            operator.stop()


@click.command()
@click.option("--nodes", multiple=True, type=int, default=CLUSTERS, show_default=True)
def main(nodes: tuple[int, ...]) -> None:
    """Print one row for each number of nodes, with ten bound pods of others on each."""
    click.echo("| nodes | bound pods | MB |\n|---:|---:|---:|")
    for count in nodes:
        click.echo(f"| {count:,} | {count * PODS:,} | {measured(count):.0f} |")


if __name__ == "__main__":
    main()
