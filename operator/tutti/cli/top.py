"""``tutti top``: what each gang holds of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .output import watch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .output.gang_rows import StandingRow
    from .output.watch import View

EXAMPLES = """\b
Examples:
  kubectl tutti top -A        # the gang that holds most comes first
  kubectl tutti top -o wide   # with every resource that a gang holds
  kubectl tutti top --queue research   # of this queue and those below it
\b
Exit codes: 0 shown; 1 the cluster cannot be read;
2 an option or a setting is wrong.
"""


@click.command(
    "top", epilog=EXAMPLES, short_help="Show what gangs hold of the cluster, largest first."
)
@watch.options
def command(**options: Any) -> None:
    """Show what gangs hold: bound and reserved members, their nodes and their requests.

    The gang with the largest share of any resource of the cluster comes first. Gangs that wait hold
    nothing, so the list leaves them out.
    """
    watch.show(_print, **options)


def _print(view: View, output: str) -> None:
    from ..gang.quantities import format_amount
    from .output import table
    from .output.gang_rows import largest

    rows = largest(view.rows, view.snapshot)
    if output in ("json", "yaml"):
        watch.print_data({"gangs": [_data(row) for row in rows]}, output)
        return
    if not rows:
        where = "" if view.namespace is None else f" in namespace {view.namespace}"
        click.echo(f"No gang holds room{where}.")
        return
    names = _resources(rows, is_wide=output == "wide")
    titles = ["NAMESPACE"] * (view.namespace is None) + ["NAME", "STATE", "HELD", "NODES"]
    has_queues = bool(view.snapshot.queues)
    titles += ["QUEUE"] * has_queues
    lines = [
        [
            *[row.gang.key.namespace] * (view.namespace is None),
            *(row.gang.key.name, row.state.value, f"{row.held}/{row.needed}", str(row.nodes)),
            *[row.queue or "-"] * has_queues,
            *(format_amount(name, row.resources[name]) for name in names),
        ]
        for row in rows
    ]
    table.show(table.console(), table.of_rows([*titles, *map(str.upper, names)], lines))


def _resources(rows: Sequence[StandingRow], *, is_wide: bool) -> Sequence[str]:
    """CPU, memory and devices; with ``is_wide``, all held resources except ports and pods."""
    from ..model import ports

    names = {name for row in rows for name in row.resources.names}
    usual = ["cpu", "memory"]
    more = sorted(
        name
        for name in names.difference([*usual, "pods"])
        if not ports.is_port(name) and (is_wide or "/" in name)
    )
    return [*usual, *more]


def _data(row: StandingRow) -> Mapping[str, Any]:
    from ..gang.quantities import listed

    return {
        "namespace": row.gang.key.namespace,
        "name": row.gang.key.name,
        "state": row.state.value,
        "held": row.held,
        "needed": row.needed,
        "nodes": row.nodes,
        "queue": row.queue,
        "resources": dict(listed(row.resources)),
    }
