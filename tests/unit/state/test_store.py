"""A Store: the newest version wins, what is gone stays gone, and a list clears ghosts."""

import pytest

from tutti.kube.list_watch import Item, ObjectList
from tutti.model.keys import Uid
from tutti.state import store
from tutti.state.store import Store

A, B = Uid("a"), Uid("b")
Change = tuple[str, str | None, str | None]


class Watched:
    """A Store and what it has told."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.lists = 0
        self.store: Store[str] = Store(self.changed, self.listed)

    def changed(self, uid: Uid, old: str | None, new: str | None) -> None:
        """Note a change."""
        self.changes.append((uid, old, new))

    def listed(self, _began: int) -> None:
        """Count a list."""
        self.lists += 1

    def put(self, uid: Uid, version: int) -> None:
        """Take in an object."""
        self.store.put(Item(uid, version, f"{uid}{version}"))

    def list(self, version: int, *versions: tuple[Uid, int], began: int | None = None) -> None:
        """Take in a list, asked for just now unless said otherwise."""
        mark = self.store.began() if began is None else began
        items = [Item(uid, number, f"{uid}{number}") for uid, number in versions]
        self.store.replace(ObjectList(items), version, mark)


def test_the_newest_version_wins_in_any_order() -> None:
    one = Watched()
    one.put(A, 2)
    one.put(A, 1)
    one.put(A, 2)
    one.put(A, 3)
    assert one.changes == [("a", None, "a2"), ("a", "a2", "a3")]
    assert (one.store.get(A), len(one.store), list(one.store)) == ("a3", 1, ["a3"])


def test_what_was_deleted_does_not_come_back() -> None:
    one = Watched()
    one.put(A, 1)
    one.store.drop(A)
    one.put(A, 2)
    assert list(one.store) == []
    assert one.store.has_seen(A)
    assert not one.store.has_seen(B)


def test_what_was_never_seen_can_be_deleted_and_stays_so() -> None:
    one = Watched()
    one.store.drop(A)
    one.put(A, 2)
    assert one.changes == []


def test_what_left_the_selection_may_come_back() -> None:
    one = Watched()
    one.put(A, 1)
    one.store.leave(A, 1)
    one.store.leave(A, 1)
    one.put(A, 2)
    assert one.changes == [("a", None, "a1"), ("a", "a1", None), ("a", None, "a2")]


def test_an_object_whose_older_version_left_the_selection_stays() -> None:
    """The watch of kopf shows again what happened between its list and ours."""
    one = Watched()
    one.list(9, (A, 8))
    one.store.leave(A, 7)
    one.put(A, 8)
    assert list(one.store) == ["a8"]
    one.store.leave(A, 10)
    assert list(one.store) == []


def test_a_list_clears_ghosts_and_brings_what_was_missed() -> None:
    one = Watched()
    one.put(A, 1)
    one.list(5, (B, 3))
    assert list(one.store) == ["b3"]
    assert one.store.is_synced
    assert one.lists == 1


def test_a_store_that_was_never_listed_is_not_synced() -> None:
    one = Watched()
    one.put(A, 1)
    assert not one.store.is_synced


def test_a_list_does_not_remove_what_came_after_it() -> None:
    one = Watched()
    first, second = one.store.began(), one.store.began()
    one.put(A, 9)
    one.list(5, (A, 4), (B, 3), began=first)
    one.put(B, 8)
    one.list(6, began=second)
    assert sorted(one.store) == ["a9", "b8"]


def test_a_list_does_not_resurrect_what_was_deleted_while_it_was_on_its_way() -> None:
    one = Watched()
    one.put(A, 1)
    began = one.store.began()
    one.store.drop(A)
    one.list(5, (A, 1), began=began)
    assert list(one.store) == []
    one.put(A, 6)
    assert list(one.store) == []


def test_news_older_than_a_list_that_lacks_the_object_is_ignored() -> None:
    one = Watched()
    one.list(5)
    one.put(A, 4)
    assert list(one.store) == []
    one.put(A, 6)
    assert list(one.store) == ["a6"]


def test_an_object_left_out_of_one_list_is_taken_from_the_next() -> None:
    one = Watched()
    one.list(5)
    one.list(6, (A, 2))
    assert list(one.store) == ["a2"]


def test_an_older_list_does_not_turn_the_time_back() -> None:
    one = Watched()
    began, overtaking = one.store.began(), one.store.began()
    one.list(9, (A, 8), began=overtaking)
    one.list(5, began=began)
    one.put(B, 7)
    assert list(one.store) == ["a8"]


def test_a_list_that_was_asked_for_later_and_answered_before_does_not_either() -> None:
    one = Watched()
    began, later = one.store.began(), one.store.began()
    one.list(9, (A, 8), began=began)
    one.list(5, began=later)
    assert list(one.store) == ["a8"]


def restored(*, at: int) -> Watched:
    """A store that was listed at 10, saw ``a`` at 90, and lists again: etcd is at ``at`` by now."""
    one = Watched()
    one.list(10, (A, 5), (B, 6))
    one.put(A, 90)
    one.put(Uid("new"), 80)
    one.store.drop(Uid("c"))
    one.list(at, (A, 5), (Uid("c"), 7))
    return one


@pytest.mark.parametrize("at", [8, 50, 100], ids=["before the list", "after it", "already ahead"])
def test_after_a_restore_of_etcd_a_list_is_taken_whole_whatever_came_before(at: int) -> None:
    one = restored(at=at)
    assert sorted(one.store) == ["a5", "c7"]
    assert one.lists == 2
    one.put(A, at + 1)
    one.put(B, at + 2)
    one.put(Uid("c"), 6)
    assert sorted(one.store) == [f"a{at + 1}", f"b{at + 2}", "c7"]


def test_after_a_restore_of_etcd_older_lists_are_told_from_later_ones_as_ever() -> None:
    one = restored(at=50)
    began = one.store.began()
    one.put(B, 61)
    one.list(55, (A, 54), began=began)
    assert sorted(one.store) == ["a54", "b61"]
    one.list(70, (A, 54))
    assert sorted(one.store) == ["a54"]


def test_a_list_that_shows_nothing_new_tells_of_nothing() -> None:
    one = Watched()
    one.list(5, (A, 3))
    one.list(6, (A, 3))
    assert one.changes == [("a", None, "a3")]


def test_only_the_very_version_is_known_and_only_if_versions_have_not_gone_back() -> None:
    one = Watched()
    one.put(A, 2)
    assert one.store.known(A, 2, 2) == "a2"
    assert one.store.known(A, 2, 7) == "a2"
    assert one.store.known(A, 1, 7) is None
    assert one.store.known(B, 2, 7) is None
    assert one.store.known(A, 2, 1) is None
    one.put(B, 9)
    assert one.store.known(A, 2, 8) is None
    one.store.drop(A)
    assert one.store.known(A, 2, 9) is None


def test_deletions_are_forgotten_after_a_later_list_and_beyond_a_number() -> None:
    one = Watched()
    one.store.drop(A)
    one.list(5)
    assert not one.store.has_seen(A)
    one.store.drop(A)
    for number in range(store.MOST_GONE):
        one.store.drop(Uid(f"other-{number}"))
    assert not one.store.has_seen(A)
    assert one.store.has_seen(Uid("other-0"))


def test_the_first_list_is_kept_without_a_copy() -> None:
    one = Watched()
    objects = ObjectList([Item(A, 1, "a1"), Item(B, 2, "b2"), Item(A, 3, "a3")])
    one.store.replace(objects, 3, one.store.began())
    assert one.store._values is objects.values
    assert one.changes == [("a", None, "a3"), ("b", None, "b2")]
    one.put(A, 2)
    assert one.store.get(A) == "a3"


def test_a_first_list_after_a_deletion_lacks_what_was_deleted() -> None:
    one = Watched()
    mark = one.store.began()
    one.store.drop(A)
    one.list(3, (A, 1), (B, 2), began=mark)
    assert list(one.store) == ["b2"]
