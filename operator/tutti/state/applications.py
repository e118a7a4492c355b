"""Applications: the PodGroup that each of their pods joins, and the PodGroups not made yet.

A pod of an application of Spark or YuniKorn that names no PodGroup joins the PodGroup of its
application, once that PodGroup exists. ``gang_index`` then treats it like any other member.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..kube.gang_sources import GangObject
from ..model.applications import ApplicationPod
from ..model.cluster import Member
from ..model.keys import GangKey, Uid

UNREAD = "how many executors it will have was not read yet"
UNMADE = "the PodGroup of its application was not made yet"
UNDECLARED = "no pod of its application has the annotation yunikorn.apache.org/task-groups yet"
UNSEEN = "room is held for its application, whose PodGroup was not seen yet"


class Applications:
    """The pods of applications, and which of these pods wait for a PodGroup."""

    def __init__(
        self,
        group_of: Callable[[GangKey], GangObject | None],
        is_held: Callable[[GangKey], bool],
        *,
        is_declaring: bool,
        reads_task_groups: bool = False,
    ) -> None:
        """``group_of`` gives the PodGroup of a gang; ``is_held``: whether a Reservation names it.

        If ``is_declaring``, this operator makes the PodGroups of Spark, and pods without one wait
        for it; if it ``reads_task_groups``, the same holds for the task groups of YuniKorn.
        """
        self._group_of = group_of
        self._is_held = is_held
        self._is_declaring = is_declaring
        self._reads_task_groups = reads_task_groups
        self._by_app: dict[GangKey, dict[Uid, tuple[Member, ApplicationPod]]] = {}  # as put in
        self._app_of: dict[Uid, GangKey] = {}
        self._waiting: dict[Uid, Member] = {}  # pods whose PodGroup is not made yet, as put in
        self._why: dict[Uid, str] = {}

    def joined(self, uid: Uid, member: Member | None) -> Member | None:
        """Take in a pod, and return it with the group that it joins.

        A pod that is of no application, or that names a group, is returned unchanged; so is None,
        which stands for a pod that is gone.
        """
        self._forget(uid)
        if member is None:
            self._why.pop(uid, None)
            return None
        if member.application is None or member.group:
            return member
        key = GangKey(member.key.namespace, member.application.app)
        self._app_of[uid] = key
        self._by_app.setdefault(key, {})[uid] = (member, member.application)
        return self._placed(member, member.application, key)

    def of(self, key: GangKey) -> Iterator[Member]:
        """The pods of an application with the group that each joins now."""
        for member, application in list(self._by_app.get(key, {}).values()):
            yield self._placed(member, application, key)

    def undeclared(self) -> tuple[Member, ...]:
        """The oldest pod without scheduling gates of each application without a PodGroup.

        The PodGroup of the application is made from this pod.
        """
        first: dict[GangKey, Member] = {}
        for member in sorted(self._waiting.values(), key=lambda pod: (pod.created, pod.key)):
            if not member.gated:
                first.setdefault(self._app_of[member.uid], member)
        return tuple(first.values())

    def explained(self, uid: Uid, sentence: str) -> Member | None:
        """The pod with the reason why its PodGroup is not made yet.

        None if the pod has this reason already, or waits for no PodGroup.
        """
        member = self._waiting.get(uid)
        if member is None or self._why.get(uid) == sentence:
            return None
        self._why[uid] = sentence
        return replace(member, size_unknown_because=sentence)

    def _forget(self, uid: Uid) -> None:
        self._waiting.pop(uid, None)
        if (key := self._app_of.pop(uid, None)) is not None:
            del self._by_app[key][uid]
            if not self._by_app[key]:
                del self._by_app[key]

    def _placed(self, member: Member, application: ApplicationPod, key: GangKey) -> Member:
        self._waiting.pop(member.uid, None)
        group = self._group_of(key)
        # A PodGroup that was made for another driver is deleted with that driver.
        if group is not None and (not application.is_driver or group.owner in (None, member.uid)):
            return replace(member, group=key.name, size_unknown_because="")
        if not member.may_get_a_node:
            return member
        if not application.is_driver and self._is_held(key):
            return replace(member, size_unknown_because=UNSEEN)
        is_spark = application.is_spark
        if not (self._is_declaring if is_spark else self._reads_task_groups):
            return member
        if application.is_declaring:
            self._waiting[member.uid] = member
            return replace(member, size_unknown_because=self._reason(member, is_spark=is_spark))
        return member if is_spark else replace(member, size_unknown_because=UNDECLARED)

    def _reason(self, member: Member, *, is_spark: bool) -> str:
        if member.gated:
            gates = ", ".join(member.gates)
            return f"it has scheduling gates ({gates}): its configuration is read without them"
        return self._why.get(member.uid, UNREAD if is_spark else UNMADE)
