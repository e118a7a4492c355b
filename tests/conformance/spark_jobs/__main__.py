"""Run an application of the real Spark that Tutti starts, and the examples of docs/spark.md.

Run by `make conformance`: each Spark is 450 MB to fetch, once. With each version, π is computed by
three executors that were placed whole; the examples are executed with the newest.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from ..spark_sizes.pins import PINS
from . import examples, job


@click.command()
@click.option(
    "--spark",
    "names",
    type=click.Choice([pin.name for pin in PINS]),
    multiple=True,
    help="Which Spark; may be given again. Default: all, and the examples with the newest.",
)
@click.option("--logs", type=click.Path(path_type=Path), help="Keep what the pods say there.")
def main(names: tuple[str, ...], logs: Path | None) -> None:
    """Start real applications, and say what came of them."""
    with tempfile.TemporaryDirectory() as passing:
        folder = (logs or Path(passing)).absolute()
        for pin in PINS:
            if not names or pin.name in names:
                done = job.done(pin, folder / f"job-{pin.name}")
                done.check()
                click.echo(done)
        if not names:
            for line in examples.executed(PINS[0], folder / "examples"):
                click.echo(line)


if __name__ == "__main__":
    main()
