"""`make release` and `make lock`."""

from __future__ import annotations

import sys

import click

from ..krew import rules
from . import building, dependencies, licences, locking, sbom, vendoring


@click.group()
def main() -> None:
    """Build a release, or pin what it is made of."""


@main.command()
@click.option("--url", default="", help="The address of the folder where krew will find it.")
@click.option("--homepage", default="", help="The project's page, for krew's manifest.")
def build(url: str, homepage: str) -> None:
    """Build wheel, sdist, chart, SBOM and krew archive of the last commit into dist/."""
    if changed := building.changed():
        click.echo(f"release: not everything is committed:\n{changed}", err=True)
        sys.exit(1)
    folder = dependencies.PROJECT / "dist"
    click.echo(f"commit {building.commit_of()}")
    for path in building.release(folder, url=url, homepage=homepage):
        if path.name.endswith(building.BILL):
            sbom.validate(path)
        click.echo(f"{path.stat().st_size / 1e3:8.1f} kB  {path.relative_to(folder.parent)}")
    wrong = "; ".join(rules.complaints("tutti", (folder / building.MANIFEST).read_text()))
    if wrong and (url or homepage):
        click.echo(f"release: krew would not take {building.MANIFEST}: {wrong}", err=True)
        sys.exit(1)
    if wrong:
        how = "make release URL=https://… HOMEPAGE=https://… fills them in"
        click.echo(f"{building.MANIFEST} lacks its addresses: {how}")


@main.command()
def lock() -> None:
    """Write locks/ and docs/dependencies.md again."""
    for path in locking.lock():
        click.echo(path.relative_to(dependencies.PROJECT))
    licences.PAGE.write_text(licences.page())
    click.echo(licences.PAGE.relative_to(dependencies.PROJECT))


@main.command()
def vendor() -> None:
    """Fetch the libraries of the console's page again, as locks/console.json pins them, by npm."""
    for library in vendoring.libraries():
        library.fetch()
        click.echo(f"{library.name} {library.version}")


if __name__ == "__main__":
    main()
