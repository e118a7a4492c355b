"""The objects of one kind as the API server last showed them, in whatever order answers come.

Separate from the cluster state, which gives them a meaning: here only versions and absence count.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from ..kube.list_watch import Item
from ..model.keys import Uid

V = TypeVar("V")

MOST_GONE = 50_000  # remembered deletions; what comes later than so many others is no longer late


class Store(Generic[V]):
    """The objects of one stream: the newest version wins, and what is gone stays gone.

    Two sources may feed one store, a watch and a re-list or a write's answer, in any order. Lists
    are consistent reads: one asked for later is no older than anything known before it, unless
    etcd was restored from a backup and its versions went back.
    """

    def __init__(
        self,
        changed: Callable[[Uid, V | None, V | None], None],
        listed: Callable[[int], None],
    ) -> None:
        """``changed`` gets the uid and the old and new value; ``listed`` is called after a list."""
        self._items: dict[Uid, Item[V]] = {}
        self._gone: dict[Uid, int] = {}  # the oldest first
        self._lists = 0
        self._list_version = 0
        self._newest = 0  # of all versions seen
        self._newest_at = 0  # the number of lists begun before it was seen
        self._old_lists = 0  # the number of lists begun before ``expire``
        self._changed = changed
        self._listed = listed
        self.is_synced = False
        self.is_fresh = False  # listed since the last ``expire``

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[V]:
        return (item.value for item in self._items.values())

    def get(self, uid: Uid) -> V | None:
        """The value of one object, if it is here."""
        item = self._items.get(uid)
        return None if item is None else item.value

    def put(self, item: Item[V]) -> None:
        """Take in an object unless something newer is known of it, its absence from a list too."""
        old = self._items.get(item.uid)
        newest = self._list_version if old is None else old.version
        if item.version > newest:
            self._take(item)

    def _take(self, item: Item[V]) -> None:
        if item.uid in self._gone:
            return
        self._see(item.version)
        old = self._items.get(item.uid)
        self._items[item.uid] = item
        self._changed(item.uid, None if old is None else old.value, item.value)

    def _see(self, version: int) -> None:
        if version > self._newest:
            self._newest, self._newest_at = version, self._lists

    def has_seen(self, uid: Uid) -> bool:
        """Whether the object is here, or was until lately."""
        return uid in self._items or uid in self._gone

    def has_dropped(self, uid: Uid) -> bool:
        """Whether the object was forgotten for good, as far as that is remembered."""
        return uid in self._gone

    def drop(self, uid: Uid) -> None:
        """Forget an object for good: uids never come back."""
        self._gone.pop(uid, None)
        self._gone[uid] = self._lists
        if len(self._gone) > MOST_GONE:
            del self._gone[next(iter(self._gone))]
        old = self._items.pop(uid, None)
        if old is not None:
            self._changed(uid, old.value, None)

    def leave(self, uid: Uid) -> None:
        """Forget an object that may come back: it left the stream's selection."""
        old = self._items.pop(uid, None)
        if old is not None:
            self._changed(uid, old.value, None)

    def expire(self) -> None:
        """Trust no list that began before now."""
        self._old_lists = self._lists
        self.is_fresh = False

    def began(self) -> int:
        """Mark the moment before a list is requested; pass the mark to ``replace``."""
        self._lists += 1
        return self._lists

    def replace(self, items: Iterable[Item[V]], version: int, began: int) -> None:
        """Make the store what a list of that version said; what came later is kept.

        This is what clears ghosts: an object deleted while no watch was looking is not in the list.
        After a restore of etcd nothing that was known before came later, whatever its version.
        """
        self.is_fresh |= began > self._old_lists
        if began > self._newest_at and version < self._newest:
            self._rewind()
        if version < self._list_version:
            return  # a later list was faster
        listed = {item.uid: item for item in items}
        self._gone = {uid: mark for uid, mark in self._gone.items() if mark >= began}
        for uid in [uid for uid, old in self._items.items() if uid not in listed]:
            if self._items[uid].version <= version:
                self.leave(uid)
        for uid, item in listed.items():
            old = self._items.get(uid)
            if old is None or (old.version <= version and old.version != item.version):
                self._take(item)
        self._list_version = version
        self._see(version)
        self.is_synced = True
        self._listed(began)

    def _rewind(self) -> None:
        """Let anything be newer than what is known: versions have gone back."""
        self._items = {uid: item._replace(version=0) for uid, item in self._items.items()}
        self._list_version = self._newest = 0
