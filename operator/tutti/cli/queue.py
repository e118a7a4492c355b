"""``tutti queue``: the tree of queues, their use of quotas, and the gangs that wait in them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from . import inputs
from .inputs import fail
from .output import watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.text import Text

    from ..model.cluster import Snapshot
    from ..model.decisions import QueueUse
    from ..model.keys import GangKey
    from ..model.queues import Queue
    from ..model.resources import Resources
    from ..planning.queued_gangs import QueuedGangs
    from ..queues.tree import QueueTree

NOT_FOUND = 1
BAR_CELLS = 20
COVERED, CHARGED, FREE, GUARANTEE = "█", "▒", "·", "|"
LEGEND = (
    f"{COVERED} covered, {CHARGED} not covered, {FREE} free, up to the limit or else to all nodes; "
    f"{GUARANTEE} the guarantee"
)
SHADOW_LEGEND = "(in parentheses) a quota of a queue in shadow, which stops and covers no gang"
EXAMPLES = """\b
Examples:
  kubectl tutti queue          # all queues: what they use of their quotas
  kubectl tutti queue vision   # this one, those below it, and their gangs
  kubectl tutti queue -o wide  # also resources without a quota, and weights
  tutti queue -f now.json -o json \\
    | jq '.queues[] | select(.waiting > 0) | .name'
\b
Exit codes: 0 shown; 1 there is no such queue, or the cluster cannot be read;
2 a file, an option or a setting is wrong.
"""


def _queue_names(context: click.Context, _option: click.Parameter, begin: str) -> list[str]:
    """The queues of the files named so far that complete a word."""
    paths = context.params.get("paths")
    if not paths:
        return []
    snapshot, _ = inputs.read_files(paths)
    return [queue.name for queue in snapshot.queues if queue.name.startswith(begin)]


@click.command(
    "queue",
    epilog=EXAMPLES,
    short_help="Show the tree of queues, their quotas and what they use.",
)
@click.argument("queue", required=False, shell_complete=_queue_names)
@inputs.FILES
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml"]),
    default="table",
    show_default=True,
    help="The format.",
)
@click.option("-w", "--watch", "is_watching", is_flag=True, help="Refresh every two seconds.")
@inputs.KUBECONFIG
@inputs.CONTEXT
def command(
    queue: str | None,
    paths: Sequence[str],
    *,
    output: str,
    is_watching: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Show the tree of queues: quotas, what is charged to them, what is covered, and who waits.

    A queue is charged for all gangs in it and in the queues below it. The command computes this
    from the cluster, as the operator does. With QUEUE, it shows this queue and those below it, says
    what is wrong with their declarations, and lists their gangs.
    """
    from .output import live_cluster

    if paths:
        if is_watching:
            fail("-f and -w contradict each other: files do not change while they are read")
        snapshot, _ = inputs.read_files(paths)
        _print(view_of(snapshot, queue), output)
        return

    def look() -> watch.View:
        return watch.look(None, kubeconfig, context)

    try:
        view = look()
    except live_cluster.OutOfReach as problem:
        fail(str(problem), NOT_FOUND)
    _print(view_of(view.snapshot, queue), output)
    if is_watching:
        watch.again(look, lambda view: _print(view_of(view.snapshot, queue), output), time.sleep)


@dataclass(frozen=True, slots=True, eq=False)
class QueueView:
    """The queues of a Snapshot that are shown, and what is known of them."""

    snapshot: Snapshot
    tree: QueueTree
    queued: QueuedGangs
    totals: Mapping[str, int]  # of all nodes, by resource
    faults: Mapping[str, Sequence[str]]  # sentences, by queue
    names: Sequence[str]  # in the order of the tree
    chosen: str  # the requested queue, or empty

    def is_in_shadow(self, name: str) -> bool:
        """Whether the quotas of a queue count for nothing."""
        from ..model.queues import QueueMode

        return self.tree.queues[name].mode is QueueMode.SHADOW

    def guarantees(self, name: str) -> Mapping[str, int]:
        """What a queue guarantees by resource; in shadow, what it would guarantee itself."""
        if self.is_in_shadow(name):
            return dict(self.tree.queues[name].guaranteed)
        return self.tree.guarantees[name]

    def use(self, name: str) -> QueueUse:
        """The use of a queue, as a plan has it."""
        return next(use for use in self.queued.use if use.name == name)

    def past_share(self, name: str) -> float | None:
        """The mean share of a queue in the past; None if the past is not recorded."""
        from ..queues.share import MILLION

        past = self.tree.queues[name].past_use
        return None if past is None else past.mean_at(self.snapshot.taken_at) / MILLION


def view_of(snapshot: Snapshot, chosen: str | None) -> QueueView:
    """The view of a queue and the queues below it; an unknown queue ends the command."""
    import difflib

    from ..model.queues import ROOT
    from ..planning.observed_demand import observe
    from ..planning.queued_gangs import queue_gangs
    from ..queues import tree as queue_tree
    from ..reporting import queue_status

    tree = queue_tree.QueueTree.of(snapshot.queues)
    top = chosen or ROOT
    if top not in tree.queues:
        nearest = difflib.get_close_matches(top, tree.queues, n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        names = (
            f"there are {', '.join(sorted(tree.queues))}" if snapshot.queues else "there are none"
        )
        fail(f"there is no queue {top}{hint or f': {names}'}", NOT_FOUND)
    totals = dict(snapshot.allocatable.amounts)
    faults: dict[str, list[str]] = {}
    for fault in queue_tree.findings(snapshot.queues, totals):
        faults.setdefault(fault.queue, []).append(queue_status.sentence(fault))
    queued = queue_gangs(observe(snapshot))
    return QueueView(snapshot, tree, queued, totals, faults, [*_below(tree, top)], chosen or "")


def _below(tree: QueueTree, name: str) -> Iterator[str]:
    """A queue and all queues below it, parents first."""
    yield name
    for child in tree.children[name]:
        yield from _below(tree, child)


def _print(view: QueueView, output: str) -> None:
    from .output import table

    if output in ("json", "yaml"):
        watch.print_data(data(view), output)
        return
    if not view.snapshot.queues:
        click.echo("There is no Queue: all gangs share the cluster without quotas.")
        return
    is_wide = output == "wide"
    titles = ["QUEUE", "RESOURCE", "USE", "CHARGED", "COVERED", "GUARANTEED", "LIMIT", "WAITING"]
    titles += ["SHARE", *["PAST", "WEIGHT", "MODE"] * is_wide, "STATE"]
    lines = [line for name in view.names for line in _lines(view, name, is_wide=is_wide)]
    out = table.console()
    table.show(out, table.of_rows(titles, lines))
    click.echo(LEGEND)
    if any(view.is_in_shadow(name) for name in view.names):
        click.echo(SHADOW_LEGEND)
    for name in view.names:
        for sentence in view.faults.get(name, ()):
            inputs.say(f"queue {name}: {sentence}")
    if view.chosen:
        click.echo()
        _print_gangs(view)


def _print_gangs(view: QueueView) -> None:
    from ..gang.quantities import format_resources
    from .output import table

    gangs = _gangs(view)
    if not gangs:
        click.echo(f"No gang is in queue {view.chosen}.")
        return
    lines = [
        [str(key), queue, "runs", str(priority), format_resources(charged)]
        if charged.amounts
        else [str(key), queue, "waits", str(priority), "-"]
        for key, queue, priority, charged in gangs
    ]
    titles = ["GANG", "QUEUE", "STATE", "PRIORITY", "CHARGED"]
    table.show(table.console(), table.of_rows(titles, lines))


def _gangs(view: QueueView) -> Sequence[tuple[GangKey, str, int, Resources]]:
    """The gangs of the queues that are shown, with their charge; running gangs come first."""
    from ..model.resources import NOTHING

    names, rows = {*view.names}, []
    for gang in view.snapshot.gangs:
        queue = view.queued.queues.get(gang.key, "")
        charge = view.queued.charges.get(gang.key)
        if queue in names and (charge is not None or not gang.is_idle):
            charged = NOTHING if charge is None else charge.total
            rows.append((gang.key, queue, gang.priority, charged))
    return sorted(rows, key=lambda row: (not row[3].amounts, row[1], -row[2], row[0]))


def _lines(view: QueueView, name: str, *, is_wide: bool) -> Iterator[Sequence[str | Text]]:
    """The rows of a queue: one for each resource with a quota, and at least one."""
    from ..gang.quantities import format_amount
    from ..model.queues import ROOT
    from ..reporting import queue_status

    queue, use = view.tree.queues[name], view.use(name)
    guaranteed, limits = view.guarantees(name), dict(queue.limits)
    quota_text = "({})" if view.is_in_shadow(name) else "{}"
    with_quota = {line for line, n in guaranteed.items() if n} | limits.keys()
    resources = sorted(with_quota | (set(use.charged.names) if is_wide else set()))
    indent = "  " * (view.tree.depths[name] - view.tree.depths[view.names[0]])
    for number, resource in enumerate(resources or [""]):
        is_first = number == 0
        line: list[str | Text] = [f"{indent}{name}" if is_first else "", resource or "-"]
        if resource:
            charged, covered = use.charged[resource], use.covered[resource]
            line.append(_bar(view, queue, resource, charged, covered))
            line += [format_amount(resource, n) for n in (charged, covered)]
            for quotas in (guaranteed, limits):
                quota = quotas.get(resource)
                amount = "-" if quota is None else format_amount(resource, quota)
                line.append(amount if quota is None else quota_text.format(amount))
        else:
            line += ["-"] * 5
        line += [str(use.waiting), queue_status.percent(use)] if is_first else ["", ""]
        if is_wide:
            past = view.past_share(name)
            mean = "-" if past is None else f"{int(past * 100)}%"
            line += [mean, str(queue.weight), queue.mode.value] if is_first else [""] * 3
        state = "" if name == ROOT else _state(view, name)
        state += ", in shadow" if view.is_in_shadow(name) else ""
        yield [*line, state if is_first else ""]


def _bar(view: QueueView, queue: Queue, resource: str, charged: int, covered: int) -> str:
    """A bar of covered, other charged, and free cells, up to the limit or the cluster's total."""
    limit = dict(queue.limits).get(resource, view.totals.get(resource, 0))
    whole = max(limit, charged, 1)

    def cells(n: int) -> int:
        return -(-n * BAR_CELLS // whole)

    bar = [COVERED] * cells(covered)
    bar += [CHARGED] * (cells(charged) - len(bar))
    bar += [FREE] * (BAR_CELLS - len(bar))
    guarantee = view.guarantees(queue.name).get(resource, 0)
    if guarantee > 0:
        bar.insert(min(cells(guarantee), BAR_CELLS), GUARANTEE)
    return "".join(bar)


def _state(view: QueueView, name: str) -> str:
    """In one word, what keeps gangs from starting in the queue, or what is wrong with it."""
    from ..reporting import queue_status

    conditions = queue_status.conditions(view.tree, name, (), is_empty=False)
    state = next(line.reason for line in conditions if line.type == "Accepting")
    return f"{state}, not valid" if view.faults.get(name) else state


def data(view: QueueView) -> Mapping[str, Any]:
    """The queues as data for programs: docs/plugin.md has the fields."""
    from ..gang.quantities import quantity

    def amounts(items: Any) -> Mapping[str, str]:
        return {resource: quantity(resource, n) for resource, n in items}

    queues = []
    for name in view.names if view.snapshot.queues else ():
        queue, use = view.tree.queues[name], view.use(name)
        queues.append(
            {
                "name": name,
                "parent": view.tree.parents.get(name, ""),
                "depth": view.tree.depths[name],
                "guaranteed": amounts(view.tree.guarantees[name].items()),
                "limits": amounts(queue.limits),
                "charged": amounts(use.charged.amounts),
                "covered": amounts(use.covered.amounts),
                "borrowed": amounts(use.borrowed.amounts),
                "waiting": use.waiting,
                "share": float(use.share),
                "pastShare": view.past_share(name),
                "weight": queue.weight,
                "stop": queue.stop.value,
                "mode": queue.mode.value,
                "wouldStop": [
                    {"gang": str(key), "kind": key.kind.kind} for key in use.stopped_in_shadow
                ],
                "state": _state(view, name),
                "faults": [*view.faults.get(name, ())],
            }
        )
    gangs = [
        {
            "gang": str(key),
            "kind": key.kind.kind,
            "queue": queue,
            "priority": priority,
            "charged": amounts(charged.amounts),
        }
        for key, queue, priority, charged in _gangs(view)
    ]
    return {"queues": queues, "gangs": gangs}
