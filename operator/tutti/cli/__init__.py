"""The commands: ``COMMANDS`` has the module and the name of each.

The module of a command is imported when the command is called or listed, and its dependencies when
it runs, so that ``--help`` is fast.
"""

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Self

import click

from .inputs import WRONG_INPUT
from .package_data import crd_files

__all__ = ["WRONG_INPUT", "crd_files", "main"]

# By command, its module and its name there, in the order of the help.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run", "command"),
    "status": ("status", "command"),
    "top": ("top", "command"),
    "queue": ("queue", "command"),
    "plan": ("plan", "command"),
    "explain": ("explain", "command"),
    "ui": ("ui", "command"),
    "dump": ("dump", "command"),
    "crds": ("package_data", "crds"),
    "settings": ("package_data", "settings"),
    "version": ("version", "command"),
}


class _Commands(click.Group):
    """The commands by name, in the order of the table."""

    left_out: frozenset[str] = frozenset()

    def without(self, *names: str) -> Self:
        """The same commands without these."""
        fewer = copy.copy(self)
        fewer.left_out = frozenset(names)
        return fewer

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of all commands."""
        return [name for name in COMMANDS if name not in self.left_out]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; None if it does not exist."""
        if cmd_name not in self.list_commands(ctx):
            return None
        file, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f".{file}", __name__), name)
        return command


def _print_versions(context: click.Context, _option: click.Parameter, is_asked: object) -> None:
    if is_asked and not context.resilient_parsing:
        import_module(".version", __name__).tell()
        context.exit()


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: tutti crds | kubectl apply -f -",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Print the versions, like the command `version`.",
)
def main() -> None:
    """Gang scheduling for Kubernetes: the pods of a gang start together or not at all.

    A PodGroup says how many members a gang needs. Its pods name the PodGroup with the label
    tutti.dev/pod-group and set schedulerName: tutti. They wait until Tutti finds room for the whole
    gang. Then Tutti writes the placement down as a Reservation and binds the pods.
    """
