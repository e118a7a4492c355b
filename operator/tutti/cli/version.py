"""``tutti version``."""

import click

from .. import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"tutti {__version__}")
