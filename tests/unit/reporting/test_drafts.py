"""The status of objects whose kind has words of its own, and how long it may be put off."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tutti.gang.findings import Quoted
from tutti.kube.gang_sources import GangObject
from tutti.model.decisions import Reason, Rejection
from tutti.model.keys import POD_GROUP, ApiKind, GangKey, Uid
from tutti.reporting import drafts, status

from ...harness.builders import gang, reservation

if TYPE_CHECKING:
    from tutti.model.cluster import Gang

KUBERNETES = ApiKind("scheduling.k8s.io", "PodGroup")
THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
WAITING = gang("a").of(2, cpu=1)
STARTED = WAITING.bound_on("n1", "n1")
HELD = reservation(WAITING, ("a-0", "n1"), ("a-1", "n1"))


def drafted(
    of: Any, *, observed: Any = None, held: Any = None, reason: Any = None, **times: Any
) -> drafts.Draft:
    gang: Gang = replace(of.made, key=GangKey("ml", "a", KUBERNETES), generation=3)
    rejection = Rejection(gang.key, reason, (Quoted("short 1"),)) if reason else None
    told = status.status_of(gang, held, rejection, {}, {}, scheduler="tutti")
    group = GangObject(gang.key, Uid("u"), 2, version="7", status=observed or {})
    known = {"is_fresh": False, "quiet_for": 9.0, "since_write": 9.0, **times}
    return drafts.draft(gang, told, group, NOW, **known)


def line(status: str, reason: str, message: str = "", at: str = NOW) -> dict[str, Any]:
    told = {"type": "PodGroupInitiallyScheduled", "status": status, "reason": reason}
    return told | {"message": message, "lastTransitionTime": at, "observedGeneration": 3}


def test_a_whole_gang_is_told_at_once_and_only_of_the_object_that_was_read() -> None:
    draft = drafted(STARTED, quiet_for=0.0, since_write=0.0)
    assert draft.newest == {"conditions": [line("True", "Scheduled")]}
    assert (draft.wait, draft.version, draft.news, draft.may_stay) == (0.0, "7", (), False)


@pytest.mark.parametrize(
    ("quiet_for", "since_write", "wait"), [(0.2, 9, 0.8), (9, 0.4, 0.6), (9, 9, 0)]
)
def test_that_it_waits_is_told_when_it_is_quiet(
    quiet_for: float, since_write: float, wait: float
) -> None:
    times = {"quiet_for": quiet_for, "since_write": since_write}
    draft = drafted(WAITING, reason=Reason.NOT_ENOUGH_ROOM, **times)
    assert draft.wait == pytest.approx(wait)
    assert draft.newest == {"conditions": [line("False", "Unschedulable", "short 1")]}


def test_other_words_for_the_same_wait_a_while() -> None:
    observed = {"conditions": [line("False", "Unschedulable", "short 2", THEN)]}
    draft = drafted(WAITING, reason=Reason.NOT_ENOUGH_ROOM, observed=observed, is_fresh=True)
    assert draft.status == observed
    assert draft.newest == {"conditions": [line("False", "Unschedulable", "short 1", THEN)]}


def test_of_a_gang_that_is_being_bound_nothing_is_said() -> None:
    assert drafted(WAITING, held=HELD).newest == {}


def test_what_is_told_to_others_has_all_counts() -> None:
    made = STARTED.made
    told = status.status_of(made, None, None, {}, {}, scheduler="tutti")
    outcome = drafts.outcome_of(made, told)
    assert (outcome.is_whole, outcome.reason, outcome.message) == (True, "", "")
    assert (outcome.seen, outcome.bound, outcome.phase) == (2, 2, told.phase)


def test_tuttis_own_words_are_those_of_its_pod_group() -> None:
    made = WAITING.made
    told = status.status_of(made, None, None, {}, {}, scheduler="tutti")
    group = GangObject(made.key, made.uid, 2)
    draft = drafts.draft(made, told, group, NOW, is_fresh=False, quiet_for=0.25, since_write=9.0)
    assert made.key.kind == POD_GROUP
    assert draft.status == draft.newest == drafts.merged(told, {}, NOW, keep_sentences=False)
    assert (draft.wait, draft.version, draft.may_stay) == (0.75, "", False)
    assert draft.news == drafts.news(draft.newest, {})
