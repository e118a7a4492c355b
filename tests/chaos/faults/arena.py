"""The control plane that all runs share: a namespace for each, emptied before the next."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Self

from ...harness import judge, operator_process
from ...harness.controlplane import ControlPlane
from ...harness.controlplane.api import Connection
from ...harness.operator_process import ACCOUNT, NAMESPACE, ROOT, USER
from ...harness.proxy import Proxy
from ...harness.rig import QUEUES, remove_queues
from . import claims, domains, foreign, handed, jobs, preempting, queued, scenario, supply
from .forked import ForkedOperator, Origin
from .run import BAD_WORDS, Outcome, Run
from .trials import UNBROKEN

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from ...harness.judge import Verdict
    from .rest import Rest
    from .trials import Trial

PODS = "/api/v1/namespaces/{}/pods"
GROUPS = "/apis/{}/namespaces/{}/podgroups"
TUTTI = "tutti.dev/v1alpha1"
LEFT_BEHIND = (
    PODS + "?gracePeriodSeconds=0",
    GROUPS.format(TUTTI, "{}"),
    "/apis/tutti.dev/v1alpha1/namespaces/{}/reservations",
    "/api/v1/namespaces/{}/events",
)
LEASES = "/apis/coordination.k8s.io/v1"
SCHEDULER = "tutti"
LOG_LINES = 60


class Arena:
    """Runs trials; a context manager."""

    def __init__(
        self,
        source: Path = ROOT / "operator",
        *,
        is_foreign: bool = False,
        is_queued: bool = False,
        is_handed: bool = False,
        is_preempting: bool = False,
        has_domains: bool = False,
        has_claims: bool = False,
        has_jobs: bool = False,
    ) -> None:
        """``source`` is where the operator's package is: a mutant may be struck, too.

        ``is_foreign`` lets PodGroups of other projects declare the gangs,
        ``is_queued`` puts them into a tree of queues, ``is_handed`` lets kube-scheduler bind most,
        ``is_preempting`` plays the scene in which gangs end so that others start,
        ``has_domains`` the scene with racks, ``has_claims`` that with devices and volumes,
        ``has_jobs`` that in which gangs of Jobs and with budgets end so that others start.
        """
        self._is_foreign = is_foreign
        self._is_queued = is_queued
        self._is_handed = is_handed
        self._is_preempting = is_preempting
        self._has_domains = has_domains
        self._has_claims = has_claims
        self._has_jobs = has_jobs
        more = (*("workload-with-job",) * is_foreign, *("scheduler",) * is_handed)
        more += ("controller-manager",) * (has_claims or has_jobs)
        self._environment = {"TUTTI_GANG_SOURCES": ",".join(foreign.SOURCES)} if is_foreign else {}
        self._environment |= handed.ENVIRONMENT if is_handed else {}
        self._environment |= preempting.ENVIRONMENT if is_preempting or has_jobs else {}
        self._plane = ControlPlane.start(components=("kwok", *more))
        try:
            values = [f"settings.gangSources={{{','.join(foreign.SOURCES)}}}"] * is_foreign
            values += handed.VALUES * is_handed
            values += [preempting.VALUE] * (is_preempting or has_jobs)
            if is_foreign:
                for crd in foreign.CRDS:
                    self._plane.install_crds(crd)
            operator_process.install(self._plane, *values)
            more_nodes = queued.nodes() if is_queued else []
            more_nodes += preempting.nodes() if is_preempting else []
            more_nodes += jobs.nodes() if has_jobs else []
            more_nodes += [*domains.nodes(), domains.topology()] if has_domains else []
            more_nodes += [*supply.nodes(), *supply.classes()] if has_claims else []
            self._plane.create([*scenario.nodes(), *more_nodes, scenario.priority_class()])
            self._proxy = Proxy(self._plane.server, self._plane.authority)
            self._proxy.__enter__()
        except BaseException:
            self._plane.stop()
            raise
        original = self._plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
        self._kubeconfig = self._proxy.kubeconfig(original)
        self._origin = Origin(source).__enter__()
        # One for all requests: handshakes would be half of a run's time.
        self._connection = Connection(self._plane.server, self._plane.tls())
        self._numbers = itertools.count(1)
        self._unbroken: Rest | None = None
        self.writes = 0  # of an unbroken run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()
        self._origin.__exit__(kind, problem, trace)
        self._proxy.__exit__(kind, problem, trace)
        self._plane.stop()

    def run(self, trial: Trial) -> Outcome:
        """Run a trial from a clean start, against the end of an unbroken run."""
        if self._unbroken is None and trial is not UNBROKEN:
            first = self.run(UNBROKEN)
            assert not first.violations, "\n".join([*first.violations, first.log])
        number = next(self._numbers)
        namespace = f"run-{number}"
        self._connection.close()  # the API server ends one that was idle for long; it opens again
        self._prepare(namespace)
        operator = ForkedOperator(self._origin, self._plane, self._kubeconfig, self._environment)
        operator.log = self._plane.directory / f"{namespace}.log"
        heard = self._plane.audit_log.stat().st_size
        witness = judge.Witness(self._plane.kubeconfig, operator.gang_sources)
        request = self._connection.request
        running = Run(
            request,
            self._proxy,
            operator,
            namespace,
            is_foreign=self._is_foreign,
            is_queued=self._is_queued,
            is_handed=self._is_handed,
            is_preempting=self._is_preempting,
            has_domains=self._has_domains,
            has_claims=self._has_claims,
            has_jobs=self._has_jobs,
        )
        with witness, running as run:
            seen = run.play(trial, self._unbroken)
            run.operator.kill()
            if self._has_claims:
                run.troubles += [f"in the end: {fault}" for fault in claims.faults(request)]
            witness.stop()
        verdict = self._judge(witness, heard, namespace)
        groups = (foreign.KUBERNETES, foreign.PLUGINS, foreign.VOLCANO) if self._is_foreign else ()
        if self._has_jobs:
            jobs.remove(self._connection.request, namespace)
        for kind in (*LEFT_BEHIND, *(GROUPS.format(version, "{}") for version in groups)):
            self._connection.request("DELETE", kind.format(namespace))
        if self._has_claims:
            claims.remove(self._connection.request, namespace)
        if self._is_queued or self._is_preempting or self._has_jobs:
            remove_queues(self._connection.request, f"{namespace}-")
        return self._outcome(trial, run, seen, verdict)

    def _outcome(self, trial: Trial, run: Run, rest: Rest, verdict: Verdict) -> Outcome:
        log = run.operator.log.read_text(errors="replace")
        wrong = [*map(str, verdict.violations), *run.troubles]
        wrong += [f"not at rest: {finding}" for finding in verdict.unfinished]
        wrong += [f"a gap of the judge's: {finding}" for finding in verdict.unproved]
        wrong += ["the judge saw nobody charged"] * (self._is_queued and not verdict.charges)
        ends_some = self._is_preempting or self._has_jobs
        wrong += ["the judge saw nobody end"] * (ends_some and not verdict.ends)
        is_blind = self._has_jobs and not verdict.protections
        wrong += ["the judge saw no budget, and no Job, of a victim"] * is_blind
        wrong += ["the judge saw no domain"] * (self._has_domains and not verdict.domains)
        is_blind = self._has_claims and not (verdict.devices and verdict.volumes)
        wrong += ["the judge saw no devices, or no volumes"] * is_blind
        wrong += [f"the log says {words!r}" for words in BAD_WORDS if words in log]
        writes = sum(n for kind, n in run.course.written.items() if kind != "lease")
        if trial is UNBROKEN and rest.is_promised:
            self._unbroken, self.writes = rest, writes
        elif trial is UNBROKEN or self._unbroken is None:
            wrong.append(f"an unbroken run does not end as promised: {rest}")
        elif difference := rest.difference(self._unbroken):
            wrong.append(f"at rest otherwise than an unbroken run: {difference}")
        ended = run.fault_ended
        return Outcome(
            trial=trial,
            happened=run.course.is_over,
            violations=tuple(wrong),
            recovery=None if ended is None else run.rested - ended,
            writes=writes,
            log="\n".join(log.splitlines()[-LOG_LINES:]) if wrong else "",
        )

    def _judge(self, witness: judge.Witness, heard: int, namespace: str) -> Verdict:
        """Judge this run alone: the audit log of thousands of runs is not read again each time."""
        part = self._plane.directory / "audit-of-run.log"
        part.write_bytes(judge.lines_from(self._plane.audit_log, heard))
        return judge.judge(
            witness.history(),
            audit=part,
            operator_user=USER,
            scheduler_name=SCHEDULER,
            namespaces=[namespace],
        )

    def _prepare(self, namespace: str) -> None:
        """Fill a new namespace, and let the run begin with an office that nobody holds."""
        self._connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        account = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        supply.post(self._connection.request, account, {"metadata": {"name": "default"}})
        if self._has_domains:
            domains.restore(self._connection.request)
        if self._has_claims:
            supply.restore(self._connection.request)
        for item in self._objects(namespace):
            addresses = {
                "Pod": PODS.format(namespace),
                "PodGroup": GROUPS.format(item["apiVersion"], namespace),
                "Queue": QUEUES,
                **claims.addresses(namespace),
                **jobs.addresses(namespace),
            }
            self._connection.request("POST", addresses[item["kind"]], item)
        if self._has_claims:
            supply.await_claims(self._connection.request, namespace, claims.first_claims())
        if self._has_jobs:
            jobs.await_pods(self._connection.request, namespace)
        for lease in self._connection.request("GET", f"{LEASES}/leases")["items"]:
            about = lease["metadata"]
            if about["name"] == SCHEDULER:
                path = f"{LEASES}/namespaces/{about['namespace']}/leases/{SCHEDULER}"
                self._connection.request("DELETE", path)

    def _objects(self, namespace: str) -> list[dict[str, Any]]:
        """All that waits when the operator starts."""
        if self._is_preempting:
            return preempting.objects(namespace)
        if self._has_domains:
            return domains.objects(namespace)
        if self._has_claims:
            return [*claims.objects(namespace)]
        if self._has_jobs:
            return jobs.objects(namespace)
        return scenario.objects(
            namespace,
            is_foreign=self._is_foreign,
            is_queued=self._is_queued,
            is_handed=self._is_handed,
        )
