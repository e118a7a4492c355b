"""The commands, one file each: ``COMMANDS`` names them, and each file has its ``command``.

A command's file is read when it is called or listed, and what it needs when it runs, so that
``--help`` is instant.
"""

from collections.abc import Mapping
from importlib import import_module

import click

from .crds import crd_files
from .files import WRONG_INPUT

__all__ = ["WRONG_INPUT", "crd_files", "main"]

# Name and file of every command, in the order of the help.
COMMANDS: Mapping[str, str] = {
    "run": "run",
    "status": "status",
    "top": "top",
    "plan": "plan",
    "explain": "explain",
    "dump": "dump",
    "crds": "crds",
    "settings": "listing",
    "version": "version",
}


class _Commands(click.Group):
    """The commands by name, in the order of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name them all."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one of them."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f".{COMMANDS[cmd_name]}", __name__).command
        return found


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: tutti crds | kubectl apply -f -",
)
def main() -> None:
    """Gang scheduling for Kubernetes: a gang's pods start together or not at all.

    A PodGroup says how many members a gang needs; its pods name it with the label
    tutti.dev/pod-group and set schedulerName: tutti. Tutti holds them until one placement exists
    for all, writes it down as a Reservation, and binds them together.
    """
