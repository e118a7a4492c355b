"""One leader stopped at its k-th write, while another takes over and changes what was decided."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, Self

from ...harness.controlplane.errors import RequestError
from ...harness.operator_process import ACCOUNT, NAMESPACE, OperatorProcess
from ...harness.proxy import Proxy, before, nth
from ...harness.rig import Rig, members, pod, pod_group
from .scene import NODES, SIZE, Scene, delete_pods

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from aiohttp import web

    from ...harness.proxy import Call, Exchange

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/tutti"
MODES = ("before", "after")  # the server has heard of the write when the leader stops, or has not
IDENTITIES = ("tutti-0", "tutti-1")
PATIENCE = 60.0


def counts(call: Call) -> bool:
    """Whether a call is one of the writes that are counted; renewals come by the clock."""
    return call.is_write and "/leases" not in call.path


def evicts(call: Call) -> bool:
    """Whether a call is an eviction."""
    return call.is_write and call.path.endswith("/eviction")


def _binds(call: Call) -> bool:
    return call.is_write and call.path.endswith("/binding")


def _signs(call: Call) -> bool:
    return call.method == "PATCH" and "/reservations/" in call.path


class Victim:
    """Stops a process at one call of its own, and holds this call until it is woken."""

    def __init__(self, operator: OperatorProcess, *, after_commit: bool) -> None:
        self._operator = operator
        self._after_commit = after_commit
        self._is_awake = threading.Event()
        self.is_stopped = threading.Event()
        self.call = ""

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        """Stop the process; its request goes on before, or once it has been woken."""
        self.call = f"{exchange.call.method} {exchange.call.path}"
        answer = await exchange.ask() if self._after_commit else None
        assert self._operator.process is not None
        os.kill(self._operator.process.pid, signal.SIGSTOP)
        self.is_stopped.set()
        while not self._is_awake.is_set():  # noqa: ASYNC110 - the thread of a test wakes it
            await asyncio.sleep(0.01)
        return answer if answer is not None else await exchange.forward()

    def wake(self) -> None:
        """Let the process go on, and its request."""
        if self._operator.process is not None and self.is_stopped.is_set():
            os.kill(self._operator.process.pid, signal.SIGCONT)
        self._is_awake.set()


class Paused(NamedTuple):
    """What became of one round."""

    call: str  # at which the leader was stopped; empty if it made fewer writes
    seconds: float  # from the stop to the gang whole under the other


class Pausing:
    """Two replicas, each on a road of its own; a context manager, judged by its ``rig``."""

    def __init__(self, scene: Scene | None = None) -> None:
        """By default, plain gangs start on free nodes."""
        self._scene = scene = scene or Scene()
        self.rig = Rig.start(*scene.components, operator=False, values=scene.values)
        plane = self.rig.plane
        original = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
        self._stack = ExitStack()
        self.replicas: dict[str, OperatorProcess] = {}
        self.roads: dict[str, Proxy] = {}
        for identity in IDENTITIES:
            road = self._stack.enter_context(Proxy(plane.server, plane.authority))
            kubeconfig = road.kubeconfig(original)
            operator = OperatorProcess(plane, environment=scene.environment, kubeconfig=kubeconfig)
            operator.identity, operator.log = identity, plane.directory / f"{identity}.log"
            self.replicas[identity], self.roads[identity] = operator, road
        self.rig.operator = self.replicas[IDENTITIES[0]]

    def __enter__(self) -> Self:
        self._stack.enter_context(self.rig)
        self._stack.enter_context(self._scene.open(self.rig))
        self.rig.create(pod("running", memory="1Gi"))
        for replica in self.replicas.values():
            self._stack.callback(replica.stop)
            replica.start()
        self.rig.until(lambda: self.rig.bound() == 1, "the first pod is bound")
        self._scene.restore(self.rig)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                verdict = self.rig.verdict()
                assert self._scene.has_been_seen(verdict), (
                    f"of the scene nothing was judged: {verdict.summary()}"
                )
        finally:
            self._stack.__exit__(kind, problem, trace)

    def leader(self) -> str:
        """Who holds the Lease; empty while nobody does."""
        try:
            return str(self.rig.plane.request("GET", LEASE)["spec"].get("holderIdentity", ""))
        except RequestError:
            return ""

    def round(self, k: int, mode: str, writes: Callable[[Call], bool] = counts) -> Paused:
        """Stop the leader at the k-th of these writes for a new gang; the other leads on."""
        name = f"gang-{k}-{mode}"
        first = self.rig.until(self.leader, "somebody leads")
        (second,) = set(IDENTITIES) - {first}
        seen = self._times_stood_down(first)
        victim = Victim(self.replicas[first], after_commit=mode == "after")
        with self.roads[first].rule(nth(k, writes), victim):
            try:
                self._submit(name)
                if not self._stops_first(victim, name):
                    return Paused("", 0.0)
                began = time.monotonic()
                self._take_over(name, second)
                taken = time.monotonic() - began
                self.rig.until_bound(name, SIZE)
            finally:
                victim.wake()
            self._until_it_stands_by(first, seen)
        faults = self._scene.faults(self.rig)
        assert not faults, f"{victim.call}: {faults}"
        self._clean_up(name)
        return Paused(victim.call, taken)

    def restart(self, mode: str) -> OperatorProcess:
        """Kill the leader at a binding, and stop it where it signs what it left; the other leads.

        Answers the one that was stopped, awake again.
        """
        name = f"restart-{mode}"
        first = self.rig.until(self.leader, "somebody leads")
        (second,) = set(IDENTITIES) - {first}
        operator, road = self.replicas[first], self.roads[first]
        with road.rule(nth(1, _binds), before(operator.strike)):
            self._submit(name)
            self.rig.until(lambda: operator.is_down, f"{first} is killed")
        seen = self._times_stood_down(first)
        victim = Victim(operator, after_commit=mode == "after")
        with road.rule(nth(1, _signs), victim):
            try:
                operator.start(ready=False)
                self.rig.until(victim.is_stopped.is_set, f"{first} signs")
                self._take_over(name, second)
            finally:
                victim.wake()
            self._until_it_stands_by(first, seen)
        self._clean_up(name)
        return operator

    def _submit(self, name: str) -> None:
        gang = members(name, SIZE, **self._scene.about())
        self.rig.create(pod_group(name, SIZE), *gang)

    def _stops_first(self, victim: Victim, name: str) -> bool:
        """Whether the leader comes to its k-th write before all is done and said."""

        def is_settled() -> bool:
            bound = self.rig.condition(name, "Bound").get("status") == "True"
            return bound and not self.rig.reservations()

        self.rig.until(lambda: victim.is_stopped.is_set() or is_settled(), "a stop, or the end")
        if victim.is_stopped.wait(0 if is_settled() else PATIENCE):
            return True
        return victim.is_stopped.wait(3.0)  # the last report comes when all is quiet

    def _take_over(self, name: str, second: str) -> None:
        """Close the nodes that were chosen, free the Lease, and wait for the other to act."""
        chosen = {
            on["node"]
            for reservation in self.rig.reservations()
            for on in reservation["spec"]["placement"]
        }
        for node in chosen:
            self._cordon(node, closed=True)
        if len(chosen) == len(NODES):
            self._cordon(next(iter(chosen)), closed=False)
        # As if its time had run out: nothing that is promised may depend on the clock.
        self.rig.plane.request("DELETE", LEASE)
        self.rig.until(lambda: self.leader() == second, f"{second} leads")
        self._scene.help_on(self.rig, name)
        self.rig.until_bound(name, SIZE)
        self.rig.until(lambda: not self.rig.reservations(), "all of it is carried out")
        for node in chosen:
            self._cordon(node, closed=False)

    def _times_stood_down(self, identity: str) -> int:
        return self.replicas[identity].log.read_text().count("stands down")

    def _until_it_stands_by(self, identity: str, seen: int) -> None:
        self.rig.until(
            lambda: self._times_stood_down(identity) > seen,
            f"{identity} sees that it leads no more",
        )

    def _cordon(self, node: str, *, closed: bool) -> None:
        patch = {"spec": {"unschedulable": closed}}
        self.rig.plane.request("PATCH", f"/api/v1/nodes/{node}", patch)

    def _clean_up(self, name: str) -> None:
        delete_pods(self.rig, name)
        self.rig.delete("ptg", name)
        self.rig.until(lambda: not self.rig.pods(name), "the gang is gone")
        self._scene.restore(self.rig)
