"""``tutti status``: the state of the cluster on one page, and why gangs wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .inputs import PREEMPTION
from .output import watch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..queues.use import GangCover
    from .output.gang_rows import StandingRow
    from .output.watch import View

STYLES: Mapping[str, str] = {
    "waiting": "yellow",
    "reserved": "cyan",
    "started": "green",
    "degraded": "red",
}
EXAMPLES = """\b
Examples:
  kubectl tutti status              # why gangs wait in your namespace
  kubectl tutti status -A -w        # in all namespaces, every two seconds
  kubectl tutti status -A -o wide   # also gangs that run
  kubectl tutti status --queue research   # of this queue and those below it
  kubectl tutti status -A -o json \\
    | jq '.gangs[] | select(.reason == "NoNodeFits")'
\b
Exit codes: 0 shown; 1 the cluster cannot be read;
2 an option or a setting is wrong.
"""


@click.command(
    "status", epilog=EXAMPLES, short_help="Show the cluster's room and gangs, and why gangs wait."
)
@watch.options
@PREEMPTION
def command(**options: Any) -> None:
    """Show the cluster's room and gangs, and why gangs wait or what they lack.

    The room and the number of gangs by state are those of the whole cluster. For each level of a
    Topology, it also says what one domain has free at most. The list has the gangs
    of one namespace, or of all with -A. The reasons are those that the operator has written. With
    -o wide, a gang that names levels of a Topology says in which domains it is; with --preemption,
    too, a gang that runs says for which gangs it may end with that setting.
    The command plans and changes nothing: `kubectl tutti explain` says what would start a gang.
    """
    watch.show(_print, **options)


def _print(view: View, output: str) -> None:
    from ..reporting import utilisation
    from .output import table

    if output in ("json", "yaml"):
        watch.print_data(data(view), output)
        return
    out = table.console()
    states = utilisation.states(view.snapshot)
    titles = ["NODES", *(state.upper() for state in states)]
    counts = [str(len(view.snapshot.nodes)), *(str(n) for n in states.values())]
    table.show(out, table.of_rows(titles, [counts]))
    click.echo()
    titles = ["RESOURCE", "ALLOCATABLE", "ALLOCATED", "RESERVED", "FREE", "STRANDED"]
    table.show(out, table.of_rows(titles, _room(view)))
    click.echo()
    if lines := _levels(view):
        titles = ["TOPOLOGY", "LEVEL", "DOMAINS", "RESOURCE", "LARGEST FREE", "MOST WHOLE NODES"]
        table.show(out, table.of_rows(titles, lines))
        click.echo()
    is_wide = output == "wide"
    listed = [row for row in view.rows if is_wide or row.reason or row.state in SILENT]
    if not listed:
        where = "" if view.namespace is None else f" in namespace {view.namespace}"
        click.echo(f"{'There is no gang' if is_wide else 'No gang waits'}{where}.")
        return
    titles = ["NAMESPACE"] * (view.namespace is None) + ["NAME", "STATE", "BOUND"]
    titles += ["QUEUE"] * bool(view.snapshot.queues)
    titles += ["NODES", "PRIORITY"] * is_wide + ["AGE", "REASON", "MESSAGE"]
    titles += ["DOMAINS"] * (is_wide and bool(view.snapshot.topologies))
    table.show(out, table.of_rows(titles, (_cells(row, view, is_wide=is_wide) for row in listed)))


SILENT = ("waiting", "degraded")  # states that are listed even before a reason is written


def _cells(row: StandingRow, view: View, *, is_wide: bool) -> list[Any]:
    from rich.text import Text

    gang = row.gang
    cells: list[Any] = [gang.key.namespace] * (view.namespace is None)
    cells += [gang.key.name, Text(row.state.value, style=STYLES[row.state.value])]
    cells.append(f"{row.bound}/{row.needed}")
    cells += [row.queue or "-"] * bool(view.snapshot.queues)
    cells += [str(row.nodes), str(gang.priority)] * is_wide
    age = watch.age(gang.created, view.snapshot.taken_at)
    message = row.message or ("" if row.cover is None else str(row.cover))
    cells += [age, row.reason or "-", message]
    shows_domains = is_wide and bool(view.snapshot.topologies)
    return [*cells, *["; ".join(map(str, row.domains)) or "-"] * shows_domains]


def _room(view: View) -> list[list[str]]:
    from ..gang.quantities import format_amount
    from ..reporting import utilisation

    lines = []
    for name, room in utilisation.rooms(view.snapshot).items():
        amounts = (room.allocatable, room.allocated, room.reserved, room.free, room.stranded)
        lines.append([name, *(format_amount(name, n) for n in amounts)])
    return lines


def _levels(view: View) -> list[list[str]]:
    """A row for each level of a Topology and each device, or cpu and memory if there are none."""
    from ..gang.quantities import format_amount
    from ..reporting import utilisation

    levels = utilisation.levels(view.snapshot)
    offered = utilisation.rooms(view.snapshot) if levels else ()
    devices = [name for name in offered if "/" in name]
    lines = []
    for room in levels:
        for name in devices or [name for name in ("cpu", "memory") if name in offered]:
            amount, place = room.largest_free(name)
            free = _within(format_amount(name, amount), place)
            nodes, place = room.largest_whole_nodes(name)
            whole = _within(str(nodes), place) if devices else "-"
            lines.append([room.topology, room.level, str(len(room.domains)), name, free, whole])
    return lines


def _within(amount: str, place: Sequence[str]) -> str:
    """An amount, and the domain that has it; the amount alone if no domain has any."""
    return f"{amount} in {'/'.join(place)}" if place else amount


def data(view: View) -> Mapping[str, Any]:
    """The status as data for programs: docs/plugin.md has the fields."""
    figures = room(view)
    return {
        "nodes": figures["nodes"],
        "states": states(view),
        "resources": figures["resources"],
        "levels": levels(view),
        "gangs": gangs(view),
    }


def room(view: View) -> Mapping[str, Any]:
    """The number of nodes, and the room of the whole cluster by resource."""
    from dataclasses import asdict

    from ..gang.quantities import quantity
    from ..reporting import utilisation

    rooms = utilisation.rooms(view.snapshot)
    return {
        "nodes": len(view.snapshot.nodes),
        "resources": {
            name: {part: quantity(name, n) for part, n in asdict(room).items()}
            for name, room in rooms.items()
        },
    }


def levels(view: View) -> Sequence[Mapping[str, Any]]:
    """The room of each domain, by the levels of Topologies; devices alone make a node whole."""
    from ..gang.quantities import quantity
    from ..reporting import utilisation

    levels = utilisation.levels(view.snapshot)
    offered = [*utilisation.rooms(view.snapshot)] if levels else []
    return [
        {
            "topology": level.topology,
            "label": level.level,
            "domains": [
                {
                    "values": list(values),
                    "nodes": room.nodes,
                    "free": {name: quantity(name, room.free[name]) for name in offered},
                    "wholeNodes": {name: room.whole_nodes[name] for name in offered if "/" in name},
                }
                for values, room in level.domains.items()
            ],
        }
        for level in levels
    ]


def states(view: View) -> Mapping[str, int]:
    """The number of gangs of the cluster in each state."""
    from ..reporting import utilisation

    return {state.value: n for state, n in utilisation.states(view.snapshot).items()}


def gangs(view: View) -> Sequence[Mapping[str, Any]]:
    """A record for each gang of the view."""
    return [
        {
            "namespace": row.gang.key.namespace,
            "name": row.gang.key.name,
            "state": row.state.value,
            "bound": row.bound,
            "needed": row.needed,
            "nodes": row.nodes,
            "priority": row.gang.priority,
            "queue": row.queue,
            "created": row.gang.created,
            "reason": row.reason,
            "message": row.message,
            "cover": None if row.cover is None else cover(row.cover),
            "domains": domains(row),
        }
        for row in view.rows
    ]


def domains(row: StandingRow) -> Sequence[Mapping[str, Any]]:
    """The domains in which the gang has nodes, for each level that it names, as data."""
    from dataclasses import asdict

    return [asdict(level) for level in row.domains]


def cover(gang: GangCover) -> Mapping[str, Any]:
    """What is covered of a gang, as data."""
    return {
        "queue": gang.queue,
        "coveredBy": gang.covered_by,
        "extraPods": gang.extra_pods,
        "mayEndFor": list(gang.may_end_for),
    }
