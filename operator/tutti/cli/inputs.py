"""Reads the files of a command (paths, directories, or standard input) into a Snapshot.

All commands that work offline share this. A bad file ends them with one line and exit code 2.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from ..model.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .. import dump
    from ..model.cluster import Snapshot


WRONG_INPUT = 2  # click's own exit code for a wrong command line
SUFFIXES = (".yaml", ".yml", ".json")
STANDARD_INPUT = "-"
# The shell completes names of files; the reader of a file reports what is wrong with it.
FILE = click.Path(readable=False)
# Options that several commands have.
FILES = click.option(
    "-f",
    "--filename",
    "paths",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Read files instead of a cluster: a dump, output of `kubectl get -o yaml`, manifests, or "
    "a directory of such files; - for standard input. You can repeat this option.",
)
KUBECONFIG = click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="The kubeconfig of the cluster. Default: $KUBECONFIG, the pod's service account, "
    "~/.kube/config.",
)
CONTEXT = click.option(
    "--context", help="The context in the kubeconfig. Default: the current context."
)

PREEMPTIONS = ("Off", "Reclaim", "Full")
PREEMPTION = click.option(
    "--preemption",
    type=click.Choice(PREEMPTIONS),
    help="What if: use this setting of preemption. Default: $TUTTI_PREEMPTION.",
)


def environment(preemption: str | None) -> Mapping[str, str]:
    """The variables of the environment; with this setting of preemption, if one is given."""
    chosen = {} if preemption is None else {"TUTTI_PREEMPTION": preemption}
    return {**os.environ, **chosen}


def read_files(paths: Sequence[str], scheduler: str = "") -> tuple[Snapshot, dump.Objects]:
    """The Snapshot of all files together, and their other objects; prints what was skipped.

    ``scheduler`` is the name that our pods ask for; if empty, the dump's name, or else tutti.
    """
    return decode_texts(contents(paths), scheduler)


def contents(paths: Sequence[str]) -> Sequence[dump.Text]:
    """The contents of the files; standard input can be read only once."""
    from .. import dump

    try:
        return list(texts(paths))
    except dump.BadFile as problem:
        fail(str(problem))


def decode_texts(files: Sequence[dump.Text], scheduler: str = "") -> tuple[Snapshot, dump.Objects]:
    """See ``read_files``."""
    from .. import dump
    from ..dump.load import snapshot_of

    # All objects are kept: the garbage collector would walk them again and again while they grow.
    gc.disable()
    try:
        objects = dump.read(files, scheduler)
        snapshot = snapshot_of(objects)
    except dump.BadFile as problem:
        fail(str(problem))
    finally:
        gc.enable()
    if objects.skipped:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(objects.skipped.items()))
        say(f"skipped, because no decision depends on them: {kinds}", aside=True)
    if objects.repeated:
        click.echo(
            f"objects that occur more than once: {objects.repeated}; the last of each counts",
            err=True,
        )
    return snapshot, objects


def texts(paths: Sequence[str]) -> Iterator[dump.Text]:
    """The contents of files; ``-`` is standard input, and a directory stands for its files."""
    from .. import dump

    for path in paths:
        if path == STANDARD_INPUT:
            yield dump.Text("standard input", sys.stdin.buffer.read())
            continue
        for file in _files(Path(path)):
            try:
                yield dump.Text(str(file), file.read_bytes())
            except OSError as problem:
                raise dump.BadFile(str(file), problem.strerror or str(problem)) from problem


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not files:
        from .. import dump

        raise dump.BadFile(str(path), f"this directory has no {', '.join(SUFFIXES)} file")
    return files


def say(sentence: str, *, aside: bool = False) -> None:
    """Print a line; with ``aside``, on standard error."""
    click.echo(visible(sentence), err=aside)


def fail(sentence: str, code: int = WRONG_INPUT) -> NoReturn:
    """End the command with one line; the default code means that its input is wrong."""
    name = click.get_current_context().command_path
    say(f"{name}: {sentence}", aside=True)
    sys.exit(code)
