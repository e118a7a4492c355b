"""One run: the operator on the scenario, struck by a trial's faults, until all is at rest."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ...harness.proxy import anything
from . import claims, domains, jobs, preempting, rest, scenario
from .course import Course

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ...harness.operator_process import OperatorProcess
    from ...harness.proxy import Action, Match, Proxy
    from .rest import Rest
    from .trials import Strike, Trial

PATIENCE = 90.0  # seconds; what is refused for good is asked again after 30
QUIET_SECONDS = 0.5
LONG_QUIET_SECONDS = 3.0  # longer than any report is put off
LOOK_SECONDS = 0.2
BAD_WORDS = ("Traceback", "bug of Tutti's", ": left out: ")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended."""

    trial: Trial
    happened: bool  # whether there was a call for every strike
    violations: tuple[str, ...]
    recovery: float | None  # seconds from the end of the last fault to rest
    writes: int  # by the operator, but for Leases
    log: str = ""  # of a run that went wrong


class Run:
    """The operator's life in one namespace, which may be several lives."""

    def __init__(
        self,
        request: Callable[..., Any],
        proxy: Proxy,
        operator: OperatorProcess,
        namespace: str,
        *,
        is_foreign: bool = False,
        is_queued: bool = False,
        is_handed: bool = False,
        is_preempting: bool = False,
        has_domains: bool = False,
        has_claims: bool = False,
        has_jobs: bool = False,
    ) -> None:
        self.proxy = proxy
        self.operator = operator
        self._request = request
        self._namespace = namespace
        self._is_foreign = is_foreign
        self._is_queued = is_queued
        self._is_preempting = is_preempting
        self._has_domains = has_domains
        self._has_claims = has_claims
        self._has_jobs = has_jobs
        self._story: scenario.Story | preempting.Story | domains.Story | claims.Story | jobs.Story
        if is_preempting:
            self._story = preempting.Story(request, namespace)
        elif has_domains:
            self._story = domains.Story(request, namespace)
        elif has_claims:
            self._story = claims.Story(request, namespace)
        elif has_jobs:
            self._story = jobs.Story(request, namespace)
        else:
            self._story = scenario.Story(
                request,
                namespace,
                is_foreign=is_foreign,
                is_queued=is_queued,
                is_handed=is_handed,
            )
        self._rules = ExitStack()
        self._due: list[tuple[float, Callable[[], None]]] = []
        self._start_at: float | None = time.monotonic()
        self._down_seconds = 0.0
        self._deadline = time.monotonic() + PATIENCE
        self.fault_ended: float | None = None
        self.rested = 0.0
        self._straggled = 0.0
        self.troubles: list[str] = []
        self.course = Course(self, ())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.operator.kill()
        for _, act in self._due:
            act()
        self._rules.close()

    def play(self, trial: Trial, wanted: Rest | None = None) -> Rest:
        """Live through the trial until what is wanted is so, or an end that is promised."""
        self.course = Course(self, trial.strikes)
        if isinstance(self._story, claims.Story):
            self._story.fail_at(trial.failures)
        self._rules.enter_context(self.proxy.rule(anything, self.course))
        quiet = LONG_QUIET_SECONDS if wanted is None else QUIET_SECONDS
        since: float | None = None
        while True:
            self._tend()
            if self.proxy.has_stragglers:
                self._straggled = time.monotonic()
            seen = rest.look(
                self._request,
                self._namespace,
                is_foreign=self._is_foreign,
                is_queued=self._is_queued,
                is_preempting=self._is_preempting,
                has_domains=self._has_domains,
                has_claims=self._has_claims,
                has_jobs=self._has_jobs,
            )
            self._story.retry(seen)
            is_wanted = seen.is_promised if wanted is None else seen == wanted
            since = (since or time.monotonic()) if is_wanted and self._story.is_over else None
            if time.monotonic() > self._deadline or (since and self._is_quiet(quiet)):
                self.rested = max(since or time.monotonic(), self.course.quiet_since)
                return seen
            time.sleep(LOOK_SECONDS)

    # What deeds ask for; the proxy's thread calls these

    def begin(self, strike: Strike) -> None:
        """Take in that a fault strikes now."""
        self.fault_ended = time.monotonic()
        self._down_seconds = strike.down_seconds

    def kill(self) -> None:
        """Kill the operator; it is started again."""
        self._start_at = time.monotonic() + self._down_seconds
        self.operator.strike()

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something after so many seconds, which ends the fault."""
        self._deadline += seconds
        self._due.append((time.monotonic() + seconds, act))

    def weather(self, match: Match, action: Action) -> None:
        """Treat these calls so until the run ends; what is watched comes before the course."""
        self._rules.enter_context(self.proxy.rule(match, action))

    def _tend(self) -> None:
        """Start an operator that was killed, and do what is due."""
        now = time.monotonic()
        for entry in [one for one in self._due if one[0] <= now]:
            entry[1]()
            self._due.remove(entry)
            self.fault_ended = time.monotonic()
        if self._start_at is None:
            if self.operator.is_down:
                self.troubles.append("the operator ended by itself")
                self._start_at = now
        elif now >= self._start_at:
            self._start_at = None
            self.operator.kill()
            self.operator.start(ready=False)

    def _is_quiet(self, seconds: float) -> bool:
        latest = max(self.course.quiet_since, self._straggled)
        is_still = time.monotonic() - latest > seconds
        is_settled = not (self._due or self._start_at or self.proxy.has_stragglers)
        return is_still and is_settled and self.operator.probe("readyz") == "ok"
