"""``tutti version``: the versions in use, for a bug report."""

import platform
from collections.abc import Iterator
from importlib import metadata

import click

from .. import __version__

# Packages whose version may explain a difference between installations: API first, then engines.
PACKAGES = ("kopf", "kubernetes", "numpy", "pulp", "highspy", "ortools")


@click.command("version")
def command() -> None:
    """Print the versions of Tutti, of the packages that it uses, and of the engine CBC.

    highspy and ortools are optional: the strategy ilp-highs needs highspy, and flow needs ortools.
    """
    tell()


def tell() -> None:
    """Print the versions."""
    click.echo(f"tutti {__version__}")
    click.echo(f"python {platform.python_version()} {platform.machine()}")
    for name, version in _packages():
        click.echo(f"{name} {version}")
    click.echo(f"cbc {_cbc()}")


def _packages() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"


def _cbc() -> str:
    from ..strategies.ilp.engine import Cbc

    return Cbc().version()
