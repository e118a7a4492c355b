"""The pods, from three streams and from our own writes.

A binding is assumed from the moment that it is sent until a watch shows it, as in kube-scheduler's
cache, so no cycle sees a pod as it was before our own last write.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..gang import order
from ..kube.list_watch import Item
from ..model.cluster import GATE, BoundBy, ForeignPod, Member
from ..model.keys import NodeName, Uid
from .store import Store

MOST_LATE = 15.0  # seconds for which an unseen binding of ours counts as a late watch


@dataclass(slots=True)
class Assumption:
    """A binding that we sent and that no watch has shown yet."""

    member: Member
    node: NodeName
    lists: int  # how many lists of bound pods were taken in before the binding was sent
    list_mark: int = 0  # ``Store.began`` of the bound pods when it was confirmed


class PodIndex:
    """The waiting pods, those with a node, those pinned to a node, and the assumed bindings."""

    def __init__(
        self,
        changed: Callable[[Uid], None],
        deleted: Callable[[Member], None],
        listed: Callable[[], None],
        shown: Callable[[float | None], None],
    ) -> None:
        """``changed`` gets the uid of a pod that may matter to a decision.

        ``deleted`` gets a member that had a node, before ``changed`` is called. ``listed`` is
        called after each list, and ``shown`` for each binding of ours that the watch of bound pods
        shows, with the time at which the API server confirmed it.
        """
        self.pending: Store[Member] = Store(self._member_changed, lambda _began: listed())
        self.bound: Store[Member | ForeignPod] = Store(self._bound_changed, self._bound_listed)
        self.pinned: Store[Member | ForeignPod] = Store(
            self._pinned_changed, lambda _began: listed()
        )
        self._changed, self._deleted, self._observe_lag = changed, deleted, shown
        self._all_listed = listed
        self._assumed: dict[Uid, Assumption] = {}
        # When the API server confirmed them, the oldest first, in seconds since the epoch.
        self._confirmed: dict[Uid, float] = {}
        self._departed: dict[Uid, Member] | None = None  # None: they are not noted
        self._bound_lists = 0

    @property
    def stores(self) -> tuple[Store[Any], ...]:
        """One store for each stream."""
        return (self.pending, self.bound, self.pinned)

    def get(self, uid: Uid) -> Member | ForeignPod | None:
        """A pod without the volumes and devices of its claims.

        It is bound, assumed, or a member that is not bound.

        A foreign pod that is pinned is not included. It uses room on its node, but no rule counts
        it before it is bound, as in kube-scheduler.
        """
        if (bound := self.bound.get(uid)) is not None:
            return bound
        unbound = self._unbound(uid)
        if (assumed := self._assumed.get(uid)) is not None:
            member = unbound or assumed.member
            # A member that the API server showed with its node is bound.
            is_bound = member.node is not None and not member.is_handed_over
            return replace(
                member,
                node=assumed.node,
                bound_at=self._confirmed.get(uid),
                is_handed_over=member.bound_by is BoundBy.KUBE_SCHEDULER and not is_bound,
            )
        return unbound

    def is_known(self, uid: Uid) -> bool:
        """Whether a list or watch shows a pod, or Tutti has just bound it."""
        return self.get(uid) is not None

    def holds_room(self, uid: Uid) -> bool:
        """Whether a pod that names our scheduler has a node and is not over."""
        pod = self.get(uid)
        return isinstance(pod, Member) and pod.node is not None and not pod.is_over

    def may_hold_room(self, uid: Uid) -> bool:
        """Whether ``holds_room`` is true of a pod, or no list or watch shows the pod."""
        return self.holds_room(uid) or not self.is_known(uid)

    def by_age(self, uids: Iterable[Uid]) -> Sequence[Uid]:
        """Members from the oldest to the newest; pods that are no known members come last."""
        pods = {uid: self.get(uid) for uid in uids}
        members = order.by_age(pod for pod in pods.values() if isinstance(pod, Member))
        return [*dict.fromkeys((*(member.uid for member in members), *sorted(pods)))]

    def has_ended(self, uid: Uid) -> bool:
        """Whether a pod was shown with a node, and is over or gone by now."""
        return self.bound.has_seen(uid) and not self.holds_room(uid)

    def _unbound(self, uid: Uid) -> Member | None:
        """A member that waits, or that is handed over."""
        pinned = self.pinned.get(uid)
        return self.pending.get(uid) or (pinned if isinstance(pinned, Member) else None)

    # Members that disappear

    def follow_departures(self) -> None:
        """From now on, note the members without a node that disappear."""
        self._departed = {}

    def take_departed(self) -> tuple[Member, ...]:
        """The members that have disappeared and are not known to be bound; note no more of them.

        Such a pod is gone, or it is bound and the watch of bound pods is late.
        """
        departed, self._departed = self._departed or {}, None
        return tuple(member for member in departed.values() if not self.is_known(member.uid))

    # Our own writes

    def assume(self, member: Member, node: NodeName) -> None:
        """Count a member as bound from the moment that its binding is sent."""
        if self.bound.has_seen(member.uid):
            return  # the watch was faster
        if member.node is None:
            member = self._unbound(member.uid) or member
        known = self._assumed.get(member.uid)
        lists = self._bound_lists if known is None else known.lists
        self._assumed[member.uid] = Assumption(member, node, lists)
        self._confirmed.pop(member.uid, None)
        self._changed(member.uid)

    def confirm(self, uid: Uid, now: float) -> None:
        """Take in that the API server confirmed a binding: the pod is never pending again."""
        if (known := self._assumed.get(uid)) is None:
            return
        if known.lists == self._bound_lists:
            self._confirmed[uid] = now
            known.list_mark = self.bound.began()
        else:
            # A list came in between. Either it is older than the binding, or the pod is gone
            # already: only the next list can tell.
            known.lists = self._bound_lists
        self.pending.drop(uid)
        if known.member.bound_by is BoundBy.KUBE_SCHEDULER:
            self.pinned.drop(uid)

    def retract(self, uid: Uid) -> None:
        """Drop the assumption of a binding that did not happen."""
        if self._assumed.pop(uid, None) is not None:
            self._confirmed.pop(uid, None)
            self._changed(uid)

    def unconfirmed_bindings(self) -> tuple[Member, ...]:
        """The members whose binding was sent and is not confirmed."""
        return tuple(
            known.member for uid, known in self._assumed.items() if uid not in self._confirmed
        )

    def late(self, now: float) -> float:
        """A lower bound on how many seconds the watch of bound pods is late at ``now``.

        It is the age of our oldest confirmed binding that the watch has not shown. A watch shows
        pods in the order in which they were bound, so it shows no later binding before that one. A
        binding unseen for ``MOST_LATE`` no longer counts.
        """
        ages = (now - confirmed_at for confirmed_at in self._confirmed.values())
        return next((age for age in ages if age < MOST_LATE), 0.0)

    def forget(self, uid: Uid) -> None:
        """Forget an unbound member that turned out to be gone."""
        self.pending.drop(uid)
        if isinstance(self.pinned.get(uid), Member):
            self.pinned.drop(uid)
        self.retract(uid)

    def learn(self, member: Member) -> None:
        """Take in an unbound member as the API server just showed it."""
        uid, version = member.uid, int(member.version)
        if member.bound_by is BoundBy.KUBE_SCHEDULER:
            if member.is_handed_over or GATE in member.gates:
                self.pinned.put(Item(uid, version, member))
            elif member.node is None:  # a user has removed the gate
                self.pinned.leave(uid, version)
        elif member.node is None:
            self.pending.put(Item(uid, version, member))

    # Calls of the stores

    def _member_changed(self, uid: Uid, old: Member | None, new: Member | None) -> None:
        self._depart(old, new)
        self._changed(uid)

    def _depart(self, old: Member | ForeignPod | None, new: Member | ForeignPod | None) -> None:
        if self._departed is not None and isinstance(old, Member) and new is None:
            self._departed[old.uid] = old

    def _bound_changed(
        self, uid: Uid, old: Member | ForeignPod | None, new: Member | ForeignPod | None
    ) -> None:
        if old == new:
            return  # a running foreign pod changed in a way that matters to no decision
        known, confirmed_at = self._assumed.pop(uid, None), self._confirmed.pop(uid, None)
        if new is not None:
            if known is not None:
                self._observe_lag(confirmed_at)
            self.pending.drop(uid)  # the stream of pending pods may be late and still show it
            if self._departed is not None:
                self._departed.pop(uid, None)
        elif isinstance(old, Member):
            self._deleted(old)
        self._changed(uid)

    def _bound_listed(self, began: int) -> None:
        """Retract the assumptions that this list lacks and that were confirmed before it began."""
        self._bound_lists += 1
        self._all_listed()
        for uid, known in list(self._assumed.items()):
            if uid in self._confirmed and known.list_mark < began:
                self.retract(uid)

    def _pinned_changed(
        self, uid: Uid, old: Member | ForeignPod | None, new: Member | ForeignPod | None
    ) -> None:
        if old != new:
            self._depart(old, new)
            self._changed(uid)
