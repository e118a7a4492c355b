"""The gangs: PodGroups with their pods, and single pods; computed again where something changed.

The cluster state says which node each pod has.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ..gang import demand, finished_members, refusals
from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, Member, Phase, Reservation
from ..model.keys import POD, POD_GROUP, GangKey, Uid
from . import membership
from .applications import Applications


class GangIndex:
    """PodGroups and members by gang, and their gangs; an unchanged gang is the same object."""

    def __init__(
        self,
        value_of: Callable[[str], int | None],
        holding: Callable[[GangKey], Iterable[Reservation]],
        roles: Callable[[GangKey], Mapping[Uid, str]],
        *,
        is_declaring: bool,
        reads_task_groups: bool = False,
    ) -> None:
        """``value_of`` gives the value of a PriorityClass, or None if there is no such class.

        ``holding`` gives the Reservations that hold room for a gang. ``roles`` gives the roles with
        which pods joined it, as far as these are written down. If ``is_declaring``, this operator
        makes the PodGroups of Spark applications, and Spark pods without a PodGroup wait for it.
        If it ``reads_task_groups``, the same holds for applications of YuniKorn.
        """
        self._value_of = value_of
        self._holding = holding
        self._roles = roles
        self._apps = Applications(
            self.group,
            lambda key: any(holding(key)),
            is_declaring=is_declaring,
            reads_task_groups=reads_task_groups,
        )
        self._members: dict[Uid, Member] = {}
        self._by_gang: dict[GangKey, dict[Uid, Member]] = {}
        self._group_by_key: dict[GangKey, GangObject] = {}
        self._awaiting_room: set[GangKey] = set()
        self._own_jobs: dict[GangKey, Uid] = {}  # gangs of jobs that name our scheduler
        self._made: dict[GangKey, Gang] = {}  # without the gangs at rest
        self._strays: dict[GangKey, tuple[Member, ...]] = {}
        # Pods that name a group whose pods start one by one, as they were put in.
        self._apart: dict[GangKey, dict[Uid, Member]] = {}
        self._group_of: dict[Uid, GangKey] = {}  # the groups of the pods in ``_apart``
        self._basic: dict[GangKey, Gang] = {}
        self._finished: dict[GangKey, list[Member]] = {}  # members that succeeded and are gone
        self._settled: dict[GangKey, Uid] = {}
        self._stale: set[GangKey] = set()
        self._queues: frozenset[str] = frozenset()  # the names of all Queues
        self._is_moved = False  # whether a gang went to rest since the last ``look``
        self.gangs: tuple[Gang, ...] = ()  # sorted by key
        self.settled: frozenset[Uid] = frozenset()
        self.strays: tuple[Member, ...] = ()  # as in Snapshot

    def group(self, key: GangKey) -> GangObject | None:
        """The object that declares a gang, with its current status."""
        return self._group_by_key.get(key)

    def gang(self, key: GangKey) -> Gang | None:
        """A gang as of the last ``look``; None if it is at rest."""
        return self._made.get(key)

    def awaiting_room(self) -> Iterable[tuple[GangObject, Gang]]:
        """The gangs without pods whose pods are created once there is room, with their objects.

        Pods that are over do not count, because they stay when a job is resumed.
        """
        for key in self._awaiting_room:
            group = self._group_by_key[key]
            has_pods = any(not member.is_over for member in self._by_gang.get(key, {}).values())
            if not (has_pods or group.terminating):
                yield group, Gang.of(self._queued(group), (), self._value_of(group.priority_class))

    def one_by_one(self) -> Iterable[Gang]:
        """The groups whose pods start one by one, each with a pod that has a node.

        They are no gangs; this is for the status of their objects alone.
        """
        return self._basic.values()

    def claim_job(self, group: GangObject) -> None:
        """Record that the pods that a job will create for this group name our scheduler."""
        self._own_jobs[group.key] = group.uid
        self._stale.add(group.key)  # Tutti writes its status from now on

    def is_own_job(self, key: GangKey, uid: Uid) -> bool:
        """Whether the job of a gang was claimed."""
        return self._own_jobs.get(key) == uid

    def look(self) -> None:
        """Bring ``gangs``, ``settled`` and ``strays`` up to date."""
        if not (self._stale or self._is_moved):
            return
        self._is_moved = False
        if self._remake_stale():
            self._made = dict(sorted(self._made.items()))
        self.gangs, self.settled = tuple(self._made.values()), frozenset(self._settled.values())
        strays = [member for members in self._strays.values() for member in members]
        self.strays = tuple(sorted(strays, key=lambda member: member.key))

    def tidy(self) -> None:
        """Forget what changed of gangs that do not exist, now or as of the last ``look``.

        A ``look`` forgets it, too. But at the first ``look`` at a gang its status says how many
        members have succeeded, so a replica that stands by looks at no gang before it leads.
        """
        here = (self._group_by_key, self._by_gang, self._made, self._strays, self._basic)
        self._stale = {key for key in self._stale if any(key in gangs for gangs in here)}

    def rest(self, gang: Gang) -> None:
        """Leave a gang out until something about it changes, unless pods of it are strays."""
        if gang.key in self._strays:
            return
        if gang.key not in self._stale and self._made.pop(gang.key, None) is not None:
            self._settled.pop(gang.key, None)
            self._is_moved = True

    def touch(self, keys: Iterable[GangKey]) -> None:
        """Compute these gangs again at the next ``look``."""
        self._stale.update(keys)

    def class_changed(self) -> None:
        """Compute the gangs that name a PriorityClass again; classes are few and seldom change."""
        groups = self._group_by_key.items()
        self._stale.update(key for key, group in groups if group.priority_class)

    def queues_changed(self, names: frozenset[str]) -> None:
        """Take in the names of all Queues."""
        changed, self._queues = self._queues ^ names, names
        groups = self._group_by_key.items()
        self._stale.update(key for key, group in groups if group.queue_if_exists in changed)

    def group_changed(self, old: GangObject | None, new: GangObject | None) -> None:
        """Take in a group, and keep the newest group of its name.

        The deletion of an older group of that name may be shown after its creation.
        """
        group = new or old
        if group is None:
            return
        key = group.key
        known = before = self._group_by_key.get(key)
        if new is not None and (known is None or known.uid == new.uid or _is_older(known, new)):
            self._group_by_key[key] = new
        elif new is None and known is not None and known.uid == group.uid:
            del self._group_by_key[key]
        self._stale.add(key)
        now = self._group_by_key.get(key)
        if now is not None and now.job_awaiting_room is not None:
            self._awaiting_room.add(key)
        else:
            self._awaiting_room.discard(key)
        if before and (now is None or now.uid != before.uid):
            self._finished.pop(key, None)
            self._own_jobs.pop(key, None)
        if (before and (before.uid, before.owner)) != (now and (now.uid, now.owner)):
            self.look_at_app(key)  # its pods may join another gang now
        if (before is not None and before.is_one_by_one) != (now is not None and now.is_one_by_one):
            named = (*self._apart.get(key, {}).values(), *self._by_gang.get(key, {}).values())
            for member in named:
                self.member_changed(member.uid, member)

    def look_at_app(self, key: GangKey) -> None:
        """Put the pods of a Spark application into their gangs again."""
        for member in self._apps.of(key):
            self._put(member.uid, member)

    def member_changed(self, uid: Uid, member: Member | None) -> None:
        """Put a pod into the gang that it belongs to now, and remove it from any other gang."""
        if (known := self._group_of.pop(uid, None)) is not None:
            self._stale.add(known)
            del self._apart[known][uid]
            if not self._apart[known]:
                del self._apart[known]
        if member is not None and member.group:
            member = self._without_group(member)
        self._put(uid, self._apps.joined(uid, member))

    def _without_group(self, member: Member) -> Member:
        """The pod without its group if the pods of the group start one by one.

        The pod is then in the next gang that it names, if any.
        """
        group = self._group_by_key.get(member.gang)
        if group is None or not group.is_one_by_one:
            return member
        self._stale.add(group.key)
        self._apart.setdefault(group.key, {})[member.uid] = member
        self._group_of[member.uid] = group.key
        gangs = [] if member.application is not None else member.other_gangs
        if not gangs:
            return replace(member, group="", group_kind=POD_GROUP, other_gangs=())
        next_gang, *remaining_gangs = gangs
        return replace(
            member,
            group=next_gang.name,
            group_kind=next_gang.kind,
            other_gangs=tuple(remaining_gangs),
        )

    def undeclared(self) -> tuple[Member, ...]:
        """The Spark pods from which the PodGroups of their applications can be made."""
        return self._apps.undeclared()

    def explain(self, uid: Uid, sentence: str) -> None:
        """Record why the PodGroup that a pod waits for is not made yet."""
        if (member := self._apps.explained(uid, sentence)) is not None:
            self._put(uid, member)

    def _put(self, uid: Uid, member: Member | None) -> None:
        # A pod that changes keeps its place: to remove and add it again would double the dicts.
        old, gang = self._members.get(uid), None if member is None else member.gang
        if old is not None and old.gang != gang:
            self._take_out(uid, old, is_gone=member is None)
        if member is not None and gang is not None:
            self._stale.add(gang)
            self._members[uid] = member
            self._by_gang.setdefault(gang, {})[uid] = member

    def _take_out(self, uid: Uid, old: Member, *, is_gone: bool) -> None:
        """Take a pod out of its gang: it is gone, or of another gang now."""
        key = old.gang
        self._stale.add(key)
        siblings = self._by_gang[key]
        del self._members[uid], siblings[uid]
        if is_gone and old.phase is Phase.SUCCEEDED:
            self._finished.setdefault(key, []).append(old)
        if not siblings:
            del self._by_gang[key]
            if is_gone:
                self._finished.pop(key, None)

    def _remake_stale(self) -> bool:
        """Compute the gangs again that changed; return whether there is a new key."""
        is_longer = False
        for key in self._stale:
            gang = self._gang(key)
            self._settled.pop(key, None)
            if gang is None:
                self._made.pop(key, None)
            else:
                if demand.is_settled(gang):
                    self._settled[key] = gang.uid
                is_longer |= key not in self._made
                self._made[key] = gang
            self._basic.pop(key, None)
            if (placed := self._placed_one_by_one(key)) is not None:
                self._basic[key] = placed
            if strays := self._strays_of(key):
                self._strays[key] = strays
            else:
                self._strays.pop(key, None)
        self._stale.clear()
        return is_longer

    def _placed_one_by_one(self, key: GangKey) -> Gang | None:
        """A group whose pods start one by one, with the first pod that has a node; or None."""
        group = self._group_by_key.get(key)
        if group is None or not group.is_one_by_one:
            return None
        pods = self._apart.get(key, {}).values()
        placed = next((member for member in pods if member.counts_as_bound), None)
        if placed is None:
            return None
        return Gang.of(group, (replace(placed, other_gangs=()),), None)

    def _strays_of(self, key: GangKey) -> tuple[Member, ...]:
        """The pods that name this key and are not members of its gang.

        These are all pods if there is no such group. Otherwise they are bound pods of older runs,
        bound pods that another scheduler binds than the members, and pods of a deleted object.
        """
        members = tuple(self._by_gang.get(key, {}).values())
        if key.kind == POD:
            return ()
        if (group := self._group_by_key.get(key)) is None:
            return members
        current = membership.current(members, group)
        return tuple(
            member
            for member in members
            if not (member.uid in current and refusals.is_bound_by_its_scheduler(group, member))
            and (member.node is not None or not membership.is_for(member, group))
            and not member.is_over
        )

    def _gang(self, key: GangKey) -> Gang | None:
        members = tuple(sorted(self._by_gang.get(key, {}).values(), key=lambda member: member.key))
        if key.kind == POD:
            if not members:
                return None
            alone = members[0]
            return Gang(key, alone.uid, 1, members=members, created=alone.created)
        group = self._group_by_key.get(key)
        if group is None or group.is_one_by_one:
            return None
        current = membership.current(members, group)
        members = tuple(
            member
            for member in members
            if member.uid in current or (member.is_over and membership.is_for(member, group))
        )
        class_value = group.priority_value
        if class_value is None:
            class_value = self._value_of(group.priority_class)
        members = refusals.members_of(group, self._as_joined(key, members))
        gang = self._in_its_run(Gang.of(self._queued(group), members, class_value))
        gang = membership.in_stage(gang, group, self._reservation_of(gang))
        before = group.succeeded_before
        if key not in self._made and (recalled := finished_members.recalled(gang, before)):
            self._finished[key] = list(recalled)
        roles = [member.role for member in self._finished.get(key, ())]
        return finished_members.with_finished(gang, roles)

    def _as_joined(self, key: GangKey, members: tuple[Member, ...]) -> tuple[Member, ...]:
        """The members with the roles with which they joined, whatever their labels say now."""
        if not (roles := self._roles(key)):
            return members
        return tuple(
            member
            if (role := roles.get(member.uid, member.role)) == member.role
            else replace(member, role=role)
            for member in members
        )

    def _queued(self, group: GangObject) -> GangObject:
        """The group with the queue of ``queue_if_exists``, if a Queue of that name exists."""
        queue = group.queue_if_exists
        return replace(group, queue=queue) if queue in self._queues else group

    def _in_its_run(self, gang: Gang) -> Gang:
        """The gang without members that succeeded in earlier runs; they are also forgotten."""
        finished = self._finished.get(gang.key, [])
        if not (finished or any(member.phase is Phase.SUCCEEDED for member in gang.members)):
            return gang
        run = finished_members.run(gang, self._reservation_of(gang))
        own = (member for member in finished if membership.is_for(member, gang))
        finished[:] = [member for member in own if run.has(member)]
        return run.of(gang)

    def _reservation_of(self, gang: Gang) -> Reservation | None:
        standing = self._holding(gang.key)
        return next((reservation for reservation in standing if reservation.uid == gang.uid), None)


def _is_older(group: GangObject, than: GangObject) -> bool:
    return int(group.version) < int(than.version)
