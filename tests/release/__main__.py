"""`make release` and `make lock`."""

from __future__ import annotations

import sys

import click

from . import building, dependencies, licences, locking, sbom


@click.group()
def main() -> None:
    """Build a release, or pin what it is made of."""


@main.command()
def build() -> None:
    """Build wheel, sdist, chart and SBOM of the last commit into dist/."""
    if changed := building.changed():
        click.echo(f"release: not everything is committed:\n{changed}", err=True)
        sys.exit(1)
    folder = dependencies.PROJECT / "dist"
    click.echo(f"commit {building.commit_of()}")
    for path in building.release(folder):
        if path.name.endswith(building.BILL):
            sbom.validate(path)
        click.echo(f"{path.stat().st_size / 1e3:8.1f} kB  {path.relative_to(folder.parent)}")


@main.command()
def lock() -> None:
    """Write locks/ and docs/dependencies.md anew."""
    for path in locking.lock():
        click.echo(path.relative_to(dependencies.PROJECT))
    licences.PAGE.write_text(licences.page())
    click.echo(licences.PAGE.relative_to(dependencies.PROJECT))


if __name__ == "__main__":
    main()
