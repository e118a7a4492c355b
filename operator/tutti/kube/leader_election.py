"""Leader election on a Lease: one replica leads, and the others stand by with a current state.

A Lease alone does not stop an old leader: a leader that was paused takes itself for the leader
until it reads the Lease. The preconditions of every write make that harmless
(docs/decisions/0005). The election of ``kubernetes.aio`` is not used, because after a pause its
leader continues for up to the renew deadline.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from ..model.decisions import Mode
from ..model.keys import LeaderTerm, Lease
from . import errors
from .client import Api, Leases
from .codec import encode

logger = logging.getLogger(__name__)

LEASE_SECONDS = 10  # so long after the last renewal, a standby may take over
RENEW_SECONDS = 2.0  # between two looks at the Lease, as leader and as standby
# So long after the last renewal, the name counts as that of Tutti: all replicas may be away for a
# rollout, or since a node failed. Then another scheduler of this name may begin unnoticed.
KNOWN_SECONDS = 600.0
DEADLINE_SECONDS = 8.0  # so long after the last renewal, the leader begins no further cycle


class Deposed(Exception):  # noqa: N818 - named for the situation, as in ``kube.errors``
    """The term has ended; another replica leads, or may lead."""


class NameTaken(Exception):  # noqa: N818 - as above
    """Another scheduler with the same name runs."""


class LeasesOfName(Protocol):
    """Reads the Leases with the name of the scheduler: ours, and those in other namespaces."""

    async def read_lease(self) -> Lease:
        """Our own Lease; raises ``errors.ApiError``."""

    async def other_leases(self) -> Mapping[str, Lease]:
        """The Leases by namespace; raises ``errors.ApiError``."""


async def assert_name_is_free(
    api: LeasesOfName, name: str, now: Callable[[], float], mode: Mode
) -> None:
    """Check that no other scheduler with this name runs; most hold a Lease of their name.

    If the rights to list Leases are missing, the name counts as free. So it does if the last
    renewal is far from now, before or after. ``now`` returns seconds since the epoch.

    Tenants may write Leases in their namespaces, but not in ours. So the name is ours, whatever
    other Leases say, if our Lease shows that a Tutti led in the last ``KNOWN_SECONDS``, actively or
    in the ``mode`` of this replica: otherwise a tenant could keep Tutti from starting again. Beside
    a Tutti that is not active, another scheduler of its name may have been started.

    Raises:
        NameTaken: there is such a scheduler, and both would bind the same pods.
        errors.ApiError: the API server is away.
    """
    try:
        leases = await api.other_leases()
    except errors.Refused:
        return
    living = [
        f"{lease.holder} holds the Lease {namespace}/{name}"
        for namespace, lease in leases.items()
        if lease.holder and _is_renewed(lease, now(), max(lease.seconds, 1))
    ]
    if not living:
        return
    own, holding = await api.read_lease(), ", ".join(living)
    if own.mode not in (Mode.ACTIVE, mode) or not _is_renewed(own, now(), KNOWN_SECONDS):
        raise NameTaken(
            f"another scheduler named {name} runs: {holding}; stop it, or give Tutti another "
            "name (TUTTI_SCHEDULER_NAME)"
        )
    logger.error("%s, the name of this scheduler; it is ignored: Tutti goes on", holding)


def _is_renewed(lease: Lease, now: float, seconds: float) -> bool:
    """Whether the last renewal is less than so many seconds from now, before or after."""
    return abs(now - _moment(lease.renewed)) < seconds


def _moment(text: str) -> float:
    """A time in seconds since the epoch; minus infinity if it cannot be read."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return -math.inf


async def assert_leader(api: Api, term: LeaderTerm) -> None:
    """Check that the Lease still has this term, after a write and before anything depends on it.

    Raises:
        Deposed: the Lease has another term.
        errors.ApiError: the Lease cannot be read.
    """
    if (await api.read_lease()).term != term:
        raise Deposed("the Lease names another term")


class Election:
    """Acquires the Lease, renews it while this replica leads, and keeps the term."""

    def __init__(
        self,
        leases: Leases,
        identity: str,
        *,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        changed: Callable[[], None],
        mode: Mode,
    ) -> None:
        """``clock`` gives the dates to write; ``monotonic`` measures the time between renewals.

        ``changed`` is called when a term begins or ends. The Lease says in which ``mode`` this
        replica leads.
        """
        self._leases = leases
        self._identity = identity
        self._clock = clock
        self._monotonic = monotonic
        self._changed = changed
        self._mode = mode
        self._seen = Lease()  # at the last look
        self._seen_since = 0.0  # monotonic seconds: when it last changed
        self._renewed_at = 0.0  # monotonic seconds: when our last renewal was sent
        self._follows_itself = True  # our identity in the Lease is from before a restart
        self._claimed: LeaderTerm = ""  # the last term that we requested; the answer may be lost
        self.term: LeaderTerm = ""  # empty unless this replica leads
        self.follows_resignation = False  # the last leader gave the Lease back after its calls
        self.trouble = "the Lease has not been read yet"

    @property
    def transitions(self) -> int:
        """The leaseTransitions of the Lease at the last look."""
        return self._seen.transitions

    async def campaign(self) -> None:
        """Look at the Lease for ever: acquire it, renew it, or wait until its holder stops."""
        while True:
            await self.look()
            await asyncio.sleep(RENEW_SECONDS)

    async def look(self) -> None:
        """Read the Lease once and act on it; after an error, log and wait."""
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await self._step()
        except errors.Conflict:
            self.trouble = ""  # another replica was faster; the next look shows which
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
        """Give the Lease back at a clean exit, so that a standby takes over without a wait."""
        if not self.term:
            return
        try:
            now = encode.moment(self._clock())
            async with asyncio.timeout(DEADLINE_SECONDS):
                free = replace(self._seen, holder="", seconds=1, renewed=now)
                await self._leases.write_lease(free)
        except (errors.ApiError, TimeoutError) as problem:
            logger.info("the Lease was not given back: %s", str(problem) or "no answer")
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
            mode=self._mode,
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
