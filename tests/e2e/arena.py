"""Where races are run: one control plane and one operator behind a proxy, for many tests.

Every test has a namespace, nodes and a judge of its own. An ``Ear`` at the proxy tells when the
operator has been sent a change, so that what comes first is decided and not left to luck.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from aiohttp import web

from tests.api.places import Place
from tests.harness import operator_process
from tests.harness.controlplane import ControlPlane
from tests.harness.controlplane.nodes import node_manifest
from tests.harness.operator_process import ACCOUNT, NAMESPACE, OperatorProcess
from tests.harness.proxy import PATIENCE, Call, Exchange, Gate, Proxy, watches
from tests.harness.rig import Rig, pod_group

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

CPU = 8  # of a node
HALF = 4  # of a node, which is what a member takes
MEMBERS = 4  # so they fill two nodes
PEERS = 2  # members on one node


class Told(NamedTuple):
    """One event of a watch: ADDED, MODIFIED or DELETED, and the object's name."""

    change: str
    name: str


class Ear:
    """Lets the operator's watches through and notes what they tell."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        """Let one watch through."""
        async with exchange._send() as answer:
            stream = web.StreamResponse(status=answer.status)
            stream.content_type = "application/json"
            await stream.prepare(exchange._request)
            rest = b""
            async for chunk in answer.content.iter_any():
                await stream.write(chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                self.told.extend(_told(line) for line in lines if line)
            await stream.write_eof()
            return stream


def _told(line: bytes) -> Told:
    event = json.loads(line)
    return Told(event["type"], event["object"].get("metadata", {}).get("name", ""))


class Arena:
    """The control plane, the proxy and the operator; a context manager."""

    def __init__(self, plane: ControlPlane, proxy: Proxy) -> None:
        self.plane = plane
        self.proxy = proxy
        self.ear = Ear()
        original = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
        self.operator = OperatorProcess(plane, kubeconfig=proxy.kubeconfig(original))

    @classmethod
    @contextmanager
    def open(cls, *components: str) -> Iterator[Self]:
        """Start it all with kwok and these components, and stop it in the end."""
        with ControlPlane.start(components=("kwok", *components)) as plane:
            operator_process.install(plane)
            with Proxy(plane.server, plane.authority) as proxy:
                arena = cls(plane, proxy)
                with proxy.rule(watches, arena.ear):
                    arena.operator.start()
                    yield arena
                    assert arena.operator.stop() == 0
                assert "Traceback" not in arena.operator.log.read_text()

    @contextmanager
    def race(self) -> Iterator[Race]:
        """A test's corner, judged at its end and cleared."""
        if self.operator.process is None:
            self.operator.start()
        rig = Rig(self.plane, self.operator)
        rig.is_outlived = True
        with rig:
            race = Race(rig, self)
            yield race
            assert race.kept.items() <= race.bound_pods().items(), "a bound member was evicted"
        race.clear()

    def told(self, change: Callable[[], Collection[Told]]) -> None:
        """Make a change, and wait until the operator has been told all that it must hear of it."""
        mark = len(self.ear.told)
        missing = set(change())
        deadline = time.monotonic() + PATIENCE
        while missing := missing - set(self.ear.told[mark:]):
            assert time.monotonic() < deadline, f"the operator was never told of {missing}"
            time.sleep(0.01)
        # It answers probes in the loop that reads its watches.
        assert self.operator.probe("healthz") == "ok"
        assert self.operator.probe("healthz") == "ok"


class Race(Place):
    """A gang of four on two of three nodes, stopped at some point of its commit."""

    def __init__(self, rig: Rig, arena: Arena) -> None:
        super().__init__(rig)
        self.arena = arena
        self.group_name = "gang"
        self.placement: Mapping[str, list[str]] = {}  # as first reserved: pods by node
        self.begun = ""  # the node whose members may be bound while the gang is held
        self.target = ""  # the node whose members are not
        self.victim = ""  # one of those
        self.spare = ""  # a node that came later
        self.kept: Mapping[str, str] = {}  # pods that must stay where they are
        self.is_begun = False  # some member was bound before the change took effect

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Hold the gang when its Reservation stands and nothing else has happened."""
        gate = Gate(after_commit=True)
        with self.arena.proxy.rule(self.reserves, gate):
            self.begin()
            gate.await_held(1)
            self.read_placement()
            self.add_spare()
            try:
                yield
            finally:
                gate.open()

    @contextmanager
    def sent(self) -> Iterator[None]:
        """Hold the gang when its bindings are on their way and none has arrived."""
        gate = Gate()
        with self.arena.proxy.rule(self.binds, gate):
            with self.reserved():
                pass
            gate.await_held(MEMBERS)
            try:
                yield
            finally:
                gate.open()

    def begin(self) -> None:
        """Create two nodes and a gang that fills them."""
        self.rig.create(*self.beginning())

    def beginning(self) -> list[dict[str, Any]]:
        """What ``begin`` creates."""
        return [
            *(self.node(f"node-{i}") for i in range(2)),
            pod_group(self.group_name, MEMBERS, namespace=self.name),
            *(self.member(f"{self.group_name}-{i}") for i in range(MEMBERS)),
        ]

    def node(self, name: str) -> dict[str, Any]:
        """A node of this place, as a manifest."""
        about: dict[str, Any] = {"cpu": CPU, "memory": "32Gi", "labels": {"pool": self.name}}
        return node_manifest(f"{self.name}-{name}", **about)

    def member(self, name: str) -> dict[str, Any]:
        """A member of the gang, as a manifest."""
        return self.pod(name, self.group_name, cpu=HALF)

    def add_spare(self) -> None:
        """Create a third node, for what may have to be placed elsewhere."""
        self.spare = f"{self.name}-spare"
        self.rig.create(self.node("spare"))

    def read_placement(self) -> None:
        """Learn from the Reservation what goes where."""
        (held,) = self.rig.reservations(self.name)
        entries = held["spec"]["placement"]
        self.placement = {
            entry["node"]: sorted(pod["name"] for pod in entry["pods"]) for entry in entries
        }
        self.begun, self.target = sorted(self.placement)
        self.victim = self.placement[self.target][0]

    def reserves(self, call: Call) -> bool:
        """Whether a call reserves for the gang."""
        return call.creates("reservations") and self._is_here(call)

    def binds(self, call: Call) -> bool:
        """Whether a call binds one of its members."""
        return call.is_binding and self._is_here(call)

    def binds_to_target(self, call: Call) -> bool:
        """Whether a call binds one of those that are to be held."""
        return self.binds(call) and call.path.split("/")[-2] in self.placement[self.target]

    def _is_here(self, call: Call) -> bool:
        return f"/namespaces/{self.name}/" in call.path

    # Make

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        """Merge this into an object."""
        self.rig.plane.request("PATCH", path, body)

    def patch_node(self, name: str, body: Mapping[str, Any]) -> None:
        """Merge this into a node."""
        self.patch(f"/api/v1/nodes/{name}", body)

    def patch_group(self, body: Mapping[str, Any]) -> None:
        """Merge this into the PodGroup."""
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{self.name}/podgroups/{self.group_name}"
        self.patch(path, body)

    def remove(self, *names: str) -> None:
        """Delete pods at once."""
        for name in names:
            self.rig.plane.request("DELETE", f"{self._pods}/{name}?gracePeriodSeconds=0")

    def add_member(self, name: str) -> None:
        """Create one more member, as a controller does for one that was lost."""
        self.rig.create(self.member(name))

    # Look

    def keep(self) -> None:
        """Have every pod that is bound by now still be so in the end."""
        self.kept = self.bound_pods()

    def bound_pods(self) -> dict[str, str]:
        """The node of each bound pod, by uid."""
        uids = self.uids()
        return {uids[name]: node for name, node in self.nodes_of().items()}

    def nodes_of(self, group: str = "") -> dict[str, str]:
        """The node of each bound pod."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.rig.pods(group, self.name)
            if "nodeName" in pod["spec"]
        }

    def uids(self) -> dict[str, str]:
        """The uid of each pod."""
        pods = self.rig.pods("", self.name)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    # Wait

    def until_whole(self, members: int = MEMBERS) -> None:
        """Wait until so many members are bound, none of them lost, and the PodGroup says so."""
        self.until_bound(self.group_name, members)
        self.until_says(self.group_name, "Bound", "Bound", f"{members} of ")
        self.until_says(self.group_name, "Healthy", "Whole")

    def until_broken(self, reason: str, words: str = "") -> None:
        """Wait until the PodGroup says that it is no longer whole, and why."""
        self.until_says(self.group_name, "Healthy", reason, words)

    def clear(self) -> None:
        """Take everything away that the next test might meet."""
        for path in (
            f"/apis/tutti.dev/v1alpha1/namespaces/{self.name}/podgroups",
            f"{self._pods}?gracePeriodSeconds=0",
            f"/api/v1/nodes?labelSelector=pool%3D{self.name}",
        ):
            self.rig.plane.request("DELETE", path)
