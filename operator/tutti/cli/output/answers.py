"""What ``status``, ``plan`` and ``explain`` show, as data for the console, by the same code."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - a field of a dataclass
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ... import dump
from ...console.observation import PlanAnswer, WrongQuestion
from ...dump.load import snapshot_of
from ...whatif import Planner, edits
from ...whatif.changes import Changes, change
from .. import explain, queue, status
from . import offline, render
from .gang_rows import StandingRow, hindrance, rows
from .watch import View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...console.observation import Observation, Record, WhatIf
    from ...model.cluster import Snapshot
    from ...model.decisions import Plan
    from ...model.keys import GangKey
    from .offline import Planned


@dataclass(frozen=True, slots=True)
class _CountedPlanner(Planner):
    """A planner that calls ``planned`` after each plan."""

    planned: Callable[[], None] = lambda: None

    def plan(self, snapshot: Snapshot) -> Plan:
        """See ``Planner.plan``."""
        new_plan = Planner.plan(self, snapshot)  # super() does not work in a dataclass with slots
        self.planned()
        return new_plan


class CommandAnswers:
    """See ``console.observation.Answers``."""

    def __init__(self, setup: dump.PlannerConfig, texts: Sequence[dump.Text] = ()) -> None:
        """``texts`` are the files to show; none for a live cluster.

        Raises:
            StrategyError: there is no such strategy.
        """
        self._setup = setup
        self._planner = offline.load_planner(setup)
        self._texts = texts

    def gangs(self, observation: Observation) -> tuple[Record, Mapping[GangKey, Record]]:
        """See ``Answers.gangs``."""
        view = View(observation.snapshot, self._rows(observation), None)
        keys = [row.gang.key for row in view.rows]
        return status.states(view), dict(zip(keys, status.gangs(view), strict=True))

    def room(self, observation: Observation) -> Record:
        """See ``Answers.room``."""
        return status.room(View(observation.snapshot, (), None))

    def settings(self) -> Record:
        """See ``Answers.settings``."""
        policy = self._setup.policy
        return {
            "strategy": self._setup.strategy,
            "objective": policy.objective.value,
            "preemption": policy.preemption.value,
        }

    def queues(self, observation: Observation) -> Record:
        """See ``Answers.queues``."""
        return queue.data(queue.view_of(observation.snapshot, None))

    def plan(self, observation: Observation) -> PlanAnswer:
        """See ``Answers.plan``."""
        planned = self._planned(observation.snapshot)
        return PlanAnswer(render.data(planned), [(planned.snapshot, planned.plan)])

    def what_if(self, observation: Observation, changes: WhatIf) -> PlanAnswer:
        """See ``Answers.what_if``."""
        before = self._planned(observation.snapshot)
        wanted_changes = Changes(
            changes.add_nodes, changes.remove_nodes, changes.priorities, changes.queues
        )
        try:
            setup = offline.changed(
                self._setup, None, changes.objective or None, changes.preemption or None
            )
            snapshot = self._with(before.snapshot, changes.manifest)
            after = offline.checked(
                change(snapshot, wanted_changes), setup, offline.load_planner(setup)
            )
        except (dump.BadFile, edits.WrongChange) as problem:
            raise WrongQuestion(str(problem)) from problem
        plans = [(planned.snapshot, planned.plan) for planned in (before, after)]
        return PlanAnswer(render.data(after, before), plans)

    def explain(
        self, observation: Observation, gang: GangKey, planned: Callable[[], None]
    ) -> Record:
        """See ``Answers.explain``."""
        planner_in_use = self._planner
        planner = _CountedPlanner(
            planner_in_use.strategy,
            planner_in_use.fallback,
            planner_in_use.budget,
            planner_in_use.policy,
            planned,
        )
        why = "" if self._texts else hindrance(self._rows(observation))
        question = explain.Question(observation.snapshot, planner, why)
        explained = explain.explain_gang(question, gang)
        if not explained:
            raise WrongQuestion(f"there is no gang {gang}")
        return {**explain.data(explained), "sentences": explain.sentences_of(explained[0])}

    def _planned(self, snapshot: Snapshot) -> Planned:
        return offline.checked(snapshot, self._setup, self._planner)

    def _with(self, snapshot: Snapshot, manifest: str) -> Snapshot:
        """The cluster with the objects of a manifest, as if they were created now."""
        if not manifest.strip():
            return snapshot
        texts = self._texts or [
            dump.Text("the cluster", dump.write(snapshot, self._setup).encode())
        ]
        added = dump.Text("the manifest", manifest.encode())
        return snapshot_of(dump.read([*texts, added], self._setup.scheduler))

    def _rows(self, observation: Observation) -> Sequence[StandingRow]:
        setting = self._setup.policy.preemption
        return rows(observation.snapshot, observation.groups, None, setting)
