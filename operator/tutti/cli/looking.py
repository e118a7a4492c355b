"""What ``tutti status`` and ``tutti top`` share: their options, and the look at the cluster."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from . import live
from .files import fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Snapshot
    from .standing import Row

NO_CLUSTER = 1
WATCH_SECONDS = 2.0
Command = TypeVar("Command", bound=Callable[..., Any])


class Seen(NamedTuple):
    """The cluster, and the gangs that are asked about."""

    snapshot: Snapshot
    rows: Sequence[Row]
    namespace: str | None  # None: all of them


def options(command: Command) -> Command:
    """The options of both commands."""
    for option in reversed(
        [
            click.option("-n", "--namespace", help="Its gangs. Default: the context's namespace."),
            click.option(
                "-A", "--all-namespaces", "everywhere", is_flag=True, help="All gangs there are."
            ),
            click.option(
                "-o",
                "--output",
                type=click.Choice(["table", "wide", "json", "yaml"]),
                default="table",
                show_default=True,
                help="How it is shown.",
            ),
            click.option("-w", "--watch", is_flag=True, help="Show it again every two seconds."),
            click.option(
                "--kubeconfig",
                type=click.Path(exists=True, dir_okay=False),
                help="Cluster to look at. Default: $KUBECONFIG, the pod's own service account, "
                "~/.kube/config.",
            ),
            click.option("--context", help="The kubeconfig's context. Default: its current one."),
        ]
    ):
        command = option(command)
    return command


def show(
    print_it: Callable[[Seen, str], None],
    *,
    namespace: str | None,
    everywhere: bool,
    output: str,
    watch: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Look and print, once or until somebody has seen enough."""
    from ..kube.access import namespace_of

    space = None if everywhere else namespace or namespace_of(kubeconfig, context)
    print_it(look(space, kubeconfig, context), output)
    try:
        while watch:
            time.sleep(WATCH_SECONDS)
            seen = look(space, kubeconfig, context)
            click.clear()  # at a terminal alone
            print_it(seen, output)
    except KeyboardInterrupt:
        return


def look(namespace: str | None, kubeconfig: str | None, context: str | None) -> Seen:
    """The cluster as it is now; ends the command with one line where it cannot be seen."""
    from ..model.keys import GangKey
    from ..settings import Settings, SettingsError
    from .standing import rows

    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as wrong:
        fail("; ".join(wrong.sentences))
    try:
        world = live.look(settings, kubeconfig, context)
    except live.OutOfReach as problem:
        fail(str(problem), NO_CLUSTER)
    groups = {GangKey(one.namespace, one.name): one for one in world.groups}
    snapshot = world.snapshot(time.time())
    return Seen(snapshot, rows(snapshot, groups, namespace), namespace)


def print_data(data: Mapping[str, Any], output: str) -> None:
    """The same as data."""
    if output == "json":
        click.echo(json.dumps(data, indent=2))
        return
    import yaml

    plain = json.loads(json.dumps(data))  # enums as words, nothing twice by reference
    click.echo(yaml.safe_dump(plain, sort_keys=False), nl=False)


def age(since: float, now: float) -> str:
    """How long something has been there, as kubectl says it."""
    seconds = max(0, int(now - since))
    for unit, size, most in (("s", 1, 120), ("m", 60, 120 * 60), ("h", 3600, 48 * 3600)):
        if seconds < most:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"
