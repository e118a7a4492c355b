"""What happens, in acts, and whether all of it was seen: the demo fails where it was not."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape

from . import png
from .chronicle import Chronicle, Gang, gang_of
from .cluster import DemoError
from .stage import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .cluster import Manifest
    from .screen import Follower, Screen
    from .stage import Stage

LOOK_SECONDS = 0.3  # between two looks at the cluster
LATE_SECONDS = 1.0  # by which the watch may be later than a look
LATE_LOOK_SECONDS = 0.02  # between two looks at what the watch has told
PICTURE_SECONDS = 1.0  # between two pictures in the live view
HALF_SECONDS = 10.0  # a gang that stays bound in part for longer is not whole
WORK_SECONDS = 3.0  # of the gang that ends for another one
PICTURES = ROOT / "build" / "demo"


class MissedError(DemoError):
    """Something that the story promises was not seen."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may take, in seconds."""

    run: int
    patience: float = 60.0


class Story:
    """Plays on a stage, shows it on a screen, and keeps a chronicle."""

    def __init__(self, stage: Stage, screen: Screen, pace: Pace) -> None:
        self._stage = stage
        self._screen = screen
        self._pace = pace
        self._began = time.monotonic()
        self._created: dict[str, float] = {}
        self.chronicle = Chronicle()
        self.pictures: list[Path] = []
        self.reclaimed = ""  # the Event of the gang that ended; empty if the act is not played

    def play(self) -> None:
        """Tell it all.

        Raises:
            MissedError: something expected was not seen.
        """
        # Reservations live for milliseconds where binding is quick: only a watch sees them.
        pending: list[tuple[float, Manifest]] = []

        def seen(kind: str, reservation: Manifest) -> None:
            if kind == "ADDED":
                pending.append((self._now(), reservation))

        self._pending = pending
        with closing(self._stage.cluster.watch(self._stage.reservations, seen)):
            self._three_arrive()
            self._picture("cluster-1.png", "training and roles run, next and too-large wait")
            self._training_ends()
            self._picture("cluster-2.png", "next has taken the room that training gave back")
            if self._stage.has_queues:
                self._a_guarantee_is_reclaimed()
                self._picture("cluster-3.png", "claimant has the room that borrower gave back")

    def _three_arrive(self) -> None:
        screen, now = self._screen, self.chronicle.when
        screen.title("Act 1: three gangs arrive together, a fourth a moment later")
        screen.say(
            "[b]training[/] is many equal workers; [b]roles[/] is a driver with its workers; "
            "[b]too-large[/] has members that no node could hold.\n[b]next[/] would fit, but not "
            "beside training: it must wait, and a waiting gang holds nothing."
        )
        screen.show("")
        with screen.following(self.chronicle) as follower:
            self._apply("training", "roles", "too-large")
            self._until(
                follower,
                {
                    "training is reserved": lambda: now("training", "reserved") is not None,
                    "training is bound whole": lambda: now("training", "bound") is not None,
                    "roles is reserved": lambda: now("roles", "reserved") is not None,
                    "roles is bound whole": lambda: now("roles", "bound") is not None,
                    "too-large waits with NoNodeFits": lambda: self._waits(
                        "too-large", "NoNodeFits"
                    ),
                },
            )
            self._apply("next")
            self._until(
                follower,
                {
                    "training runs": lambda: now("training", "running") is not None,
                    "roles runs": lambda: now("roles", "running") is not None,
                    "next waits with NotEnoughRoom": lambda: self._waits("next", "NotEnoughRoom"),
                },
            )

    def _training_ends(self) -> None:
        screen, now = self._screen, self.chronicle.when
        screen.title("Act 2: training ends, and next starts by itself")
        screen.say(
            f"training works for about {self._pace.run} s. When enough of its room is free, "
            "next is placed whole, in one cycle."
        )
        screen.show("")
        self._stage.finish("training")
        with screen.following(self.chronicle) as follower:
            self._until(
                follower,
                {
                    "training finishes": lambda: now("training", "finished") is not None,
                    "next is reserved": lambda: now("next", "reserved") is not None,
                    "next is bound whole": lambda: now("next", "bound") is not None,
                    "next runs": lambda: now("next", "running") is not None,
                    "too-large still waits": lambda: self._waits("too-large", "NoNodeFits"),
                },
                extra=self._pace.run,
            )
        ended = [now("training", word) for word in ("finishing", "finished")]
        began = now("next", "bound") or 0.0
        if began < min(at for at in ended if at is not None):
            raise MissedError("next started although training still had its room")

    def _a_guarantee_is_reclaimed(self) -> None:
        screen, now = self._screen, self.chronicle.when
        screen.title("Act 3: a queue gets back what it guarantees")
        screen.say(
            "Queue research guarantees 32 GPUs, and [b]covered[/] uses them; [b]borrower[/], of "
            "the same queue, borrows 16 that queue vision does not use.\n"
            "Then [b]claimant[/] of vision comes. Preemption is on: a gang that borrows ends, and "
            "none that a guarantee covers."
        )
        screen.show("")
        self._stage.add_queues()
        with screen.following(self.chronicle) as follower:
            self._apply("covered")
            self._until(follower, {"covered runs": lambda: now("covered", "running") is not None})
            self._apply("borrower")
            self._until(follower, {"borrower runs": lambda: self._has_worked("borrower")})
            self._apply("claimant")
            self._until(
                follower,
                {
                    "borrower ends for claimant": lambda: now("borrower", "ended") is not None,
                    "claimant is reserved": lambda: now("claimant", "reserved") is not None,
                    "claimant is bound whole": lambda: now("claimant", "bound") is not None,
                    "claimant runs": lambda: now("claimant", "running") is not None,
                    "borrower has gone whole": lambda: not self.chronicle.gangs["borrower"].bound,
                },
            )
        if not self.chronicle.gangs["covered"].is_running or now("covered", "ended") is not None:
            raise MissedError("covered has ended, although its own queue guarantees its room")
        self.reclaimed = self._stage.preempted("borrower")
        if not self.reclaimed:
            raise MissedError("no Event says for whom borrower has ended")
        screen.say(f"What borrower is told, as an Event: [i]{escape(self.reclaimed)}[/]")

    def _has_worked(self, gang: str) -> bool:
        """Whether a gang has run long enough for its end to lose something."""
        began = self.chronicle.when(gang, "running")
        return began is not None and self._now() > began + WORK_SECONDS

    def _waits(self, gang: str, reason: str) -> bool:
        return self.chronicle.gangs.get(gang, Gang(gang)).reason == reason

    def _apply(self, *gangs: str) -> None:
        for gang in gangs:
            self._created[gang] = self._now()
            self._stage.apply(gang)

    def _until(
        self, follower: Follower, expected: Mapping[str, Callable[[], bool]], extra: float = 0.0
    ) -> None:
        """Look again and again until all that is expected has been seen."""
        deadline = time.monotonic() + self._pace.patience + extra
        drawn = 0.0
        while True:
            self._look()
            follower.refresh()
            missing = [what for what, is_so in expected.items() if not is_so()]
            if not missing and not self.chronicle.part_bound(self._now()):
                return
            if time.monotonic() > deadline:
                raise MissedError(f"not seen in time: {'; '.join(missing)}")
            if follower.wants_picture and time.monotonic() - drawn > PICTURE_SECONDS:
                drawn = time.monotonic()
                follower.picture = self._screen.picture(self._stage.rows(), self._stage.unit)
            time.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        pods, groups = self._stage.pods(), self._stage.groups()
        now = self._now()
        ages = {group["metadata"]["name"]: now for group in groups} | {
            name: now - at for name, at in self._created.items()
        }
        gangs = [gang_of(group, pods, ages[group["metadata"]["name"]]) for group in groups]
        self._note_reservations([gang.name for gang in gangs if gang.is_bound])
        self.chronicle.look(now, gangs)
        for gang, seconds in self.chronicle.part_bound(now).items():
            if seconds > HALF_SECONDS:
                raise MissedError(f"{gang} has been bound only in part for {seconds:.0f} s")

    def _note_reservations(self, bound: Sequence[str]) -> None:
        """Note what the watch has told; of a gang that is bound it may tell a moment later."""
        deadline = time.monotonic() + LATE_SECONDS
        while True:
            while self._pending:
                at, reservation = self._pending.pop(0)
                self.chronicle.reserved(at, reservation)
            are_noted = all(self.chronicle.when(gang, "reserved") is not None for gang in bound)
            if are_noted or time.monotonic() > deadline:
                return
            time.sleep(LATE_LOOK_SECONDS)

    def _picture(self, name: str, title: str) -> None:
        """Show the cluster in the terminal, and keep it as a PNG."""
        rows = self._stage.rows()
        picture = self._screen.picture(rows, self._stage.unit)
        self._screen.title(f"The cluster: {title}")
        self._screen.show(picture)
        path = PICTURES / name
        png.draw(picture, title, path)
        self.pictures.append(path)
        self._screen.say_path("The same as a picture", path)

    def _now(self) -> float:
        return time.monotonic() - self._began
