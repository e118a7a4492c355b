"""Print what Tutti computes of Spark's properties beside what the real Spark asks for.

Run by `make conformance`; `make test` has a few of the cases, with the newest Spark, for each is
450 MB to fetch. One JVM per version, one SparkContext after another; the executors never run. 0
differences are expected.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from ...harness.controlplane.cluster import ControlPlane
from .asked import Door, Pods
from .comparing import Compared, compared
from .pins import PINS


@click.command()
@click.option("--cases", type=click.IntRange(1), help="In client mode. Default: the version's.")
@click.option(
    "--spark",
    "names",
    type=click.Choice([pin.name for pin in PINS]),
    multiple=True,
    help="Which Spark; may be given again. Default: all.",
)
@click.option("--logs", type=click.Path(path_type=Path), help="Keep what Spark says there.")
def main(cases: int | None, names: tuple[str, ...], logs: Path | None) -> None:
    """Compare what is computed with what is asked for."""
    found: list[Compared] = []
    with ControlPlane.start(components=()) as plane, tempfile.TemporaryDirectory() as passing:
        folder = (logs or Path(passing)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        door = Door(plane)
        for pin in PINS:
            if not names or pin.name in names:
                for one in compared(pin, cases or pin.cases, door, folder):
                    sign = "equal" if one.is_equal else "DIFFERENT"
                    click.echo(f"Spark {one.spark}, {one.case}, {one.what}: {sign}")
                    found.append(one)
    Console(width=150).print(_table(found))
    different = sum(not one.is_equal for one in found)
    click.echo(f"{len(found)} comparisons, {different} differences")
    sys.exit(1 if different or not found else 0)


def _table(found: list[Compared]) -> Table:
    table = Table("Spark", "case", "pods", "computed", "asked", title="Computed and asked")
    for one in found:
        seen = "the same" if one.is_equal else _said(one.seen)
        table.add_row(one.spark, one.case, one.what, _said(one.computed), seen)
    return table


def _said(pods: Pods) -> str:
    if pods.count == 0:
        return "none"
    requests = ", ".join(f"{name} {_amount(n)}" for name, n in sorted(pods.requests.items()))
    words = [f"{pods.count} of {requests}"]
    if "cpu" in pods.limits:
        words.append(f"cpu limit {_amount(pods.limits['cpu'])}")
    words += [f"{name}={value}" for name, value in sorted(pods.node_selector.items())]
    words.append(pods.scheduler)
    return "; ".join(words)


def _amount(billionths: int) -> str:
    whole, rest = divmod(billionths, 2**20 * 10**9)
    return f"{whole} Mi" if whole and not rest else f"{billionths / 10**9:g}"


if __name__ == "__main__":
    main()
