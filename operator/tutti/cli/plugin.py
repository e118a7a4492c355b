"""The read-only commands as ``kubectl tutti``: kubectl calls ``kubectl-tutti`` by its name.

``run`` is left out: beside the operator of a release it would be a second leader.
"""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import ShellComplete

from . import main

NAME = "kubectl tutti"
COMMANDS = main.without("run")
FILES, NO_FILES = 0, 4  # cobra's directives: whether the shell also offers files


def run() -> None:
    """Run a command under the name that it was called by."""
    COMMANDS(prog_name=NAME)


def complete(words: Sequence[str] | None = None) -> None:
    """Print the completions of the last word and a directive, in the format of kubectl."""
    *before, last = (sys.argv[1:] if words is None else words) or [""]
    completions = ShellComplete(COMMANDS, {}, NAME, "").get_completions(list(before), last)
    for item in completions:
        if item.type == "plain":
            click.echo(item.value)
    click.echo(f":{NO_FILES if all(item.type == 'plain' for item in completions) else FILES}")
