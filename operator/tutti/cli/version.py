"""``tutti version``: what runs here, for a bug report."""

import platform
from collections.abc import Iterator
from importlib import metadata

import click

from .. import __version__

# Whose version explains a difference between two installations: the API's side, then the engines.
TOLD = ("kopf", "kubernetes", "numpy", "pulp", "highspy", "ortools")


@click.command("version")
def command() -> None:
    """Print the versions of Tutti and of what it stands on.

    Beside the packages: CBC, the engine of the strategy ilp, asked by being run. Packages that are
    not installed belong to extras; without them the strategies ilp-highs (highspy) and flow
    (ortools) cannot be chosen.
    """
    tell()


def tell() -> None:
    """Print them."""
    click.echo(f"tutti {__version__}")
    click.echo(f"python {platform.python_version()} {platform.machine()}")
    for name, told in _packages():
        click.echo(f"{name} {told}")
    click.echo(f"cbc {_cbc()}")


def _packages() -> Iterator[tuple[str, str]]:
    for name in TOLD:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"


def _cbc() -> str:
    from ..strategies.ilp.engine import Cbc

    return Cbc().version()
