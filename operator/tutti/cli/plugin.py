"""The same commands as ``kubectl tutti``: kubectl calls ``kubectl-tutti`` by its name."""

import sys
from collections.abc import Sequence

import click
from click.shell_completion import ShellComplete

from . import main

NAME = "kubectl tutti"
FILES, NO_FILES = 0, 4  # cobra's directives: what the shell may offer beside these words


def run() -> None:
    """Run a command, under the name that it was called by."""
    main(prog_name=NAME)


def complete(words: Sequence[str] | None = None) -> None:
    """Print what the last word may become, and a directive, as kubectl wants it."""
    *before, last = (sys.argv[1:] if words is None else words) or [""]
    found = ShellComplete(main, {}, NAME, "").get_completions(list(before), last)
    named = [item.value for item in found if item.type == "plain"]
    for word in named:
        click.echo(word)
    click.echo(f":{NO_FILES if len(named) == len(found) and found else FILES}")
