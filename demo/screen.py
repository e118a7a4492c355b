"""What the user sees: steps, the live table with its feed, pictures, closing words.

At a terminal the table is redrawn in place; elsewhere the same story comes line by line.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tutti.cli.output.picture import QUIET, ClusterPicture, marks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from tutti.cli.output.picture import Mark, NodeRow

    from .chronicle import Chronicle, Gang, Happening

FEED = 9  # lines of what happened that stay in sight
WIDE = 110  # columns from which the table holds whole sentences
FRAMES = 8  # redraws per second
ROOM_FOR_PICTURE = 46  # lines of a terminal that hold table, feed and picture
SLOW = 3.0  # a step that takes this many times its usual time says so
WORDS = {
    "created": QUIET,
    "reserved": "cyan",
    "bound": "bold green",
    "running": "green",
    "finishing": "magenta",
    "finished": "bold magenta",
    "ended": "bold red",
}


class Screen:
    """Prints; knows whether anybody can see a redraw."""

    def __init__(self, gangs: Sequence[str], console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self.is_live = self.console.is_terminal
        self._gangs = tuple(gangs)
        self._marks = marks(gangs)
        self._printed = 0

    def title(self, text: str) -> None:
        """Begin a part of the story."""
        self.console.print()
        self.console.print(Rule(f"[bold]{text}[/]", align="left", style=QUIET))

    def say(self, text: str) -> None:
        """Say a sentence or more; rich's markup is understood."""
        self.console.print(Padding(Text.from_markup(text), (0, 1)))

    def say_path(self, what: str, path: Path) -> None:
        """Say where a file is; its path stays in one piece."""
        self.console.print(Text.assemble(f" {what}: ", (str(path), "cyan")), soft_wrap=True)

    @contextmanager
    def step(self, what: str, usually: float) -> Iterator[None]:
        """Show that something is under way, for how long, and how long it usually takes."""
        began = time.monotonic()
        waiting = _Step(what, usually, began)
        shown = Live(
            waiting, console=self.console, refresh_per_second=FRAMES, transient=True
        ) if self.is_live else nullcontext()  # fmt: skip
        with shown:
            yield
        seconds = time.monotonic() - began
        self.console.print(f" [green]✓[/] {what} [{QUIET}]{seconds:.1f} s[/]")

    @contextmanager
    def following(self, chronicle: Chronicle) -> Iterator[Follower]:
        """Show the gangs until the block ends."""
        follower = Follower(self, chronicle)
        if not self.is_live:
            yield follower
            return
        with Live(follower, console=self.console, refresh_per_second=FRAMES):
            try:
                yield follower
            finally:
                follower.is_over = True

    def picture(self, rows: Sequence[NodeRow], unit: str) -> ClusterPicture:
        """The cluster as a picture, gangs in their colours."""
        return ClusterPicture(rows, self._gangs, unit=unit)

    def show(self, what: RenderableType) -> None:
        """Print anything."""
        self.console.print(what)

    def print_news(self, chronicle: Chronicle) -> None:
        """Print what happened since the last time, one line each."""
        for happening in chronicle.happenings[self._printed :]:
            self.console.print(self.line(happening), soft_wrap=True)
        self._printed = len(chronicle.happenings)

    def line(self, happening: Happening) -> Text:
        """One thing that happened, in one line."""
        word = happening.word
        return Text.assemble(
            (f"{happening.at:6.1f} s  ", QUIET),
            *self.badge(happening.gang),
            (f" {happening.gang:<10}", "bold"),
            (f" {word:<13} ", WORDS.get(word, "yellow")),
            happening.sentence,
        )

    def badge(self, gang: str) -> tuple[tuple[str, str], ...]:
        """A gang's letter on its colour."""
        mark: Mark | None = self._marks.get(gang)
        return ((f" {mark.letter} ", f"bold {mark.ink} on {mark.colour}"),) if mark else ()

    def table(self, gangs: Mapping[str, Gang]) -> Table:
        """The gangs as a table: what each has come to, and why it waits."""
        table = Table(box=None, padding=(0, 1), header_style=QUIET, expand=True)
        table.add_column("gang", no_wrap=True, width=14)
        table.add_column("phase", no_wrap=True, width=9)
        for name in ("needed", "bound", "running", "done"):
            table.add_column(name, justify="right", no_wrap=True, width=len(name))
        table.add_column("age", justify="right", no_wrap=True, width=4)
        table.add_column("why", ratio=1, overflow="fold")
        is_wide = self.console.width >= WIDE
        for name in self._gangs:
            if gang := gangs.get(name):
                table.add_row(*self._cells(gang, is_wide=is_wide))
        return table

    def waits(self, gangs: Mapping[str, Gang]) -> Iterator[RenderableType]:
        """Why each waits, where the table has no room for sentences."""
        if self.console.width < WIDE:
            for gang in gangs.values():
                if gang.reason:
                    why = Text.assemble((f" {gang.name} waits: ", "yellow"), gang.sentence)
                    yield Padding(why, (0, 1, 0, 1))

    def feed(self, happenings: Iterable[Happening]) -> Table:
        """What happened, one below the other."""
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(justify="right", style=QUIET, no_wrap=True, min_width=8)
        # As wide as the longest that comes, so that nothing jumps.
        for style, width in (("bold", 13), ("", 13)):
            grid.add_column(style=style, no_wrap=True, min_width=width)
        grid.add_column(overflow="fold")
        for happening in happenings:
            gang = Text.assemble(*self.badge(happening.gang), f" {happening.gang}")
            word = Text(happening.word, style=WORDS.get(happening.word, "yellow"))
            grid.add_row(f"{happening.at:.1f} s", gang, word, happening.sentence)
        return grid

    def _cells(self, gang: Gang, *, is_wide: bool) -> tuple[RenderableType, ...]:
        phase, colour = _phase(gang)
        name = Text.assemble(*self.badge(gang.name), f" {gang.name}")
        bound = Text(str(gang.bound), style="green" if gang.is_bound else "")
        waits = Text(gang.reason, style="yellow")
        if is_wide:
            waits.append(f" {gang.sentence}", style="default")
        return (
            name,
            Text(phase, style=colour),
            str(gang.needed),
            bound,
            str(gang.running),
            str(gang.succeeded),
            f"{gang.age:.0f} s",
            waits,
        )


class Follower:
    """The moving part: table, what happened last, and the picture where there is room for it."""

    def __init__(self, screen: Screen, chronicle: Chronicle) -> None:
        self._screen = screen
        self._chronicle = chronicle
        self._first = len(chronicle.happenings)
        self.picture: ClusterPicture | None = None
        self.is_over = False

    @property
    def wants_picture(self) -> bool:
        """Whether the terminal is high enough for a picture that moves."""
        return self._screen.is_live and self._screen.console.height >= ROOM_FOR_PICTURE

    def refresh(self) -> None:
        """Something was seen: where nothing is redrawn, print what is new."""
        if not self._screen.is_live:
            self._screen.print_news(self._chronicle)

    def __rich__(self) -> RenderableType:
        """The present frame; the last one keeps all that happened, but no picture."""
        news = self._chronicle.happenings
        news = news[self._first :] if self.is_over else news[-FEED:]
        gangs = self._chronicle.gangs
        parts: list[RenderableType] = [self._screen.table(gangs), *self._screen.waits(gangs), ""]
        if self.picture is not None and not self.is_over:
            parts += [self.picture, ""]
        return Group(*parts, self._screen.feed(news))


class _Step:
    """A spinner that counts, and says when it takes long."""

    def __init__(self, what: str, usually: float, began: float) -> None:
        self._what, self._usually, self._began = what, usually, began
        self._spinner = Spinner("dots", style="cyan")

    def __rich__(self) -> RenderableType:
        seconds = time.monotonic() - self._began
        late = ", slow machine?" if seconds > SLOW * self._usually else ""
        text = f"{self._what} [{QUIET}]{seconds:.0f} s, usually {self._usually:.0f} s{late}[/]"
        self._spinner.update(text=Text.from_markup(text))
        return self._spinner


def _phase(gang: Gang) -> tuple[str, str]:
    """The gang's phase as its pods show it now; the PodGroup's own may be a second older."""
    if gang.is_finished:
        return "Finished", "bold magenta"
    if gang.is_running:
        return "Running", "bold green"
    if gang.is_bound:
        return "Bound", "green"
    if gang.bound:
        return "Binding", "cyan"
    return ("Waiting", "yellow") if gang.phase in ("New", "Waiting") else (gang.phase, "cyan")
