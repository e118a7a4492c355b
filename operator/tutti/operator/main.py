"""The composition root: the one module that knows every concrete class, and the clock.

It turns settings into plain values, and starts, watches and stops streams, kopf, probes and cycles.
"""

import asyncio
import gc
import logging
import signal
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import kopf

from .. import __version__, dump
from ..dump.violations import ViolationDumps
from ..kube import errors, gang_sources, list_watch
from ..kube.access import Access
from ..kube.calls import Right
from ..kube.client import Client
from ..kube.clock import ServerClock
from ..kube.gang_sources import yunikorn
from ..kube.leader_election import Deposed, Election, assert_name_is_free
from ..model.decisions import Mode
from ..model.keys import LeaseKey
from ..model.queues import Preemption
from ..reporting import probes
from ..reporting.metrics import Metrics
from ..state.cluster_state import ClusterState
from ..state.reflectors import (
    Reflector,
    Reflectors,
    capacities_into,
    device_classes_into,
    devices_into,
    reflectors_into,
    storage_into,
)
from ..strategies import load
from ..strategies.problem import Strategy
from . import handlers
from .cycle import Cycle
from .kopf_lists import KopfLists, persist
from .runner import AnsweredCalls, CycleRunner, WakeSignal
from .settings import Settings
from .takeover import Takeover

logger = logging.getLogger(__name__)

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
CONTROL_PLANE = "kube-system"
STUCK_SECONDS = 120.0  # a cycle that takes this many seconds more than its budget hangs
STORAGE_LOOK_SECONDS = 0.5  # seconds between two checks for a first pod with claims
VOLUMES, DEVICES = "volumes", "devices"  # what claims are for, in log lines
GC_THRESHOLD = 20_000  # new objects between two collections; Python's default is at most 2,000
STOP_SECONDS = 20.0  # seconds to finish the current cycle; Kubernetes kills the process after 30


async def serve(
    settings: Settings,
    kubeconfig: str | None = None,
    *,
    strategy_of: Callable[[str], Strategy] = load,
) -> None:
    """Run the operator until a signal stops it; ``strategy_of`` makes the strategy of a name.

    Raises:
        StrategyError: the strategy cannot be used.
        errors.NoAccess: there is no cluster to run against.
        NameTaken: another scheduler of the same name runs.
        OSError: the probe port is taken.
    """
    strategy, fallback = strategy_of(settings.strategy), strategy_of("bestfit")
    access = await Access.load(kubeconfig)
    wake_signal = WakeSignal()
    sources = gang_sources.chosen(settings.gang_sources)
    makes_groups = settings.mode is not Mode.SHADOW
    metrics = Metrics(settings.mode)
    clock = ServerClock(time.time, time.monotonic)

    answered = AnsweredCalls()

    def record_answer(call: Right, status: int) -> None:
        metrics.called(call, status)
        answered.record(call, status)

    def record_confirmation(confirmed: float | None) -> None:
        metrics.watch_delay(0.0 if confirmed is None else clock() - confirmed)

    preempts = settings.preemption is not Preemption.OFF
    state = ClusterState(
        wake_signal.wake,
        is_declaring=makes_groups and settings.spark_enabled,
        reads_task_groups=makes_groups and yunikorn.SOURCE in sources,
        reads_devices=settings.devices_enabled,
        binds_volumes=settings.bind_volumes,
        preempts=preempts,
        shown=record_confirmation,
    )
    name = settings.scheduler_name
    lease = LeaseKey(settings.lease_namespace or _own_namespace(), name)
    feeds = reflectors_into(
        state,
        name,
        settings.namespaces,
        sources=sources,
        preempts=preempts,
        hands_over=settings.hand_over,
        elsewhere=_warn_of_reservations,
    )
    async with Client(
        access,
        lease,
        on_answer=record_answer,
        clock=clock,
        sources=sources,
        hands_over=settings.hand_over,
    ) as api:
        election = Election(
            api,
            settings.identity or socket.gethostname(),
            clock=clock,
            monotonic=time.monotonic,
            changed=wake_signal.wake,
            mode=settings.mode,
        )
        metrics.follow(election)
        cycle = Cycle(
            state,
            api,
            scheduler=name,
            strategy=strategy,
            fallback=fallback,
            budget=settings.budget,
            clock=clock,
            in_flight=settings.bindings_in_flight,
            policy=settings.policy,
            limits=settings.rollout_limits,
            volume_seconds=settings.volume_seconds,
            usage_half_life=float(settings.usage_half_life_seconds),
            dumps=ViolationDumps(
                Path(settings.dump_directory or tempfile.gettempdir()), setup_of(settings)
            ),
            metrics=metrics,
            predecessor_resigned=lambda: election.follows_resignation,
            leads=lambda term: election.term == term,
        )
        takeover = Takeover(
            cycle,
            api,
            reservations=feeds.reservations,
            gangs_and_pods=(
                *feeds.gangs,
                feeds.pending,
                *((feeds.pinned,) if settings.hand_over else ()),
                feeds.bound,
            ),
        )
        demand = KopfLists(api, feeds.demand, wake_signal.wake)

        def is_synced() -> bool:
            return state.is_synced and demand.is_current

        runner = CycleRunner(
            cycle,
            wake_signal,
            election,
            take_over=takeover.complete,
            may_begin=is_synced,
            patience=settings.budget_seconds + STUCK_SECONDS,
            progress=lambda: max(cycle.planner.stepped_at, answered.last_at),
            ended=metrics.ended,
        )

        def ready() -> str:
            if not is_synced():
                return "Tutti is still listing the cluster"
            return election.trouble or runner.trouble

        async with probes.serving(
            settings.probe_port, healthy=runner.stuck, ready=ready, metrics=metrics.text
        ) as port:
            logger.info(
                "tutti %s schedules pods of scheduler name %r in %s on %s; probes on port %d",
                __version__,
                name,
                ", ".join(settings.namespaces) or "all namespaces",
                access.server,
                port,
            )
            if settings.mode is not Mode.ACTIVE:
                logger.warning("mode %s: no gang starts", settings.mode)
            run = _Run(
                api,
                feeds,
                state=state,
                election=election,
                takeover=takeover,
                runner=runner,
                demand=demand,
                registry=partial(handlers.registry, state, demand, access, feeds),
                # A shadow binds nothing, so it may run beside the scheduler that it is to replace.
                assert_name_is_free=None
                if settings.mode is Mode.SHADOW
                else partial(assert_name_is_free, api, name, clock, settings.mode),
            )
            await run.until_stopped()


def setup_of(settings: Settings) -> dump.PlannerConfig:
    """The planner's configuration, as dumps store it."""
    return dump.PlannerConfig(
        settings.scheduler_name,
        settings.strategy,
        settings.policy,
        asdict(settings.budget),
        settings.bind_volumes,
    )


class _Run:
    """The tasks of one run, from the first list until the stop."""

    def __init__(
        self,
        api: Client,
        feeds: Reflectors,
        *,
        state: ClusterState,
        election: Election,
        takeover: Takeover,
        runner: CycleRunner,
        demand: KopfLists,
        registry: Callable[[Collection[str]], kopf.OperatorRegistry],
        assert_name_is_free: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._api = api
        self._assert_name_is_free = assert_name_is_free
        self._feeds = feeds
        self._storage = storage_into(state)
        self._device_classes = device_classes_into(state)
        self._devices = devices_into(state)
        self._capacities = capacities_into(state)
        self._state = state
        self._election = election
        self._takeover = takeover
        self._runner = runner
        self._demand = demand
        self._registry = registry
        self._stopping = asyncio.Event()
        self._listed: dict[str, str] = {}  # supply feeds: version of the first list, by stream name
        self._tasks: list[asyncio.Task[Any]] = []

    async def until_stopped(self) -> None:
        """Run until a signal comes or a task fails; the current cycle is finished first."""
        self._stop_on_signals()
        cycling = asyncio.create_task(self._runner.run_forever())
        self._tasks += [asyncio.create_task(self._stopping.wait()), cycling]
        try:
            listing = asyncio.create_task(self._first_lists())
            await asyncio.wait([listing, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            if listing.done():
                listing.result()  # a bug in the lists must end the run, or it would never cycle
                _spare_garbage_collector()
                self._follow()
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self._tasks.append(listing)
        finally:
            self._runner.stop()
            await asyncio.wait([cycling], timeout=STOP_SECONDS)
            is_idle = cycling.done()
            for task in self._tasks:
                task.cancel()
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
            if is_idle:  # else calls may be under way: a standby then waits until the Lease expires
                await self._election.resign()
            # kopf leaves its watches to the loop to close, and they then log complaints.
            asyncio.get_running_loop().set_exception_handler(_ignore)
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _first_lists(self) -> None:
        """Find out which replica leads, then list the demand, then the supply.

        The Lease comes first: objects that are listed while we lead need no second list. The demand
        comes before the supply: a pod that is bound in between is then seen twice, and never
        missed. Both come before kopf starts, because kopf never looks for CRDs that are installed
        later.
        """
        if self._assert_name_is_free is not None:
            await persist(self._assert_name_is_free)
        await self._election.look()
        self._tasks.append(asyncio.create_task(self._election.campaign()))
        await persist(self._adopt)
        await persist(self._demand.list_all)
        await persist(partial(self._list_once, self._feeds.pinned))
        if self._state.storage.are_wanted:
            # The first cycle already carries out Reservations of pods with claims.
            await persist(partial(self._list_wanted, self._storage, VOLUMES))
            if self._state.storage.needs_capacities:
                await persist(partial(self._list_wanted, self._capacities, VOLUMES))
        if self._state.devices.are_classes_wanted:
            # Whether a node publishes a resource decides whether devices are needed for it.
            await persist(partial(self._list_once, self._feeds.nodes))
        if self._state.devices.are_classes_wanted:
            await persist(partial(self._list_wanted, self._device_classes, DEVICES))
        if self._state.devices.are_wanted:
            await persist(partial(self._list_wanted, self._devices, DEVICES))
        await persist(self._list_supply)

    async def _adopt(self) -> None:
        if self._election.term:
            try:
                await self._takeover.adopt(self._election.term)
            except Deposed as why:
                self._election.stand_down(str(why))

    async def _list_supply(self) -> None:
        for feed in self._feeds.supply:
            await self._list_once(feed)

    async def _list_once(self, feed: Reflector) -> None:
        if feed.stream.name not in self._listed:
            self._listed[feed.stream.name] = await list_watch.relist(self._api, feed)

    async def _list_wanted(self, feeds: Sequence[Reflector], what: str) -> None:
        try:
            for feed in feeds:
                await list_watch.relist(self._api, feed)
        except errors.Refused as problem:  # pods without claims do not need this right
            logger.warning("%s Pods that name claims for %s wait", problem, what)

    async def _follow_once_wanted(
        self, feeds: Sequence[Reflector], are_wanted: Callable[[], bool]
    ) -> None:
        """Follow what claims need once a pod of ours has a claim, or may get one."""
        while not are_wanted():  # noqa: ASYNC110 - the state knows no event loop
            await asyncio.sleep(STORAGE_LOOK_SECONDS)
        await asyncio.gather(*(list_watch.follow(self._api, feed) for feed in feeds))

    def _follow(self) -> None:
        following = [
            list_watch.follow(self._api, feed, self._listed[feed.stream.name])
            for feed in self._feeds.supply
        ]
        demand = self._demand.run(
            self._registry,
            begin=partial(persist, self._demand.list_all),
            began=self._stop_on_signals,
        )
        state = self._state
        streams = (
            *following,
            self._follow_once_wanted(self._storage, lambda: state.storage.are_wanted),
            self._follow_once_wanted(self._capacities, lambda: state.storage.needs_capacities),
            self._follow_once_wanted(
                self._device_classes, lambda: state.devices.are_classes_wanted
            ),
            self._follow_once_wanted(self._devices, lambda: state.devices.are_wanted),
            demand,
        )
        self._tasks += [asyncio.create_task(stream) for stream in streams]

    def _stop_on_signals(self) -> None:
        """Set handlers that let the current cycle finish; kopf's own would cancel sent bindings."""
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)


def _spare_garbage_collector() -> None:
    """Make garbage collection rare, and exempt objects that live as long as the process.

    These objects are code and first lists. A full collection would walk them all again each time,
    and would delay bindings.
    """
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


def _warn_of_reservations(namespace: str) -> None:
    logger.warning(
        "namespace %s has Reservations of this scheduler name but is not in TUTTI_NAMESPACES, so "
        "Tutti does not keep their room; add it until `kubectl get reservations -n %s` shows none",
        namespace,
        namespace,
    )


def _ignore(_loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    logger.debug("while stopping: %s", context.get("message"))


def _own_namespace() -> str:
    """The namespace of the operator's pod; outside a cluster, that of the control plane."""
    try:
        return NAMESPACE_FILE.read_text().strip() or CONTROL_PLANE
    except OSError:
        return CONTROL_PLANE
