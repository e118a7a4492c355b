"""Pack the plugin for krew, and write the manifest that names the archive."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from . import packing, rules


@click.command()
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--url", required=True, help="Where the archive will be: the address of its folder.")
@click.option("--homepage", required=True, help="The project's page.")
@click.option(
    "-o",
    "--output",
    default="dist",
    type=click.Path(path_type=Path),
    help="The folder to write to.",
)
def main(wheel: Path, url: str, homepage: str, output: Path) -> None:
    """Write kubectl-tutti-VERSION.tar.gz of WHEEL, and the manifest tutti.yaml of it.

    Exit code 1: krew would not take the manifest; what is wrong is said.
    """
    output.mkdir(parents=True, exist_ok=True)
    archive = packing.pack(wheel, output)
    text = packing.manifest(archive, url, homepage)
    if wrong := rules.complaints("tutti", text):
        archive.unlink()
        click.echo("\n".join(wrong), err=True)
        sys.exit(1)
    (output / "tutti.yaml").write_text(text)
    click.echo(f"{archive}\n{output / 'tutti.yaml'}")


if __name__ == "__main__":
    main()
