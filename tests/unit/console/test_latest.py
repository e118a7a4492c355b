"""What takes long is worked out once for each version, also for those who ask at the same time."""

import asyncio

from tutti.console.latest import MOST_GONE, Latest, RowHistory
from tutti.console.observation import Observation

from ...harness.builders import snapshot_of


async def test_those_who_ask_at_the_same_time_get_the_same_answer() -> None:
    versions: list[int] = []

    def function(observation: Observation) -> int:
        versions.append(observation.version)
        return observation.version

    latest = Latest(function)
    old, new = (Observation(version, snapshot_of()) for version in (1, 2))
    answers = [*await asyncio.gather(latest.of(old), latest.of(old), latest.of(new))]
    assert answers == [1, 1, 2]
    assert versions == [1, 2]


def test_a_reader_gets_the_rows_that_changed_and_the_names_of_those_that_went() -> None:
    history = RowHistory()
    history.take(3, {"a": 1, "b": 2, "c": 3}, ["a", "b", "c"])
    assert history.since(0) == {"version": 3, "whole": True, "rows": [1, 2, 3], "gone": []}
    history.take(5, {"a": 1, "b": 7}, ["a", "b"])
    assert history.since(3) == {"version": 5, "whole": False, "rows": [7], "gone": ["c"]}
    assert history.since(6)["whole"], "a reader who has seen more than there is begins again"
    history.take(4, {}, [])
    assert history.since(5)["gone"] == [], "an older version is not taken in"
    history.take(8, {"c": 3}, ["a", "b", "c"])
    assert history.since(3) == {"version": 8, "whole": False, "rows": [7, 3], "gone": []}


def test_a_reader_from_before_the_history_began_gets_everything() -> None:
    history = RowHistory(begin=4)
    history.take(4, {"a": 1}, ["a"])
    assert history.since(3)["whole"]
    assert not history.since(4)["whole"]


def test_of_the_rows_that_are_gone_the_last_are_known() -> None:
    """Otherwise a page that is open for days would need ever more memory."""
    history = RowHistory()
    history.take(1, {"stays": 0}, ["stays"])
    for version in range(2, MOST_GONE + 4):
        history.take(version, {f"g{version}": 1}, ["stays", f"g{version}"])
    assert len(history._gone) == MOST_GONE
    assert history.since(1)["whole"]
    assert history.since(2)["whole"]
    late = history.since(5)
    assert (late["whole"], len(late["gone"])) == (False, MOST_GONE - 2)
