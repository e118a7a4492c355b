"""A cluster as a picture in the terminal: a row for each node, a cell for each slot.

This is pure: it turns plain values into something that rich can print, fitted to the width. The
colours can be told apart by colour-blind readers, and every cell also names its gang by a letter,
so colour is not needed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from string import ascii_uppercase, digits

from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

# Okabe and Ito's colours without black; neighbours in the order differ most.
PALETTE = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
QUIET = "#8A8A8A"  # for slots of no gang
_HATCH = "╱"  # noqa: RUF001 - a line, not a slash
_TIMES = "×"  # noqa: RUF001 - a multiplication
_DARK = 0.45  # below this luminance, letters are white
_LETTERS = ascii_uppercase + digits
# Forms of a slot, best first; the last slot of a pod lacks its last column, to separate pods.
_CELLS = (" {}  ", "{} ", "{}")
_FRAME = 4  # a panel's border and padding
_LONGEST_NAME = 24


class Hold(Enum):
    """How a slot is taken: bound, reserved, or by a pod of another scheduler."""

    BOUND = "bound"
    RESERVED = "reserved"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Block:
    """Slots of one node that one pod takes; ``gang`` is empty for a pod of no gang."""

    gang: str
    slots: int
    hold: Hold = Hold.BOUND


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node in the picture; slots without a block are free."""

    name: str
    kind: str
    slots: int
    blocks: tuple[Block, ...] = ()

    @property
    def free(self) -> int:
        """The number of free slots."""
        return max(0, self.slots - sum(block.slots for block in self.blocks))


def by_kind(nodes: Iterable[NodeRow]) -> Sequence[tuple[str, Sequence[NodeRow]]]:
    """The nodes of each kind, in the order of their first appearance."""
    kinds: dict[str, list[NodeRow]] = {}
    for node in nodes:
        kinds.setdefault(node.kind, []).append(node)
    return list(kinds.items())


@dataclass(frozen=True, slots=True)
class Mark:
    """The letter and the colour of a gang."""

    letter: str
    colour: str

    @property
    def ink(self) -> str:
        """The colour of letters on this colour."""
        return ink_on(self.colour)


def ink_on(colour: str) -> str:
    """Black or white, whichever is readable on a colour written as #RRGGBB."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return "#FFFFFF" if 0.3 * red + 0.59 * green + 0.11 * blue < _DARK else "#000000"


def marks(gangs: Iterable[str]) -> Mapping[str, Mark]:
    """A mark for each gang in this order; its letter is from its name if one is unused."""
    chosen: dict[str, Mark] = {}
    letters_in_use: set[str] = set()
    for number, gang in enumerate(dict.fromkeys(gangs)):
        own = [letter for letter in gang.upper() if letter in _LETTERS]
        spare = _LETTERS[number % len(_LETTERS)]
        letter = next(
            (candidate for candidate in [*own, *_LETTERS] if candidate not in letters_in_use), spare
        )
        letters_in_use.add(letter)
        chosen[gang] = Mark(letter, PALETTE[number % len(PALETTE)])
    return chosen


@dataclass(frozen=True, slots=True)
class ClusterPicture:
    """The picture; rich prints it in the available width.

    ``gangs`` gives the order of colours and legend. ``rows`` is how many nodes of a kind are shown
    before the others are summed up in one line.
    """

    nodes: Sequence[NodeRow]
    gangs: Sequence[str]
    unit: str = "GPU"
    rows: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print panels, one per kind of node, side by side as far as they fit; then the legend."""
        has_colour = console.color_system is not None and not console.no_color
        if not self.nodes:
            yield Text("no nodes", style=QUIET)
            return
        kinds = by_kind(self.nodes)
        width = options.max_width
        cell = next((c for c in _CELLS if sum(self._widths(kinds, c)) <= width), "")
        # If they do not fit side by side in any size, they go below one another, as large as
        # possible.
        cell = cell or next((c for c in _CELLS if max(self._widths(kinds, c)) <= width), _CELLS[-1])
        look = _Look(marks(self._all_gangs()), cell, has_colour=has_colour)
        line: list[Panel] = []
        used = 0
        for (kind, nodes), needs in zip(kinds, self._widths(kinds, cell), strict=True):
            if line and used + needs > width:
                yield _side_by_side(line)
                line, used = [], 0
            line.append(self._panel(kind, nodes, look, min(needs, width)))
            used += needs
        if line:
            yield _side_by_side(line)
        yield self._legend(look, width)

    def _all_gangs(self) -> list[str]:
        with_blocks = [block.gang for node in self.nodes for block in node.blocks if block.gang]
        return list(dict.fromkeys([*self.gangs, *with_blocks]))

    def _widths(self, kinds: Sequence[tuple[str, Sequence[NodeRow]]], cell: str) -> list[int]:
        widths = []
        for kind, nodes in kinds:
            row = _name_width(nodes) + 1 + len(cell.format(0)) * max(node.slots for node in nodes)
            # One more than the text: rich puts a space on both sides of it.
            words = max(len(self._title(kind, nodes)), len(_room(nodes))) + 1
            widths.append(max(row, words) + _FRAME)
        return widths

    def _title(self, kind: str, nodes: Sequence[NodeRow]) -> str:
        sizes = {node.slots for node in nodes}
        size = f"{_TIMES}{sizes.pop()} {self.unit}" if len(sizes) == 1 else f" nodes, {self.unit}"
        return f"{kind} {len(nodes)}{size}"

    def _panel(self, kind: str, nodes: Sequence[NodeRow], look: "_Look", width: int) -> Panel:
        visible_nodes = nodes[: self.rows]
        names = _name_width(nodes)
        body = Text(no_wrap=True, overflow="fold")
        for number, node in enumerate(visible_nodes):
            body.append("\n" if number else "")
            body.append(_clipped(node.name, names).ljust(names + 1), style="default")
            body.append_text(look.cells(node))
        rest = nodes[len(visible_nodes) :]
        if rest:
            body.append(f"\n… {len(rest)} more: {_room(rest)}", style=QUIET)
        return Panel(
            body,
            title=Text(self._title(kind, nodes), style="bold"),
            subtitle=Text(_room(nodes)),
            border_style=QUIET,
            width=width,
        )

    def _legend(self, look: "_Look", width: int) -> Text:
        """The slots of each gang; an entry is never broken over two lines."""
        legend, used = Text(), 0
        for entry in self._entries(look):
            if used and used + len(entry) > width:
                legend.append("\n")
                used = 0
            legend.append(" ").append_text(entry).append("  ")
            used += len(entry) + 3
        return legend

    def _entries(self, look: "_Look") -> Iterator[Text]:
        blocks = [block for node in self.nodes for block in node.blocks]
        for gang, mark in look.marks.items():
            bound = sum(b.slots for b in blocks if b.gang == gang and b.hold is Hold.BOUND)
            reserved = sum(b.slots for b in blocks if b.gang == gang and b.hold is Hold.RESERVED)
            if bound or not reserved:
                amount = f" {gang} {bound or 'none'}"
                yield Text.assemble(look.swatch(mark, Hold.BOUND), amount)
            if reserved:
                yield Text.assemble(
                    look.swatch(mark, Hold.RESERVED), f" {gang} reserved {reserved}"
                )
        if foreign := sum(b.slots for b in blocks if b.hold is Hold.FOREIGN):
            yield Text.assemble(("▒", QUIET), f" others {foreign}")
        yield Text.assemble(("·", QUIET), f" {self.unit}: {_room(self.nodes)}")


@dataclass(frozen=True, slots=True)
class _Look:
    """How slots are drawn: marks, the width of a cell, and whether there is colour."""

    marks: Mapping[str, Mark]
    cell: str
    has_colour: bool

    def cells(self, node: NodeRow) -> Text:
        """A node's slots, pod by pod, then the free slots."""
        text = Text()
        for block in sorted(node.blocks, key=self._order):
            text.append_text(self._block(block))
        text.append(self.cell.format("·") * node.free, style=QUIET)
        return text

    def swatch(self, mark: Mark, hold: Hold) -> Text:
        """A cell for the legend."""
        if hold is Hold.RESERVED:
            return Text(f"{_HATCH}{mark.letter}{_HATCH}", style=f"bold {mark.colour}")
        return Text(f" {mark.letter} ", style=f"bold {mark.ink} on {mark.colour}")

    def _order(self, block: Block) -> tuple[int, str, int]:
        gangs = list(self.marks)
        place = gangs.index(block.gang) if block.gang in self.marks else len(gangs)
        return (place, block.hold.value, -block.slots)

    def _block(self, block: Block) -> Text:
        """A pod's slots as one bar; the gap to the next bar has no colour."""
        if block.hold is Hold.FOREIGN:
            return self._bar("▒", "▒", block.slots, QUIET)
        mark = self.marks[block.gang]
        if block.hold is Hold.RESERVED:
            return self._bar(mark.letter, _HATCH, block.slots, f"bold {mark.colour}")
        filling = " " if self.has_colour else "─"
        style = f"bold {mark.ink} on {mark.colour}"
        return self._bar(mark.letter, filling, block.slots, style)

    def _bar(self, letter: str, filling: str, slots: int, style: str) -> Text:
        body = self.cell.replace(" ", filling).format(letter) * slots
        gap = 1 if len(self.cell.format(letter)) > 1 else 0
        return Text.assemble((body[: len(body) - gap], style), " " * gap)


def _side_by_side(panels: Sequence[Panel]) -> Table:
    grid = Table.grid()
    for _ in panels:
        grid.add_column(vertical="top", no_wrap=True)
    grid.add_row(*panels)
    return grid


def _room(nodes: Sequence[NodeRow]) -> str:
    """How many slots of these nodes are free."""
    return f"{sum(node.free for node in nodes)} of {sum(node.slots for node in nodes)} free"


def _name_width(nodes: Sequence[NodeRow]) -> int:
    return min(_LONGEST_NAME, max(len(node.name) for node in nodes))


def _clipped(name: str, width: int) -> str:
    """The name, shortened in the middle if it is too long: the ends tell nodes apart."""
    if len(name) <= width:
        return name
    head = (width - 1) // 3
    return f"{name[:head]}…{name[len(name) - (width - 1 - head) :]}"
