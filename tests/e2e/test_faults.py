"""A sample of `make soak`: the operator is killed and its road broken at some writes of a scenario.

Which ones is drawn again from a seed that stands here, so that a failure can be had again.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from ..chaos.faults import Arena, Trial, deeds, jobs, run, trials
from ..chaos.faults.table import account
from ..chaos.faults.trials import Strike
from ..chaos.faults.writes import Write
from ..chaos.mutants import Mutant, Patch, plant
from ..harness.controlplane.pins import chosen_k8s
from ..harness.judge import Promise
from ..harness.proxy import Exchange, lose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..chaos.faults import Outcome
    from ..chaos.faults.run import Run
    from ..harness.proxy import Action, Call

SEED = 3
FEWEST_WRITES = 36  # Reservations, bindings and what has to be said; an unbroken run has some more
KILLED_AT = sorted(random.Random(SEED).sample(range(1, FEWEST_WRITES + 1), 6))
COMMIT = frozenset({Write.RESERVE, Write.BIND, Write.RELEASE})


FORGETS = Mutant(
    "forgets what its predecessor reserved",
    (Patch("commit/adoption.py", "if reservation.term != term", "if not reservation.term"),),
)


HURRIES = Mutant(
    "binds pods before their claims",
    (
        Patch(
            "commit/protocol.py",
            "lacking = {*await self._claims.allocate(step_lists.bindings(steps))}",
            "lacking = set[GangKey]()",
        ),
        Patch(
            "commit/progress.py",
            "return BindVolumes(pending.choices) if pending.is_waiting else bind",
            "return bind",
        ),
    ),
)


IGNORES_PROTECTION = Mutant(
    "ends gangs whatever budgets and Jobs say",
    (
        Patch(
            "filters/disruption_budgets.py",
            "evicted = self.by_budget(pods)\n",
            "evicted = self.by_budget(())\n",
        ),
        Patch(
            "verify/preemption/budgets.py", "if len(going[budget]) > budget.allowed:", "if False:"
        ),
        Patch(
            "filters/job_failures.py",
            "if job.failures_left is not None and evictions >= job.failures_left:",
            "if False:",
        ),
    ),
)


class OneBinding:
    """Lets a single binding of the operator's first life through: ``train`` begins, by a quarter.

    What is in flight when a process is killed arrives or does not; this leaves none to chance.
    """

    PASSES = "/train-0/binding"

    def __init__(self) -> None:
        self._is_first_life = True

    def forbids(self, call: Call) -> bool:
        """Whether the road breaks for it; who lists pods after all this began is the next life."""
        self._is_first_life &= not (call.path == "/api/v1/pods" and not call.is_watch)
        return self._is_first_life and call.is_binding and not call.path.endswith(self.PASSES)

    def deed(self, run: Run) -> Action:
        """Begin, at a call that goes through."""
        run.weather(self.forbids, lose)
        return Exchange.forward


def test_an_operator_that_forgets_what_was_reserved_before_is_found_out(tmp_path: Path) -> None:
    half = Strike("one binding alone", OneBinding().deed, 1, frozenset({Write.RESERVE}))
    name = "killed after the commit"
    kill = Strike(name, deeds.KILLS[name], 1, frozenset({Write.BIND}))
    with Arena(plant(FORGETS, tmp_path)) as arena:
        outcome = arena.run(Trial(name, (half, kill)))
    assert outcome.happened
    assert any(Promise.WHOLE in violation for violation in outcome.violations), outcome


def test_an_operator_that_binds_pods_before_their_claims_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PATIENCE", 30.0)  # the end that is promised never comes
    with Arena(plant(HURRIES, tmp_path), has_claims=True) as arena:
        outcome = arena.run(trials.UNBROKEN)
    for promise in (Promise.DEVICES, Promise.VOLUMES):
        assert any(promise in violation for violation in outcome.violations), outcome


def test_an_operator_that_ends_gangs_whatever_protects_them_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where it ends, so that the run is over then: ``brittle`` has the least work of all.
    monkeypatch.setattr(jobs, "STARTED", {"batch": 2, "kept": 2, "brittle": 0, "entitled": 2})
    for promised in ("CHARGED", "KEPT"):
        monkeypatch.setattr(jobs, promised, {})
    monkeypatch.setattr(jobs, "AGAIN", ())
    with Arena(plant(IGNORES_PROTECTION, tmp_path), has_jobs=True) as arena:
        outcome = arena.run(trials.UNBROKEN)
    assert any(Promise.PROTECTED in violation for violation in outcome.violations), outcome


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    """One control plane for all of these."""
    with Arena() as made:
        yield made


@pytest.fixture(scope="module")
def foreign_arena() -> Iterator[Arena]:
    """The same with PodGroups of Kubernetes and of scheduler-plugins."""
    if chosen_k8s() != "1.37":
        pytest.skip("PodGroups of Kubernetes are 1.37's")
    with Arena(is_foreign=True) as made:
        yield made


@pytest.fixture(scope="module")
def queued_arena() -> Iterator[Arena]:
    """The same with the gangs in a tree of queues."""
    with Arena(is_queued=True) as made:
        yield made


@pytest.fixture(scope="module")
def handed_arena() -> Iterator[Arena]:
    """The same with gangs that kube-scheduler binds."""
    with Arena(is_handed=True) as made:
        yield made


@pytest.fixture(scope="module")
def preempting_arena() -> Iterator[Arena]:
    """The scene in which gangs end so that others start."""
    with Arena(is_preempting=True) as made:
        yield made


@pytest.fixture(scope="module")
def racks_arena() -> Iterator[Arena]:
    """The scene with gangs in one rack, and in segments."""
    with Arena(has_domains=True) as made:
        yield made


@pytest.fixture(scope="module")
def claims_arena() -> Iterator[Arena]:
    """The scene with claims of devices and of volumes."""
    with Arena(has_claims=True) as made:
        yield made


def struck(arena: Arena, trial: Trial) -> Outcome:
    """Run a trial, which must end as an unbroken run does and break no promise."""
    outcome = arena.run(trial)
    assert not outcome.violations, account(outcome)
    return outcome


@pytest.mark.parametrize("k", KILLED_AT)
def test_an_operator_killed_at_any_write_ends_as_an_unbroken_one_does(arena: Arena, k: int) -> None:
    before, after, *_ = trials.kills(k)
    assert struck(arena, before).happened
    assert struck(arena, after).happened


@pytest.mark.parametrize("k", KILLED_AT[1::3])
def test_it_does_so_with_gangs_that_other_projects_declare(foreign_arena: Arena, k: int) -> None:
    before, after, *_ = trials.kills(k)
    assert struck(foreign_arena, before).happened
    assert struck(foreign_arena, after).happened


@pytest.mark.parametrize("k", KILLED_AT[::3])
def test_it_does_so_with_queues_and_exceeds_no_limit(queued_arena: Arena, k: int) -> None:
    before, after, *_ = trials.kills(k)
    assert struck(queued_arena, before).happened
    assert struck(queued_arena, after).happened


@pytest.mark.parametrize("k", KILLED_AT[2::3])
def test_it_does_so_with_gangs_that_kube_scheduler_binds(handed_arena: Arena, k: int) -> None:
    before, after, *_ = trials.kills(k)
    assert struck(handed_arena, before).happened
    assert struck(handed_arena, after).happened


@pytest.mark.parametrize("k", KILLED_AT[1::3])
def test_it_does_so_with_gangs_in_racks_of_which_one_loses_a_node(
    racks_arena: Arena, k: int
) -> None:
    before, after, *_ = trials.kills(k)
    assert struck(racks_arena, before).happened
    assert struck(racks_arena, after).happened


@pytest.mark.parametrize(
    ("kind", "n", "name"),
    [
        (Write.CLAIM_STATUS, 3, "killed before the write"),
        (Write.SELECT_NODE, 1, "killed, the write 3 s late"),
        (Write.CLAIM_STATUS, 9, "killed after the commit"),
    ],
)
def test_it_does_so_with_claims_of_devices_and_volumes(
    claims_arena: Arena, kind: Write, n: int, name: str
) -> None:
    strike = Strike(name, deeds.KILLS[name], n, frozenset({kind}))
    assert struck(claims_arena, Trial(name, (strike,))).happened


@pytest.mark.parametrize("name", sorted(deeds.KILLS))
def test_it_does_so_if_killed_at_evictions_and_ends_no_gang_in_vain(
    preempting_arena: Arena, name: str
) -> None:
    second = Strike(name, deeds.KILLS[name], 2, frozenset({Write.EVICT}))
    assert struck(preempting_arena, Trial(name, (second,))).happened


def test_faults_at_evictions_change_no_end(preempting_arena: Arena) -> None:
    draw = random.Random(f"{SEED}/{Write.EVICT}")
    for trial in draw.sample([*trials.answers([Write.EVICT])], 2):
        assert struck(preempting_arena, trial).happened


@pytest.mark.parametrize("kind", trials.QUEUE_WRITES)
def test_faults_at_writes_of_queues_change_no_end(queued_arena: Arena, kind: Write) -> None:
    draw = random.Random(f"{SEED}/{kind}")
    for trial in draw.sample([*trials.answers([kind])], 2):
        assert struck(queued_arena, trial).happened


def test_one_killed_again_at_its_first_writes_does_too(arena: Arena) -> None:
    for trial in list(trials.second_kills(12, 2))[:2]:
        assert struck(arena, trial).happened


@pytest.mark.parametrize("kind", sorted(COMMIT))
def test_faults_at_the_commit_change_no_end(arena: Arena, kind: Write) -> None:
    draw = random.Random(f"{SEED}/{kind}")
    at_kind = [trial for trial in trials.answers() if trial.strikes[0].kinds == {kind}]
    for trial in draw.sample(at_kind, 2):
        assert struck(arena, trial).happened


def test_an_api_server_that_goes_away_or_forgets_its_watches_changes_no_end(arena: Arena) -> None:
    draw = random.Random(SEED)
    for fault in sorted({trial.fault for trial in trials.roads(5.0)}):
        at_commit = [
            trial
            for trial in trials.roads(5.0)
            if trial.fault == fault and trial.strikes[0].kinds <= COMMIT
        ]
        assert struck(arena, draw.choice(at_commit)).happened
