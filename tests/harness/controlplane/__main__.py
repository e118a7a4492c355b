"""`python -m tests.harness.controlplane`: build, up, down and pins, as the Makefile calls them."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from typing import TYPE_CHECKING

import click

from . import build, cache, standing
from .components import OPTIONAL
from .errors import ControlPlaneError
from .pins import DEFAULT_K8S, KNOWN_K8S, all_pins

if TYPE_CHECKING:
    from types import FrameType

_K8S = click.option(
    "--k8s",
    type=click.Choice(KNOWN_K8S),
    envvar="K8S",
    default=DEFAULT_K8S,
    show_default=True,
    help="The Kubernetes minor; also read from the variable K8S.",
)


@click.group()
def main() -> None:
    """A real Kubernetes control plane on loopback, built from pinned Go modules."""


@main.command(name="build")
@_K8S
@click.argument("names", nargs=-1)
def build_command(k8s: str, names: tuple[str, ...]) -> None:
    """Build what the cache lacks: the named binaries, or all of this minor."""
    started = time.monotonic()
    paths = build.binaries(names or None, k8s=k8s)
    unknown = sorted(set(names) - set(paths))
    if unknown:
        message = f"no pin has a binary called {', '.join(unknown)}"
        raise ControlPlaneError(message)
    seconds = time.monotonic() - started
    build.say(f"control plane {k8s}: {len(paths)} binaries ready ({seconds:.1f} s)")


@main.command()
@_K8S
@click.option(
    "--with",
    "with_",
    envvar="WITH",
    default="",
    metavar="NAMES",
    help=f"Components to add to kwok, separated by spaces: {', '.join(OPTIONAL[1:])}.",
)
def up(k8s: str, with_: str) -> None:
    """Start a control plane and leave it running; prints the exports that a shell evaluates."""
    started = time.monotonic()
    names = {"kwok", *with_.replace(",", " ").split()}
    plane = standing.up(names, k8s)
    seconds = time.monotonic() - started
    build.say(f"Kubernetes {plane.k8s} with {', '.join(plane.components)} ({seconds:.1f} s)")
    print(f"export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}")
    print(f'export PATH={shlex.quote(str(plane.bin))}:"$PATH"')


@main.command()
def down() -> None:
    """Stop exactly the processes that `up` started, and remove their files."""
    build.say("control plane stopped" if standing.down() else "no control plane is running")


@main.command()
def pins() -> None:
    """Print each binary with its module, and what its build took on this machine."""
    rows = [("binary", "module@version", "seconds", "MB")]
    for pin in all_pins():
        records = cache.records(cache.folder(pin))
        for tool in pin.tools:
            record = records.get(tool.name)
            numbers = (f"{record.seconds:.0f}", f"{record.megabytes:.0f}") if record else ("", "")
            rows.append((tool.name, f"{pin.module}@{pin.version}", *numbers))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, module, seconds, megabytes in rows:
        print(f"{name:{widths[0]}}  {module:{widths[1]}}  {seconds:>7}  {megabytes:>5}")


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    # A polite kill cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupted)
    # Nothing here, nor any child, may act on the cluster of the user's shell.
    os.environ.pop("KUBECONFIG", None)
    try:
        main()
    except (ControlPlaneError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
