"""Plans and their differences as tables: coloured at a terminal, plain lines in a pipe."""

import re
from collections.abc import Iterable, Mapping, Sequence

import click
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ...gang.quantities import count
from ...model.decisions import Claim, Plan
from ...model.keys import NodeName
from ...model.terminal import visible
from .plan_diff import ChangeKind, GangAnswer, GangChange, GangRow

MOST_NODES = 6  # nodes named in one line
PIPE_WIDTH = 10_000  # in a pipe, a row is one line, however long
LEAST_FOLDED = 20  # columns that a folding column needs on a terminal
GAP = 2  # between two columns
FILLING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$")
STYLES: Mapping[GangAnswer, str] = {
    GangAnswer.STARTS: "bold green",
    GangAnswer.GROWS: "green",
    GangAnswer.RESERVED: "cyan",
    GangAnswer.BOUND: "",
    GangAnswer.EVICTED: "red",
    GangAnswer.WAITS: "yellow",
    GangAnswer.OVER: "dim",
}
KINDS: Mapping[ChangeKind, str] = {
    ChangeKind.STARTED: "bold green",
    ChangeKind.STOPPED: "bold red",
    ChangeKind.MOVED: "cyan",
    ChangeKind.REASON: "yellow",
}


def console() -> Console:
    """Standard output in its own width; a pipe is very wide and has no colour."""
    out = Console(highlight=False, markup=False)
    if out.is_terminal:
        return out
    return Console(highlight=False, markup=False, width=PIPE_WIDTH, no_color=True)


def show(out: Console, what: RenderableType) -> None:
    """Print; in a pipe, and on a terminal that is too narrow for a table, rows are not folded."""
    is_cut = isinstance(what, Table) and _is_too_narrow(out, what)
    if out.is_terminal and not is_cut:
        out.print(what)
        return
    width, out.width = out.width, PIPE_WIDTH
    with out.capture() as printed:
        out.print(what)
    out.width = width
    # Without the blanks that fill up columns, even those within a style.
    click.echo("\n".join(FILLING.sub(r"\1", line) for line in printed.get().splitlines()))


def _is_too_narrow(out: Console, table: Table) -> bool:
    """Whether columns would be cut or folded too narrowly; then the terminal folds the lines."""
    widths = {
        index: max(
            Measurement.get(out, out.options, cell).maximum
            for cell in (column.header, *column.cells)
        )
        for index, column in enumerate(table.columns)
    }
    rigid = sum(n + GAP for index, n in widths.items() if table.columns[index].no_wrap)
    folding = [n for index, n in widths.items() if not table.columns[index].no_wrap]
    return out.width < rigid + sum(min(n, LEAST_FOLDED) for n in folding)


def of_lines(lines: Iterable[GangRow]) -> Table:
    """One row per gang."""
    table = _table("GANG", "PRIORITY", "NEEDED", "ANSWER", "NODES, OR WHY NOT")
    for line in lines:
        where = _cell(_places(line.nodes))
        if line.reason:
            where = Text.assemble((line.reason, "yellow"), f" {visible(line.sentence)}")
        answer = Text(line.answer.value, style=STYLES[line.answer])
        gang = line.gang
        table.add_row(_cell(str(gang.key)), str(gang.priority), str(line.needed), answer, where)
    return table


def of_rows(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> Table:
    """A table in the style of kubectl; only the last column folds, if necessary."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(_cell(column), no_wrap=column != columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def of_changes(changes: Iterable[GangChange]) -> Table:
    """One row per gang with another result."""
    table = _table("GANG", "CHANGE", "BEFORE", "AFTER")
    for change in changes:
        kind = Text(change.kind.value, style=KINDS.get(change.kind, ""))
        cells = map(_cell, (_answer_text(change.before), _answer_text(change.after)))
        table.add_row(_cell(str(change.gang)), kind, *cells)
    return table


def summary(lines: Sequence[GangRow], plan: Plan) -> str:
    """The plan in one sentence, and whether it is proved to be the best."""
    starts = sum(line.answer is GangAnswer.STARTS for line in lines)
    waits = sum(line.answer is GangAnswer.WAITS for line in lines)
    counts = f"{count(starts, 'gang')} would start, {waits} would wait"
    if plan.proved:
        return f"{counts}; proved: no better admission exists"
    return f"{counts}; not proved{': ' + plan.shortfall if plan.shortfall else ''}{_gap(plan)}"


def _gap(plan: Plan) -> str:
    """How far the plan may be from the best, at the highest priority without a proof."""
    short = "" if plan.gap is None else f"at most {plan.gap:.2%} below the best"
    if plan.open_level is None or len(plan.levels) == 1:
        return f"; {short}" if short else ""
    first = f"; the highest priority without a proof is {plan.open_level.priority}"
    return f"{first}: {short}" if short else first


def claim(made: Claim) -> str:
    """Who would end so that a gang starts, in one sentence."""
    right = "a guarantee covers it" if made.by_guarantee else "its priority is higher"
    victims = [
        f"{count(len(victim.members), 'pod' if victim.is_whole else 'extra pod')} of {victim.gang}"
        for victim in made.victims
    ]
    ends = ", ".join(victims) or "pods that terminate already"
    return visible(f"so that {made.gang} starts, these would end: {ends}; {right}")


def difference(changes: Sequence[GangChange]) -> str:
    """The number of gangs with another result, in one sentence."""
    if not changes:
        return "no gang changes"
    counted = [
        f"{n} {kind.value}"
        for kind in ChangeKind
        if (n := sum(change.kind is kind for change in changes))
    ]
    return f"{count(len(changes), 'gang')} would change: {', '.join(counted)}"


def _cell(content: str | Text) -> Text:
    """The content of a cell, printed literally: names and messages are not markup."""
    return content if isinstance(content, Text) else Text(visible(content))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_number = column in ("PRIORITY", "NEEDED")
        is_long = column in ("NODES, OR WHY NOT", "BEFORE", "AFTER")
        table.add_column(
            column, justify="right" if is_number else "left", no_wrap=not is_long, overflow="fold"
        )
    return table


def _places(nodes: Mapping[NodeName, int]) -> str:
    on_nodes = [f"{n} on {name}" for name, n in list(nodes.items())[:MOST_NODES]]
    rest = len(nodes) - len(on_nodes)
    return ", ".join([*on_nodes, *([f"{rest} more nodes"] if rest else [])])


def _answer_text(line: GangRow | None) -> str:
    if line is None:
        return "-"
    if line.reason:
        return f"{line.answer.value}: {line.reason}"
    return f"{line.answer.value}: {_places(line.nodes)}" if line.nodes else line.answer.value
