"""Who is passed over by reports: nobody of whom there is something to say."""

import math
from collections.abc import Collection
from dataclasses import replace

import pytest

from tutti.gang.room_findings import ShortOf
from tutti.kube.gang_sources import GangObject
from tutti.model.cluster import Reservation
from tutti.model.decisions import Reason, Rejection
from tutti.model.keys import NodeName, Uid
from tutti.reporting.unchanged import GangReport, ReportCache

from ...harness.builders import gang

GANG = gang("a").of(2, cpu=1).bound_on("n1").made  # and one that waits
GROUP = GangObject(GANG.key, GANG.uid, 2, generation=1, version="1")
HELD = Reservation(GANG.key, GANG.uid, 1, "tutti", "term", 0.0, ())
WAITS = Rejection(GANG.key, Reason.NOT_ENOUGH_ROOM, (ShortOf(1),))
ABOUT = GangReport(GANG, GROUP, HELD, WAITS)
REWORDED = ABOUT._replace(rejection=replace(WAITS, findings=(ShortOf(2),)))
CHANGED = (
    ABOUT._replace(gang=replace(GANG)),
    ABOUT._replace(group=replace(GROUP)),
    ABOUT._replace(reservation=None),
    ABOUT._replace(rejection=None),
    ABOUT._replace(rejection=replace(WAITS, reason=Reason.NO_NODE_FITS)),
    ABOUT._replace(rejection=replace(WAITS, underlying_reason=Reason.NO_NODE_FITS)),
    ABOUT._replace(rejection=replace(WAITS, only_extra_members=True)),
)


def kept(until: float = math.inf, reworded: float = math.inf) -> ReportCache:
    cache = ReportCache()
    cache.keep(ABOUT, until, reworded)
    return cache


def test_of_whom_nothing_is_known_there_may_be_something_to_say() -> None:
    assert ReportCache().changed([ABOUT], 0.0) == ([ABOUT], math.inf)


def test_who_has_not_changed_is_passed_over_for_as_long_as_there_is_nothing_to_say() -> None:
    assert kept().changed([ABOUT], 1e9) == ([], math.inf)
    assert kept(until=5.0).changed([ABOUT], 4.0) == ([], 5.0)
    assert kept(until=5.0).changed([ABOUT], 5.0) == ([ABOUT], math.inf)


@pytest.mark.parametrize("about", CHANGED)
def test_whoever_has_changed_is_looked_at(about: GangReport) -> None:
    assert kept().changed([about], 0.0) == ([about], math.inf)


def test_another_sentence_alone_waits_for_its_time() -> None:
    assert kept(reworded=60.0).changed([REWORDED], 59.0) == ([], 60.0)
    assert kept(reworded=60.0).changed([REWORDED], 60.0) == ([REWORDED], math.inf)
    assert kept(reworded=60.0).changed([ABOUT], 60.0) == ([], math.inf)
    assert kept(until=5.0, reworded=60.0).changed([REWORDED], 4.0) == ([], 5.0)


@pytest.mark.parametrize(
    ("here", "turned", "is_kept"),
    [
        ({GANG.uid}, [], True),
        ({GANG.uid}, [NodeName("n2")], True),
        ({GANG.uid}, [NodeName("n1")], False),
        ([], [], False),
    ],
)
def test_who_is_gone_or_has_a_member_on_a_node_that_turned_is_forgotten(
    here: Collection[Uid], turned: Collection[NodeName], *, is_kept: bool
) -> None:
    cache = kept()
    cache.forget(here, turned)
    assert (cache.changed([ABOUT], 0.0) == ([], math.inf)) is is_kept
