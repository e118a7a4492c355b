"""What ``tutti status`` and ``tutti top`` share: their options, and how they read the cluster."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..inputs import CONTEXT, KUBECONFIG, environment, fail, say
from . import live_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...model.cluster import Snapshot
    from .gang_rows import StandingRow

NO_CLUSTER = 1
WATCH_SECONDS = 2.0
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 365 * 86400
UNITS: Mapping[str, int] = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
# An age below the first number is shown in the first unit, with the rest in the second, if any.
AGES = (
    (2 * MINUTE, "s", ""),
    (10 * MINUTE, "m", "s"),
    (3 * HOUR, "m", ""),
    (8 * HOUR, "h", "m"),
    (2 * DAY, "h", ""),
    (8 * DAY, "d", "h"),
    (2 * YEAR, "d", ""),
    (8 * YEAR, "y", "d"),
)
Command = TypeVar("Command", bound=Callable[..., Any])


class View(NamedTuple):
    """The cluster, and the gangs to show."""

    snapshot: Snapshot
    rows: Sequence[StandingRow]
    namespace: str | None  # None: all namespaces


def options(command: Command) -> Command:
    """Add the options of both commands to a command."""
    for option in reversed(
        [
            click.option(
                "-n",
                "--namespace",
                help="List the gangs of this namespace. Default: that of the context.",
            ),
            click.option(
                "-A", "--all-namespaces", "everywhere", is_flag=True, help="List the gangs of all."
            ),
            click.option(
                "--queue",
                metavar="NAME",
                help="List the gangs of this queue and of those below it; in all namespaces, unless"
                " -n names one.",
            ),
            click.option(
                "-o",
                "--output",
                type=click.Choice(["table", "wide", "json", "yaml"]),
                default="table",
                show_default=True,
                help="The format.",
            ),
            click.option("-w", "--watch", is_flag=True, help="Refresh every two seconds."),
            KUBECONFIG,
            CONTEXT,
        ]
    ):
        command = option(command)
    return command


def show(
    print_it: Callable[[View, str], None],
    *,
    namespace: str | None,
    everywhere: bool,
    queue: str | None,
    output: str,
    watch: bool,
    kubeconfig: str | None,
    context: str | None,
    preemption: str | None = None,
) -> None:
    """Read the cluster and print it, once or until Ctrl-C.

    If the first read fails, the command ends with one line.
    """
    from ...kube.access import namespace_of

    space = namespace
    if everywhere:
        space = None
    elif namespace is None and queue is None:
        space = namespace_of(kubeconfig, context)
    try:
        print_it(look(space, kubeconfig, context, preemption, queue), output)
    except live_cluster.OutOfReach as problem:
        fail(str(problem), NO_CLUSTER)
    if watch:
        look_again = partial(look, space, kubeconfig, context, preemption, queue)
        again(look_again, lambda view: print_it(view, output), time.sleep)


def again(
    look_again: Callable[[], View], print_it: Callable[[View], None], wait: Callable[[float], None]
) -> None:
    """Read and print again until Ctrl-C; each new problem is printed once, and reads go on."""
    name = click.get_current_context().command_path
    last_problem = ""
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            wait(WATCH_SECONDS)
            try:
                view = look_again()
            except live_cluster.OutOfReach as problem:
                if last_problem != str(problem):
                    last_problem = str(problem)
                    say(f"{name}: {last_problem} (tried again every two seconds)", aside=True)
            else:
                last_problem = ""
                click.clear()  # only on a terminal
                print_it(view)


def look(
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    preemption: str | None = None,
    queue: str | None = None,
) -> View:
    """The cluster as it is now; a wrong setting or queue ends the command with one line.

    ``preemption`` is the setting of preemption, if it is not that of the environment.

    Raises:
        live_cluster.OutOfReach: the cluster cannot be read.
    """
    from ...operator.settings import Settings, SettingsError
    from .gang_rows import UnknownQueueError, rows, rows_of_queue

    try:
        settings = Settings.from_environment(environment(preemption))
    except SettingsError as wrong:
        fail("; ".join(wrong.sentences))
    state = live_cluster.look(settings, kubeconfig, context)
    groups = {group.key: group for group in state.groups}
    snapshot = state.snapshot(time.time())
    shown = rows(snapshot, groups, namespace, settings.preemption)
    if queue is not None:
        try:
            shown = rows_of_queue(shown, snapshot, queue)
        except UnknownQueueError as wrong:
            fail(str(wrong))
    return View(snapshot, shown, namespace)


def print_data(data: Mapping[str, Any], output: str) -> None:
    """Print data as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(data, indent=2))
        return
    import yaml

    plain = json.loads(json.dumps(data))  # enums as words, and no YAML references
    click.echo(yaml.safe_dump(plain, sort_keys=False), nl=False)


def age(since: float, now: float) -> str:
    """The time since ``since`` in kubectl's format; both arguments are in seconds.

    The bounds are those of HumanDuration in k8s.io/apimachinery's pkg/util/duration.
    """
    seconds = max(0, int(now - since))
    unit, part = next(((unit, part) for most, unit, part in AGES if seconds < most), ("y", ""))
    whole, rest = divmod(seconds, UNITS[unit])
    more = rest // UNITS[part] if part else 0
    return f"{whole}{unit}" + (f"{more}{part}" if more else "")
