"""Leader election on a Lease: one replica decides at a time, the others stand by, warm.

A Lease alone fences nothing: a leader that was paused believes in its term until it looks. What
makes that harmless is elsewhere, in the preconditions of every write (docs/decisions/0005). Not
``kubernetes.aio``'s: that one leads on for up to its renew deadline after a pause.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from ..model.keys import LeaderTerm, Lease
from . import errors
from .client import Api, Leases
from .codec import encode

logger = logging.getLogger(__name__)

LEASE_SECONDS = 10  # without a renewal, until a standby may take over
RENEW_SECONDS = 2.0  # between two looks at the Lease, as leader and as standby
DEADLINE_SECONDS = 8.0  # without a renewal, until the leader begins no further cycle


class Deposed(Exception):  # noqa: N818 - named for the situation, as those of ``kube.errors`` are
    """The term has ended; another replica leads, or may."""


class NameTaken(Exception):  # noqa: N818 - as above
    """Another scheduler lives that has the same name."""


class OtherLeases(Protocol):
    """The Leases of the scheduler's name in other namespaces."""

    async def other_leases(self) -> Mapping[str, Lease]:
        """The Leases by namespace; raises ``errors.ApiError``."""


async def assert_name_is_free(api: OtherLeases, name: str, now: Callable[[], float]) -> None:
    """Look for a living scheduler of the same name: most hold a Lease of their name.

    Where the rights to look are missing, nothing is known, and the name counts as free.

    Raises:
        NameTaken: there is one; two would bind the same pods.
        errors.ApiError: the API server is away.
    """
    try:
        leases = await api.other_leases()
    except errors.Refused:
        return
    for namespace, lease in leases.items():
        if lease.holder and now() - _moment(lease.renewed) < max(lease.seconds, 1):
            raise NameTaken(
                f"another scheduler named {name} runs: {lease.holder} holds the Lease "
                f"{namespace}/{name}; stop it, or give Tutti another name (TUTTI_SCHEDULER_NAME)"
            )


def _moment(text: str) -> float:
    """When a Lease was renewed; long ago where that cannot be read."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return -math.inf


async def assert_leader(api: Api, term: LeaderTerm) -> None:
    """Read the Lease after a write, before anything follows from that write.

    Raises:
        Deposed: it names another term.
        errors.ApiError: the Lease cannot be read.
    """
    if (await api.read_lease()).term != term:
        raise Deposed("the Lease names another term")


class Election:
    """Campaigns for the Lease, renews it while it is held, and knows the term."""

    def __init__(
        self,
        leases: Leases,
        identity: str,
        *,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        """``clock`` dates what is written; ``monotonic`` measures how long others were silent.

        ``changed`` is called when a term begins or ends.
        """
        self._leases = leases
        self._identity = identity
        self._clock = clock
        self._monotonic = monotonic
        self._changed = changed
        self._seen = Lease()  # as of the last look
        self._seen_since = 0.0  # monotonic seconds: when it last changed
        self._renewed_at = 0.0  # monotonic seconds: when our last renewal was sent
        self._follows_itself = True  # our name in the Lease is a dead predecessor's
        self._claimed: LeaderTerm = ""  # the last that we requested; the answer may be lost
        self.term: LeaderTerm = ""  # while we lead
        self.follows_resignation = False  # the last leader had ended all its calls
        self.trouble = "the Lease has not been read yet"

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands, as of the last look."""
        return self._seen.transitions

    async def campaign(self) -> None:
        """Look at the Lease for ever: take it, renew it, or wait until its holder is silent."""
        while True:
            await self.look()
            await asyncio.sleep(RENEW_SECONDS)

    async def look(self) -> None:
        """Read the Lease once and act on it; after an error, log and wait."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await self._step()
        except errors.Conflict:
            self.trouble = ""  # someone was faster: the next look tells who
        except (errors.ApiError, TimeoutError) as problem:
            sentence = f"Lease: {str(problem) or 'no answer'}"
            if sentence != self.trouble:
                logger.warning("%s Will try again", sentence)
            self.trouble = sentence
        else:
            self.trouble = ""
        if self.term and self._monotonic() - self._renewed_at > DEADLINE_SECONDS:
            self.stand_down("the Lease could not be renewed in time")

    def stand_down(self, why: str) -> None:
        """End the term."""
        if self.term:
            logger.warning("stands down as leader: %s", why)
            self.term = ""
            self._changed()

    async def resign(self) -> None:
        """Give the Lease back at a clean exit, so that a standby need not wait."""
        if not self.term:
            return
        try:
            now = encode.moment(self._clock())
            await self._leases.write_lease(replace(self._seen, holder="", seconds=1, renewed=now))
        except errors.ApiError as problem:
            logger.info("the Lease was not given back: %s", problem)
        self.term = ""

    async def _step(self) -> None:
        lease = await self._leases.read_lease()
        now = self._monotonic()
        if lease.version != self._seen.version or not self._seen_since:
            if lease.holder not in (self._seen.holder, self._identity, ""):
                logger.info("stands by: %s leads", lease.holder)
            self._seen, self._seen_since = lease, now
        if self.term:
            if lease.term == self.term:
                await self._renew(lease, now)
                return
            self.stand_down(f"{lease.holder or 'nobody'} holds the Lease")
        if self._is_free(lease, now):
            await self._acquire(lease, now)

    def _is_free(self, lease: Lease, now: float) -> bool:
        if not lease.holder or lease.term == self._claimed:
            return True
        if lease.holder == self._identity and self._follows_itself:
            return True
        return now - self._seen_since > max(lease.seconds, 1)

    async def _renew(self, lease: Lease, now: float) -> None:
        await self._write(replace(lease, renewed=encode.moment(self._clock())), now)

    async def _acquire(self, lease: Lease, now: float) -> None:
        at = encode.moment(self._clock())
        mine = Lease(
            holder=self._identity,
            acquired=at,
            renewed=at,
            seconds=LEASE_SECONDS,
            transitions=lease.transitions + (lease.version != ""),
            version=lease.version,
        )
        self._claimed = mine.term
        self.follows_resignation = lease.version != "" and not lease.holder
        await self._write(mine, now)
        self._follows_itself = False
        self.term = self._seen.term
        logger.info("leads as %s", self._identity)
        self._changed()

    async def _write(self, lease: Lease, now: float) -> None:
        self._seen = await self._leases.write_lease(lease)
        self._seen_since = self._renewed_at = now
