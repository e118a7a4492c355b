"""The composition root: the one place that knows every concrete class, and the clock.

Settings become plain values here; streams, kopf, probes and the cycle are started, watched and
stopped here.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import kopf
from pythonjsonlogger.json import JsonFormatter

from . import __version__, handlers, probes
from .cycle import Cycle
from .kube import client, decode, errors, supply, wire
from .kube.access import Access
from .kube.client import Client
from .settings import Settings
from .strategies import STRATEGIES
from .strategies.problem import Budget, Strategy
from .world import World

logger = logging.getLogger(__name__)

FIRST_WAIT = 0.2  # seconds after a cycle that failed
LONGEST_WAIT = 5.0  # an API server that comes back is noticed within this
SETTLE_SECONDS = 0.02  # changes come in bursts: a gang's pods are created together
LONGEST_SETTLE = 0.2  # but an endless burst must not keep the cycle waiting
STUCK_SECONDS = 120.0  # a cycle that takes this much longer than its budget hangs
NOT_FOUND = 404  # what the API server answers for a kind that it does not know
STOP_SECONDS = 20.0  # to finish the cycle in hand; Kubernetes kills after 30


class Alarm:
    """Wakes the cycle when something changed, once per burst of changes."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def ring(self) -> None:
        """Something changed."""
        self._changed.set()

    async def sleep(self, seconds: float | None) -> None:
        """Sleep until something changes or the time is up, then until the burst is over."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return
        deadline = time.monotonic() + LONGEST_SETTLE
        while self._changed.is_set() and time.monotonic() < deadline:
            self._changed.clear()
            await asyncio.sleep(SETTLE_SECONDS)
        self._changed.clear()


class Pulse:
    """Runs cycles for ever, one at a time, and knows how that goes."""

    def __init__(
        self, cycle: Cycle, alarm: Alarm, *, may_begin: Callable[[], bool], patience: float
    ) -> None:
        """``may_begin`` holds back the first cycle; ``patience`` is when one counts as stuck."""
        self._cycle = cycle
        self._may_begin = may_begin
        self._alarm = alarm
        self._patience = patience
        self._began: float | None = None
        self._stopping = False
        self.trouble = ""

    def stuck(self) -> str:
        """Why the process should be restarted; empty while all is well."""
        if self._began is not None and time.monotonic() - self._began > self._patience:
            return f"a cycle has been running for more than {self._patience:.0f} s"
        return ""

    def stop(self) -> None:
        """Begin no further cycle."""
        self._stopping = True
        self._alarm.ring()

    async def beat(self) -> None:
        """Run a cycle whenever something changed or something is due."""
        while not (self._stopping or self._may_begin()):
            await self._alarm.sleep(None)
        wait = FIRST_WAIT
        while not self._stopping:
            self._began = time.monotonic()
            try:
                due = await self._cycle.run_once()
            except Exception as problem:
                wait = min(wait * 2, LONGEST_WAIT)
                self.trouble, due = str(problem) or repr(problem), wait
                is_known = isinstance(problem, errors.ApiError)
                logger.log(
                    logging.WARNING if is_known else logging.ERROR,
                    "cycle: %s Will try again in %.1f s",
                    self.trouble,
                    wait,
                    exc_info=not is_known,
                )
                self._began = None
                await asyncio.sleep(wait)
                continue
            self.trouble, wait, self._began = "", FIRST_WAIT, None
            await self._alarm.sleep(due)


async def serve(
    settings: Settings,
    kubeconfig: str | None = None,
    *,
    strategies: Mapping[str, Callable[[], Strategy]] = STRATEGIES,
) -> None:
    """Run the operator until it is told to stop; ``strategies`` is what settings choose from.

    Raises:
        errors.NoAccess: there is no cluster to run against.
        OSError: the probe port is taken.
    """
    access = await Access.load(kubeconfig)
    alarm = Alarm()
    world = World(alarm.ring)
    name = settings.scheduler_name
    async with Client(access) as api:
        cycle = Cycle(
            world,
            api,
            strategy=strategies[settings.strategy](),
            fallback=strategies["bestfit"](),
            budget=Budget(seconds=settings.budget_seconds),
            clock=time.time,
            scheduler=name,
            term=f"{socket.gethostname()}-{os.getpid()}/{time.time():.0f}",
            in_flight=settings.bindings_in_flight,
        )
        pulse = Pulse(
            cycle,
            alarm,
            may_begin=lambda: world.is_synced,
            patience=settings.budget_seconds + STUCK_SECONDS,
        )

        def ready() -> str:
            return pulse.trouble if world.is_synced else "the cluster is still being listed"

        async with probes.serving(settings.probe_port, healthy=pulse.stuck, ready=ready) as port:
            logger.info(
                "tutti %s serves scheduler name %r on %s; probes on port %d",
                __version__,
                name,
                access.server,
                port,
            )
            await _run(world, api, access, pulse, name)


async def _run(world: World, api: Client, access: Access, pulse: Pulse, name: str) -> None:
    """Run until a signal comes or something breaks; the cycle in hand is finished first."""
    stopping = asyncio.Event()
    _stop_on_signals(stopping)
    demand = handlers.demand_feeds(world, name)
    stop = asyncio.create_task(stopping.wait())
    beating = asyncio.create_task(pulse.beat())
    tasks = [stop, beating]
    try:
        # The demand is listed before the supply: a pod bound in between is then seen twice, never
        # not at all. And before kopf starts, which would never look for CRDs that come later.
        listing = asyncio.create_task(_first_list(api, demand))
        await asyncio.wait([listing, *tasks], return_when=asyncio.FIRST_COMPLETED)
        if listing.done():
            tasks += [
                asyncio.create_task(supply.follow(api, feed)) for feed in _supply(world, name)
            ]
            tasks.append(asyncio.create_task(handlers.relist_demand(api, demand)))
            tasks += await kopf.spawn_tasks(
                registry=handlers.registry(world, access, api, name),
                clusterwide=True,
                standalone=True,
            )
            # kopf has set its own, which would cancel everything at once, bindings too.
            _stop_on_signals(stopping)
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        tasks.append(listing)
    finally:
        pulse.stop()
        await asyncio.wait([beating], timeout=STOP_SECONDS)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        # kopf leaves its watches to be closed by the loop, and they complain about it.
        asyncio.get_running_loop().set_exception_handler(_ignore)
    for result in results:
        if isinstance(result, Exception):
            raise result


def _stop_on_signals(stopping: asyncio.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)


def _ignore(_loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    logger.debug("while stopping: %s", context.get("message"))


def _supply(world: World, name: str) -> tuple[supply.Feed[Any, Any], ...]:
    """The streams of the supply side."""

    def of_ours(pod: wire.Pod) -> Any:
        if pod.spec.scheduler_name == name:
            return decode.decode_member(pod)
        return decode.decode_occupant(pod)

    return (
        supply.Feed(client.NODES, wire.Node, decode.decode_node, world.nodes),
        supply.Feed(client.BOUND, wire.Pod, of_ours, world.bound),
        supply.Feed(client.others_pending(name), wire.Pod, decode.decode_occupant, world.pinned),
        supply.Feed(
            client.RESERVATIONS, wire.Reservation, decode.decode_reservation, world.reservations
        ),
    )


async def _first_list(api: Client, feeds: tuple[supply.Feed[Any, Any], ...]) -> None:
    wait = FIRST_WAIT
    said = ""
    while True:
        try:
            for feed in feeds:
                await supply.relist(api, feed)
        except errors.ApiError as problem:
            sentence = str(problem)
            if problem.status == NOT_FOUND:
                sentence = "the CRDs are not installed: run `tutti crds | kubectl apply -f -`."
            if sentence != said:
                logger.warning("%s Will look again", sentence)
                said = sentence
            wait = min(wait * 2, LONGEST_WAIT)
            await asyncio.sleep(wait)
        else:
            return


def configure_logs(style: str, level: str) -> None:
    """Write log lines to stderr: for people at a terminal, as JSON elsewhere."""
    out = logging.StreamHandler(sys.stderr)
    if style == "json" or (style == "auto" and not sys.stderr.isatty()):
        out.setFormatter(
            JsonFormatter(
                "{asctime}{levelname}{name}{message}",
                style="{",
                rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            )
        )
    else:
        out.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[out], force=True)
    # kopf tells its own life at info; what it says of ours is at warning and above.
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("aiohttp").setLevel(logging.WARNING)
