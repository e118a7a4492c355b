"""The objects of one stream as the API server last showed them, whatever the order of its answers.

Only versions and deletions matter here. The cluster state gives the objects their meaning.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ..kube.list_watch import Item, ObjectList
from ..model.keys import Uid

V = TypeVar("V")

MOST_GONE = 50_000  # remembered deletions; no answer should be later than so many others


class Store(Generic[V]):
    """The objects of one stream: the newest version wins, and a deleted object stays deleted.

    Watches, lists and the answers to writes may feed one store, in any order. Lists are consistent
    reads: a list is not older than anything that was known when it was requested, unless etcd was
    restored from a backup and its versions went back.
    """

    def __init__(
        self,
        changed: Callable[[Uid, V | None, V | None], None],
        listed: Callable[[int], None],
    ) -> None:
        """``changed`` gets the uid and the old and new value of an object.

        ``listed`` is called after each list with its mark from ``began``.
        """
        self._values: dict[Uid, V] = {}
        self._versions: dict[Uid, int] = {}
        self._gone: dict[Uid, int] = {}  # deleted objects, the oldest first: lists begun by then
        self._lists = 0  # how many lists have begun
        self._list_version = 0
        self._newest = 0  # the highest version seen
        self._newest_at = 0  # how many lists had begun when it was seen
        self._old_lists = 0  # how many lists had begun at the last ``expire``
        self._changed = changed
        self._listed = listed
        self.is_synced = False
        self.is_fresh = False  # listed since the last ``expire``

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[V]:
        return iter(self._values.values())

    @property
    def newest(self) -> int:
        """The highest version seen; a watch showed every object of its stream up to here."""
        return self._newest

    def get(self, uid: Uid) -> V | None:
        """The value of one object; None if it is not here."""
        return self._values.get(uid)

    def put(self, item: Item[V]) -> None:
        """Take in an object, unless a newer version of it or a newer list without it is known."""
        if item.version > self._versions.get(item.uid, self._list_version):
            self._take(item)

    def _take(self, item: Item[V]) -> None:
        if item.uid in self._gone:
            return
        self._see(item.version)
        old = self._values.get(item.uid)
        self._values[item.uid], self._versions[item.uid] = item.value, item.version
        self._changed(item.uid, old, item.value)

    def _see(self, version: int) -> None:
        if version > self._newest:
            self._newest, self._newest_at = version, self._lists

    def has_seen(self, uid: Uid) -> bool:
        """Whether the object is here, or was deleted recently."""
        return uid in self._values or uid in self._gone

    def has_dropped(self, uid: Uid) -> bool:
        """Whether the object was dropped, as far as the store remembers."""
        return uid in self._gone

    def drop(self, uid: Uid) -> None:
        """Forget an object for good; later answers about its uid are ignored."""
        self._gone.pop(uid, None)
        self._gone[uid] = self._lists
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]
        if uid in self._values:
            self._remove(uid)

    def leave(self, uid: Uid, version: int) -> None:
        """Forget an object that may come back: this version of it left the stream's selection.

        If a newer version is known, it stays: watches may show again what was before a list.
        """
        if uid in self._versions and self._versions[uid] <= version:
            self._remove(uid)

    def _remove(self, uid: Uid) -> None:
        del self._versions[uid]
        self._changed(uid, self._values.pop(uid), None)

    def expire(self) -> None:
        """Trust no list that began before now."""
        self._old_lists = self._lists
        self.is_fresh = False

    def began(self) -> int:
        """Mark the moment before a list is requested; pass the mark to ``replace``."""
        self._lists += 1
        return self._lists

    def known(self, uid: Uid, version: int, listed: int) -> V | None:
        """The value of this version of an object, for a list of the version ``listed``.

        None if it is not here, or if ``listed`` is below versions that were seen: if etcd was
        restored, another object may have this version now.
        """
        is_known = listed >= self._newest and self._versions.get(uid) == version
        return self._values[uid] if is_known else None

    def replace(self, objects: ObjectList[V], version: int, began: int) -> None:
        """Take in a list of that version: remove the objects that it lacks, but keep newer ones.

        So an object that was deleted while no watch ran is removed. ``began`` is the mark that
        ``began()`` returned before the list was requested. If versions have gone back, etcd was
        restored: then no known object counts as newer than the list.
        """
        self.is_fresh |= began > self._old_lists
        if began > self._newest_at and version < self._newest:
            self._rewind()
        if version < self._list_version:
            return  # a later list was faster
        self._gone = {uid: mark for uid, mark in self._gone.items() if mark >= began}
        if self._values or self._gone:
            self._merge(objects, version)
        else:  # the first list of many pods is not copied
            self._values, self._versions = objects.values, objects.versions
            for uid, value in objects.values.items():
                self._changed(uid, None, value)
        self._list_version = version
        self._see(version)
        self.is_synced = True
        self._listed(began)

    def _merge(self, objects: ObjectList[V], version: int) -> None:
        for uid in [uid for uid in self._values if uid not in objects.values]:
            self.leave(uid, version)
        for uid, value in objects.values.items():
            known, listed = self._versions.get(uid), objects.versions[uid]
            if known is None or (known <= version and known != listed):
                self._take(Item(uid, listed, value))

    def _rewind(self) -> None:
        """Give every known object the version 0, because versions have gone back."""
        self._versions = dict.fromkeys(self._versions, 0)
        self._list_version = self._newest = 0
