"""Report what happened: conditions, Events, PodScheduled, and one log line per changed gang.

A lost report cannot change a decision, because no decision reads a condition. Decisions read what
a gang lost by earlier ends (``status.LostWork``) and, after a restart, the phase of a gang and how
many of its members had succeeded (``gang/finished_members.py``). A report that an object already
has is not written again, so a restart writes nothing.
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from ..gang import domain_rules
from ..gang.findings import Quoted
from ..kube import errors
from ..kube.backoff import Wait
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.concurrency import Calling, ConcurrencyLimit, is_away
from ..kube.gang_sources import GangObject, status_writer
from ..model.cluster import Gang, Node, Snapshot
from ..model.decisions import Plan, Reason, Rejection, Released
from ..model.keys import GangKey, NodeName, Uid
from ..state.cluster_state import ClusterState
from . import drafts
from . import status as wording
from .events import PodNotice, create_event, notices_of
from .pod_conditions import PodCondition, not_shown, notes_of, stray_notes
from .unchanged import GangReport, ReportCache

if TYPE_CHECKING:
    from ..model.inter_pod import Topology

logger = logging.getLogger(__name__)

SENTENCE_SECONDS = 60.0  # a waiting gang's sentence is rewritten at most this often
AGAIN_SECONDS = 5.0  # until a report is tried again after the API server failed
CONFLICT_SECONDS = 1.0  # the same after a conflict; watches show the change within milliseconds
# Pods of a gang that is still being created are left alone; creation times are whole seconds.
PODS_QUIET_SECONDS = drafts.QUIET_SECONDS + 1.0
MOST_AHEAD_SECONDS = 2.0  # dates that are further ahead of our clock are ignored
NOTES_PER_CYCLE = 200  # so that thousands of waiting pods do not delay the next binding
# For the same reason a cycle writes few statuses. But each cycle looks at all gangs whose report is
# due. So of thousands of them it writes a share, which makes the next cycles shorter.
GROUPS_PER_CYCLE, SHARE_PER_CYCLE = 4, 1 / 50
IN_FLIGHT = 16
LEAST_FORGOTTEN = 1000  # write times of deleted PodGroups are dropped once so many more are kept


class _StatusUpdate(NamedTuple):
    """The status that a PodGroup should have, and the conditions in it that are news."""

    gang: Gang
    status: Mapping[str, Any]
    news: Sequence[wording.GangCondition]
    events: Sequence[wording.GangCondition]  # the news that are also Events
    version: str = ""  # the resourceVersion that the status is for; empty for any
    overwrites: bool = False  # see ``Draft``


class Reporter:
    """Writes each report that differs from what its object has now."""

    def __init__(
        self, state: ClusterState, api: Api, scheduler: str, *, of_pods: bool = True
    ) -> None:
        """``scheduler`` is the schedulerName of pods; ``of_pods`` is whether pods get reports."""
        self._state = state
        self._api = api
        self._scheduler = scheduler
        self._of_pods = of_pods
        self._gate = ConcurrencyLimit(IN_FLIGHT)
        self._written: dict[Uid, float] = {}  # when each PodGroup's status was last written
        self._overwritten: dict[Uid, float] = {}  # when the status of another Tutti was overwritten
        self._nodes: Mapping[NodeName, bool] = {}  # of every node, whether it is ready
        self._labelled_nodes: Mapping[NodeName, Node] = {}  # none while there is no Topology
        self._topologies: Sequence[Topology] = ()
        self._most_written = LEAST_FORGOTTEN
        self._waits: dict[Uid, Wait] = {}  # by object: no report is written to it meanwhile
        self._unchanged = ReportCache()
        self._reported_at = -math.inf
        self._noticed: dict[Uid, set[tuple[Uid, str]]] = {}  # by gang: Events sent about its pods
        self._shortfall = ("", -math.inf)  # the last log line about a missing proof, and its time

    async def report(
        self,
        snapshot: Snapshot,
        plan: Plan,
        released: Sequence[Released],
        refusals: Mapping[GangKey, str],
        *,
        placed: Sequence[Gang] = (),
    ) -> float | None:
        """Write the reports that changed; return in how many seconds a delayed report is due.

        ``placed`` has gangs as they were before this cycle bound their pods, which may run by now.
        An object whose write fails is not tried again for a while; the other objects get their
        reports. None means that no report is delayed.

        Raises:
            errors.Unavailable: the API server is away.
        """
        now = snapshot.taken_at
        self._log_shortfall(plan.shortfall, now)
        self._waits = {uid: wait for uid, wait in self._waits.items() if wait.left(now)}
        if now < self._reported_at - MOST_AHEAD_SECONDS:
            self._unchanged = ReportCache()  # the clock went back: its times are far ahead
        self._reported_at = now
        self._forget(snapshot)
        all_about = self._all_about(snapshot, plan, released, refusals)
        changed, quiet_until = self._unchanged.changed(all_about, now)
        if self._of_pods:
            notices = self._missing_notices(chain((about.gang for about in changed), placed))
            await self._gate.all(
                partial(self._tell_notice, uid, notice, now)
                for uid, notice in notices[:NOTES_PER_CYCLE]
            )
        updates, notes, next_at = self._status_updates(changed, now)
        await self._gate.all(
            partial(self._tell_or_back_off, update.gang.uid, now, partial(self._write, update, now))
            for update in updates
        )
        for release in released:
            about = encode.Regarding.gang(release.reservation.gang, release.reservation.uid)
            await create_event(
                self._api, encode.Event(about, release.reason, release.sentence, now, warning=True)
            )
        if self._of_pods:
            notes += not_shown(stray_notes(snapshot.strays, self._state.group))
            next_at = min(next_at, await self._tell_pods(notes, now))
        next_at = min(next_at, quiet_until, *(wait.until for wait in self._waits.values()))
        return None if next_at == math.inf else max(0.0, next_at - now)

    def _all_about(
        self,
        snapshot: Snapshot,
        plan: Plan,
        released: Sequence[Released],
        refusals: Mapping[GangKey, str],
    ) -> Iterable[GangReport]:
        """The inputs of each gang's report, without the gangs whose Reservation was given back."""
        rejections = {rejection.gang: rejection for rejection in plan.rejections}
        for gang_key, sentence in refusals.items():
            rejections[gang_key] = Rejection(gang_key, Reason.REFUSED, (Quoted(sentence),))
        reservations = {reservation.uid: reservation for reservation in snapshot.reservations}
        claims = {
            victim.uid: reservation
            for reservation in snapshot.reservations
            for victim in reservation.victims or ()
        }
        given_back = {release.reservation.uid for release in released if release.rest is None}
        basic = (
            GangReport(group, self._state.group(group.key), None, None)
            for group in self._state.one_by_one()
            if self._writes_status(group)
        )
        gangs = (
            GangReport(
                gang,
                self._state.group(gang.key) if self._writes_status(gang) else None,
                reservations.get(gang.uid),
                rejections.get(gang.key),
                claims.get(gang.uid),
            )
            for gang in snapshot.gangs
            if gang.uid not in given_back
        )
        return chain(gangs, basic)

    def _writes_status(self, gang: Gang) -> bool:
        """Whether Tutti writes the status of a gang's object.

        If other controllers act on the status, Tutti writes it only for gangs with pods that name
        this scheduler, or for jobs that Tutti has claimed.
        """
        writer = status_writer(gang.key.kind)
        if writer is None or not writer.has_effects:
            return writer is not None
        return self._of_pods and (bool(gang.members) or self._state.is_own_job(gang))

    def _forget(self, snapshot: Snapshot) -> None:
        """Forget the gangs that are gone, and the reports that depend on changed nodes.

        Such a report is about a gang with a member on a node that appeared, disappeared, or changed
        its readiness. Write times are forgotten only now and then, because many PodGroups are at
        rest.
        """
        nodes = {node.name: node.ready for node in snapshot.nodes}
        self._topologies = snapshot.topologies
        self._labelled_nodes = {n.name: n for n in snapshot.nodes} if snapshot.topologies else {}
        turned: set[NodeName] = set()
        if nodes != self._nodes:
            turned = {name for name, _ in nodes.items() ^ self._nodes.items()}
        self._nodes = nodes
        here = {gang.uid for gang in chain(snapshot.gangs, self._state.one_by_one())}
        self._unchanged.forget(here, turned)
        self._noticed = {uid: keys for uid, keys in self._noticed.items() if uid in here}
        self._overwritten = {uid: at for uid, at in self._overwritten.items() if uid in here}
        if len(self._written) > self._most_written:
            groups = self._state.groups
            self._written = {u: at for u, at in self._written.items() if groups.get(u) is not None}
            self._most_written = 2 * len(self._written) + LEAST_FORGOTTEN

    def _status_updates(
        self, all_about: list[GangReport], now: float
    ) -> tuple[Sequence[_StatusUpdate], list[PodCondition], float]:
        """The statuses and pod conditions to write now, and until when no more are due.

        Each cycle writes the statuses of all victims of claims, because what they lose is known
        only while the claim stands, and a share of the others; the gangs that were written longest
        ago come first. Once the share is used up, the statuses of further gangs are not computed,
        so that many PodGroups do not delay the gangs that start. Reports that need no write are
        cached.
        """
        updates: list[_StatusUpdate] = []
        notes: list[PodCondition] = []
        next_at = math.inf
        most = max(GROUPS_PER_CYCLE, int(len(all_about) * SHARE_PER_CYCLE))
        all_about.sort(key=self._turn)
        for about in all_about:
            missing_conditions, quiet_until, reworded = self._missing_conditions(about, now)
            notes += missing_conditions
            if about.group is None:
                until = math.inf
            elif len(updates) >= most and about.claim is None:
                next_at = now
                continue
            else:
                update_or_until = self._of_group(about, about.group, now)
                if isinstance(update_or_until, _StatusUpdate):
                    updates.append(update_or_until)
                    continue
                until = update_or_until
                reworded = min(reworded, self._written[about.gang.uid] + SENTENCE_SECONDS)
            until = min(until, quiet_until)
            next_at = min(next_at, until)
            if not missing_conditions:
                self._note_unchanged(about, until, reworded)
        return updates, notes, next_at

    def _turn(self, about: GangReport) -> tuple[bool, float, float]:
        written = self._written.get(about.gang.uid, -math.inf)
        return about.claim is None, written, about.gang.created

    def _note_unchanged(self, about: GangReport, until: float, reworded: float) -> None:
        """Skip a gang until its report changes; a gang without live pods is at rest."""
        self._unchanged.keep(about, until, reworded)
        if until == math.inf and about.gang.is_idle and about.reservation is None:
            self._state.rest(about.gang)

    def _of_group(self, about: GangReport, group: GangObject, now: float) -> _StatusUpdate | float:
        """The status that a PodGroup should have now, or until when its status may stay."""
        gang, rejection = about.gang, about.rejection
        # After a restart the last write is unknown. It is taken to be now, so nothing is written.
        never = now if group.status else -math.inf
        # If the clock went back, the last write counts as made now.
        written = self._written[gang.uid] = min(self._written.get(gang.uid, never), now)
        if (wait := self._waits.get(gang.uid)) is not None:
            return wait.until
        status = wording.status_of(
            gang,
            about.reservation,
            rejection,
            self._nodes,
            group.status,
            scheduler=self._scheduler,
            preference_note=self._preference_note(about),
            claim=about.claim,
        )
        draft = drafts.draft(
            gang,
            status,
            group,
            encode.timestamp(now),
            is_fresh=now < written + SENTENCE_SECONDS,
            quiet_for=now - _newest(gang, now),
            since_write=now - written,
        )
        if draft.may_stay or draft.status == draft.newest == group.status:
            return math.inf
        if draft.status == group.status:
            return written + SENTENCE_SECONDS
        if draft.wait > 0:
            return now + draft.wait
        if draft.overwrites:  # two scheduler names may have pods in one PodGroup
            until = min(self._overwritten.get(gang.uid, -math.inf), now) + SENTENCE_SECONDS
            if now < until:
                return until
        events = drafts.worth_events(draft.news, group.status)
        return _StatusUpdate(
            gang, draft.newest, draft.news, events, draft.version, draft.overwrites
        )

    def _preference_note(self, about: GangReport) -> str:
        """Which preferred levels of a topology the gang does without."""
        if not about.gang.preferred_domains:
            return ""
        places = domain_rules.places_of(about.gang, about.reservation)
        return domain_rules.preference_note(
            about.gang, places, self._labelled_nodes, self._topologies
        )

    def _missing_conditions(
        self, about: GangReport, now: float
    ) -> tuple[Sequence[PodCondition], float, float]:
        """The conditions that pods lack, and until when nothing changes.

        The third value is the same time for the case that the reason has other words.
        """
        gang = about.gang
        if not (self._of_pods and any(member.is_waiting for member in gang.members)):
            return (), math.inf, math.inf
        quiet_until = _newest(gang, now) + PODS_QUIET_SECONDS
        if now < quiet_until:
            return (), quiet_until, quiet_until
        notes = list(notes_of(gang, about.rejection))
        reworded = -math.inf if any(note.may_change for note in notes) else math.inf
        return not_shown(notes), math.inf, reworded

    async def _tell_or_back_off(self, uid: Uid, now: float, tell: Calling) -> None:
        """Write a report; after a failure, write nothing to its object for a while."""
        try:
            await tell()
        except errors.Gone:
            pass  # the watch will show it
        except errors.Conflict:
            self._waits[uid] = Wait.begun(now, CONFLICT_SECONDS)  # a watch will show the change
        except errors.ApiError as problem:
            if is_away(problem):
                raise
            is_final = isinstance(problem, errors.Refused)
            seconds = SENTENCE_SECONDS if is_final else AGAIN_SECONDS
            self._waits[uid] = Wait.begun(now, seconds)
            logger.error("the report on %s failed: %s", uid, problem)  # noqa: TRY400

    def _log_shortfall(self, shortfall: str, now: float) -> None:
        """Log why a proof is missing; the same reason at most once a minute."""
        logged, at = self._shortfall
        if shortfall and (shortfall != logged or abs(now - at) >= SENTENCE_SECONDS):
            logger.warning("the plan is not proved to be the best: %s", shortfall)
            self._shortfall = (shortfall, now)

    async def _write(self, update: _StatusUpdate, now: float) -> None:
        gang = update.gang
        self._state.learn_group(
            await self._api.write_status(gang.key, update.status, update.version)
        )
        self._written[gang.uid] = now
        if update.overwrites:
            self._overwritten[gang.uid] = now
        about = encode.Regarding.gang(gang.key, gang.uid)
        if update.news:
            text = "; ".join(f"{line.reason}: {line.message}" for line in update.news)
            logger.info("gang %s: %s", gang.key, text)
        for line in update.events:
            is_bad = line.type is wording.ConditionType.HEALTHY and not line.holds
            await create_event(
                self._api, encode.Event(about, line.reason, line.message, now, warning=is_bad)
            )

    async def _tell_pods(self, notes: Iterable[PodCondition], now: float) -> float:
        """Write pod conditions, the oldest pods first; return when more are due."""
        writable = [note for note in notes if note.member.uid not in self._waits]
        first = sorted(writable, key=lambda note: note.member.created)[:NOTES_PER_CYCLE]
        await self._gate.all(
            partial(
                self._tell_or_back_off, note.member.uid, now, partial(self._tell_pod, note, now)
            )
            for note in first
        )
        return math.inf if len(first) == len(writable) else now

    def _missing_notices(self, gangs: Iterable[Gang]) -> Sequence[tuple[Uid, PodNotice]]:
        """The Events about pods that are not created yet, with the uid of the pod's gang."""

        def is_declared(key: GangKey) -> bool:
            return self._state.group(key) is not None

        missing = {
            notice.key: (gang.uid, notice)
            for gang in gangs
            for notice in notices_of(gang, is_declared)
            if notice.key not in self._noticed.get(gang.uid, ())
        }
        return list(missing.values())

    async def _tell_notice(self, gang: Uid, notice: PodNotice, now: float) -> None:
        """Create an Event about a pod, and remember it."""
        key, uid = notice.member.key, notice.member.uid
        logger.info("pod %s: %s: %s", key, notice.reason, notice.message)
        about = encode.Regarding.pod(key, uid)
        event = encode.Event(about, notice.reason, notice.message, now, warning=True)
        await create_event(self._api, event)
        self._noticed.setdefault(gang, set()).add(notice.key)

    async def _tell_pod(self, note: PodCondition, now: float) -> None:
        why = encode.Why(note.reason, note.message, now)
        self._state.pods.learn(await self._api.say_of_pod(note.member, why))
        if note.is_its_own:
            logger.info("pod %s: %s: %s", note.member.key, note.reason, note.message)
            about = encode.Regarding.pod(note.member.key, note.member.uid)
            event = encode.Event(about, note.reason, note.message, now, warning=True)
            await create_event(self._api, event)


def _newest(gang: Gang, now: float) -> float:
    """When the last member of a gang, or else the gang, was created.

    Dates that are far ahead of our clock are ignored.
    """
    created = [member.created for member in gang.members] or [gang.created]
    return max((at for at in created if at <= now + MOST_AHEAD_SECONDS), default=-math.inf)
