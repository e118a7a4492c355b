"""Tell people what happened: conditions, Events, PodScheduled, one log line per changed gang.

Separate from the cycle so that a lost report can never touch a decision: no condition is read back
by one, and of the counters only who had succeeded, after a restart (``planning/finishing``). What
stands there already is compared first, so a restart writes nothing.
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from .kube import encode, errors
from .kube.client import Api
from .kube.decode import PodGroup
from .kube.gate import Calling, Gate, is_away
from .model.cluster import Gang, Reservation, Snapshot
from .model.decisions import Plan, Reason, Rejection
from .model.keys import GangKey, NodeName, Uid
from .planning import status as wording
from .planning.notes import Note, notes_of, stray_notes
from .reserving import Released
from .world import World

logger = logging.getLogger(__name__)

SENTENCE_SECONDS = 60.0  # a waiting gang's sentence is rewritten at most this often
AGAIN_SECONDS = 5.0  # until a report is tried again that met a broken server
CONFLICT_SECONDS = 1.0  # or a newer object; watches show it within milliseconds
# Pods of a gang that is still being created are left alone; creation times are whole seconds.
PODS_QUIET_SECONDS = wording.QUIET_SECONDS + 1.0
NOTES_PER_CYCLE = 200  # so that thousands of waiting pods do not delay the next binding
GROUPS_PER_CYCLE = 12  # likewise: while gangs wait for nodes, what others have come to can wait
IN_FLIGHT = 16
LEAST_FORGOTTEN = 1000  # write times kept of PodGroups that may be gone, before they are looked up


class _Silent(NamedTuple):
    """All that is said of a gang depends on, when it needed no word: unchanged, it needs none."""

    gang: Gang
    group: PodGroup | None
    reservation: Reservation | None
    rejection: Rejection | None


class Reporter:
    """Writes the difference between what should be said and what stands there."""

    def __init__(self, world: World, api: Api, scheduler: str, *, of_pods: bool = True) -> None:
        """``scheduler`` is the name that pods ask for; ``of_pods``: are they told things, too."""
        self._world = world
        self._api = api
        self._scheduler = scheduler
        self._of_pods = of_pods
        self._gate = Gate(IN_FLIGHT)
        self._written: dict[Uid, float] = {}  # when each PodGroup's status was last written
        self._nodes: Mapping[NodeName, bool] = {}  # of every node, whether it is ready
        self._most_written = LEAST_FORGOTTEN
        self._mute: dict[Uid, float] = {}  # until when no report is written to an object
        self._silent: dict[Uid, _Silent] = {}  # gangs of which nothing is left to say
        self._shortfall = ("", -math.inf)  # what was said last of a missing proof, and when
        self._left = GROUPS_PER_CYCLE  # of this cycle

    async def report(
        self,
        snapshot: Snapshot,
        plan: Plan,
        released: Sequence[Released],
        refusals: Mapping[GangKey, str],
    ) -> float | None:
        """Write what changed; answers in how many seconds something put off is due.

        An object that cannot be written to is left alone for a while; the others get theirs.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = snapshot.taken_at
        self._log_shortfall(plan.shortfall, now)
        self._left = GROUPS_PER_CYCLE
        self._look_at_nodes(snapshot)
        rejections = {rejection.gang: rejection for rejection in plan.rejections}
        for gang_key, sentence in refusals.items():
            rejections[gang_key] = Rejection(gang_key, Reason.REFUSED, sentence)
        held = {reservation.uid: reservation for reservation in snapshot.reservations}
        given_back = {one.reservation.uid for one in released if one.rest is None}
        gangs = [
            gang
            for gang in snapshot.gangs
            if gang.uid not in given_back
            and not self._is_silent(gang, held.get(gang.uid), rejections.get(gang.key))
        ]
        self._mute = {uid: until for uid, until in self._mute.items() if now < until}
        waits = [until - now for until in self._mute.values()]

        async def tell(gang: Gang) -> None:
            rejection = rejections.get(gang.key)
            waits.append(await self._tell_group(gang, held.get(gang.uid), rejection, now))

        groups = [gang for gang in gangs if not gang.is_single and gang.uid not in self._mute]
        # Not all get their turn in each cycle: first whoever was told nothing for the longest time.
        groups.sort(key=lambda gang: (self._written.get(gang.uid, -math.inf), gang.created))
        await self._gate.all(
            partial(self._spare, gang.uid, now, partial(tell, gang)) for gang in groups
        )
        for one in released:
            about = encode.Regarding.gang(one.reservation.gang, one.reservation.uid)
            await say(self._api, encode.Event(about, one.reason, one.sentence, now, warning=True))
        notes = list(stray_notes(snapshot.strays)) if self._of_pods else []
        for gang in gangs:
            rejection = rejections.get(gang.key)
            if gang.is_single and rejection is None and not _has_waiting(gang):
                self._silence(gang, _Silent(gang, None, None, None))
            if not self._of_pods:
                continue
            quiet_for = now - _newest(gang)
            if quiet_for >= PODS_QUIET_SECONDS:
                notes.extend(notes_of(gang, rejection))
            elif rejection is not None:
                waits.append(PODS_QUIET_SECONDS - quiet_for)
        waits.append(await self._tell_pods(notes, now))
        here = {gang.uid for gang in snapshot.gangs}
        self._forget()
        self._silent = {uid: one for uid, one in self._silent.items() if uid in here}
        return min((wait for wait in waits if wait < math.inf), default=None)

    def _look_at_nodes(self, snapshot: Snapshot) -> None:
        """Whoever has a member on a node that came, went or turned has something to say again."""
        nodes = {node.name: node.ready for node in snapshot.nodes}
        if nodes != self._nodes:
            turned = {name for name, _ in nodes.items() ^ self._nodes.items()}
            self._silent = {
                uid: one
                for uid, one in self._silent.items()
                if turned.isdisjoint(member.node for member in one.gang.members)
            }
            self._nodes = nodes

    def _forget(self) -> None:
        """Forget PodGroups that are gone, now and then: those at rest are many."""
        if len(self._written) > self._most_written:
            known = self._world.groups
            self._written = {u: at for u, at in self._written.items() if known.get(u) is not None}
            self._most_written = 2 * len(self._written) + LEAST_FORGOTTEN

    def _silence(self, gang: Gang, about: _Silent) -> None:
        """Say no more of a gang until it changes; one of which nothing lives is at rest."""
        self._silent[gang.uid] = about
        if gang.is_idle and about.reservation is None:
            self._world.rest(gang)

    def _is_silent(
        self, gang: Gang, reservation: Reservation | None, rejection: Rejection | None
    ) -> bool:
        """Whether nothing has changed since there was nothing left to say of the gang."""
        known = self._silent.get(gang.uid)
        return (
            known is not None
            and known.gang is gang
            and known.reservation is reservation
            and known.rejection == rejection
            and (gang.is_single or known.group is self._world.group(gang.key))
        )

    async def _spare(self, uid: Uid, now: float, tell: Calling) -> None:
        """Tell, or leave an object alone for a while that the API server will not have touched."""
        try:
            await tell()
        except errors.Gone:
            pass  # the watch will tell
        except errors.Conflict:
            self._mute[uid] = now + CONFLICT_SECONDS  # it has changed, and is told once it is seen
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            is_final = isinstance(problem, errors.Refused)
            self._mute[uid] = now + (SENTENCE_SECONDS if is_final else AGAIN_SECONDS)
            logger.error("report on %s not taken: %s", uid, problem)  # noqa: TRY400

    def _log_shortfall(self, shortfall: str, now: float) -> None:
        """Say why a proof is missing; the same at most once a minute, as it may come and go."""
        said, at = self._shortfall
        if shortfall and (shortfall != said or now - at >= SENTENCE_SECONDS):
            logger.warning("no proof: %s", shortfall)
            self._shortfall = (shortfall, now)

    async def _tell_group(
        self, gang: Gang, reservation: Reservation | None, rejection: Rejection | None, now: float
    ) -> float:
        """Write one PodGroup's status if it is time; answers the seconds until it is.

        Whoever is not reached by the words of this cycle is not even looked at: a flood of
        PodGroups must not hold up those that start.
        """
        if self._left < 1:
            return 0.0
        group = self._world.group(gang.key)
        # At a restart the last write is unknown: taken as just now, so that nothing is written.
        never = now if group is not None and group.status else -math.inf
        since_write = now - self._written.setdefault(gang.uid, never)
        if group is None or group.uid != gang.uid:
            return math.inf
        status = wording.status_of(
            gang, reservation, rejection, self._nodes, group.status, scheduler=self._scheduler
        )
        at = encode.timestamp(now)
        is_fresh = since_write < SENTENCE_SECONDS
        wanted = wording.merged(status, group.status, at, keep_sentences=is_fresh)
        newest = wording.merged(status, group.status, at, keep_sentences=False)
        may_stay = wording.may_stay(gang, group.status, self._scheduler)
        if may_stay or wanted == newest == group.status:
            if not _has_waiting(gang):
                self._silence(gang, _Silent(gang, group, reservation, rejection))
            return math.inf
        if wanted == group.status:
            return SENTENCE_SECONDS - since_write
        wanted = newest  # a write that is made anyway contradicts no counter of its own
        wait = wording.patience(
            wanted, group.status, quiet_for=now - _newest(gang), since_write=since_write
        )
        if wait > 0:
            return wait
        self._left -= 1
        await self._write(gang, wanted, wording.news(wanted, group.status), now)
        return math.inf

    async def _write(
        self, gang: Gang, wanted: Mapping[str, Any], news: Sequence[wording.Line], now: float
    ) -> None:
        self._world.learn_group(await self._api.write_status(gang.key, wanted))
        self._written[gang.uid] = now
        about = encode.Regarding.gang(gang.key, gang.uid)
        if news:
            said = "; ".join(f"{line.reason}: {line.message}" for line in news)
            logger.info("gang %s: %s", gang.key, said)
        for line in news:
            is_bad = line.type is wording.Condition.HEALTHY and not line.holds
            await say(
                self._api, encode.Event(about, line.reason, line.message, now, warning=is_bad)
            )

    async def _tell_pods(self, notes: Iterable[Note], now: float) -> float:
        """Say it once per pod and reason; answers 0 seconds where more is left to say."""
        unsaid = [
            note for note in notes if not _is_said(note) and note.member.uid not in self._mute
        ]
        told = sorted(unsaid, key=lambda note: note.member.created)[:NOTES_PER_CYCLE]
        await self._gate.all(
            partial(self._spare, note.member.uid, now, partial(self._tell_pod, note, now))
            for note in told
        )
        return math.inf if len(told) == len(unsaid) else 0.0

    async def _tell_pod(self, note: Note, now: float) -> None:
        why = encode.Why(note.reason, note.message, now)
        self._world.learn(await self._api.say_of_pod(note.member, why))
        if note.is_its_own:
            logger.info("pod %s: %s: %s", note.member.key, note.reason, note.message)
            about = encode.Regarding.pod(note.member.key, note.member.uid)
            event = encode.Event(about, note.reason, note.message, now, warning=True)
            await say(self._api, event)


async def say(api: Api, event: encode.Event) -> None:
    """Create an Event; one that is not taken is let go.

    Raises:
        errors.Unavailable: the API server is away.
    """
    try:
        await api.say(event)
    except errors.ApiError as problem:
        if is_away(problem):
            raise
        # A namespace that is being deleted takes no Events; nobody will miss this one.
        logger.debug("event %s was not taken: %s", event.reason, problem)


def _is_said(note: Note) -> bool:
    """Whether the pod says this already; what its author may change, in these very words."""
    said = note.member.said
    is_same = said.message == note.message[: encode.MESSAGE_LIMIT]
    return said.reason == note.reason and (is_same or not note.may_change)


def _has_waiting(gang: Gang) -> bool:
    return any(member.is_waiting for member in gang.members)


def _newest(gang: Gang) -> float:
    return max((member.created for member in gang.members), default=gang.created)
