"""Cases played on a real control plane: each scheduler on nodes and in a namespace of its own.

A scheduler gets one case after the other, and everything of one is gone before the next. Nodes need
no kubelet for that: what is asked is who is bound where.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...bench.e2e.changes import NO_FINALIZERS, opening
from ...bench.e2e.writing import Server, write_all, written
from ...bench.load.gangs import Form, version
from ...harness import operator_process
from ...harness.controlplane.api import Connection, collection
from ...harness.controlplane.cluster import ControlPlane
from ...harness.controlplane.errors import RequestError
from ...harness.controlplane.pins import NATIVE_COMPOSITE_API, chosen_k8s
from . import manifests
from .telling import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from .cases import Case

PATIENCE_SECONDS = 60.0  # for everyone; a second or two is what it takes
QUIET_SECONDS = 2.0  # after a refusal: what it was told may have been old
_SEEN_SECONDS = 1.0  # in which other schedulers see who is there already
_LOOK_SECONDS = 0.25
_NOT_YET = "UnknownLevel"  # what Tutti says of a gang before the levels are there
_IN_FLIGHT = 4  # a connection costs more than what is written over it
# By scheduler the conditions of a group that are false while it is not placed.
_PLACED = {
    Form.TUTTI: ("Reserved",),
    Form.NATIVE: ("PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled"),
    Form.KUEUE: ("QuotaReserved",),
}
NAMES = tuple(form.value for form in _PLACED)


class Player:
    """A scheduler with its nodes, its namespace, and what it is asked."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        """``name`` is one of `NAMES`, and that of its namespace and of its nodes' pool."""
        self.name = name
        self.form = Form(name)
        self._plane = plane
        self._server = Server(plane.server, plane.tls())
        self._wire = Connection(plane.server, plane.tls())
        self._pods = f"/api/v1/namespaces/{name}/pods"
        self._others = f"/api/v1/namespaces/{manifests.beside(name)}/pods"
        self._groups = [
            f"/apis/{api}/namespaces/{name}/{plural}" for api, plural in _kinds(self.form)
        ]

    def close(self) -> None:
        """Give the connection back to the system."""
        self._wire.close()

    def settle(self) -> None:
        """Create the namespaces and the nodes, and Kueue's description of them."""
        self._plane.create_namespace(self.name)
        self._plane.create_namespace(manifests.beside(self.name))
        made = [*manifests.nodes(self.name)]
        self._create(made)
        self._write(map(opening, made))
        if self.form is Form.KUEUE:
            self._plane.apply(manifests.kueue_queue(self.name))

    def play(self, case: Case, patience: float = PATIENCE_SECONDS) -> Outcome | None:
        """Create the gangs of a case at once and see who gets nodes; None if it cannot be asked."""
        if not all(manifests.can_ask(gang, self.form) for gang in case.gangs):
            return None
        self._create(manifests.others(case, self.name))
        if self.form is Form.TUTTI:
            # Tutti plans all gangs that wait together, and none while their levels are missing.
            self._create_gangs(case)
            self._until_seen(case, patience)
            self._create([manifests.tutti_topology()])
        else:
            time.sleep(_SEEN_SECONDS)
            self._create_gangs(case)
        outcome = self._outcome(case, patience)
        self._clear()
        return outcome

    def _create_gangs(self, case: Case) -> None:
        """Create the pods and then the groups: no scheduler begins with pods alone."""
        self._create(p for g in case.gangs for p in manifests.pods(g, self.name, self.form))
        self._create(o for g in case.gangs for o in manifests.groups(g, self.name, self.form))

    def _until_seen(self, case: Case, patience: float) -> None:
        """Wait until Tutti says that it has seen all members, a second after the last has come."""
        sizes = {gang.name: len(gang.sizes) for gang in case.gangs}
        deadline = time.monotonic() + patience
        while self._seen() != sizes and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)

    def _seen(self) -> dict[str, int]:
        """By gang the members that Tutti says it has seen."""
        return {
            _name(group): group.get("status", {}).get("members", {}).get("seen", 0)
            for path in self._groups
            for group in self._items(path)
        }

    def _outcome(self, case: Case, patience: float) -> Outcome:
        members = {
            gang.name: {gang.member(i) for i in range(len(gang.sizes))} for gang in case.gangs
        }
        deadline = time.monotonic() + patience
        where, refused, since = self._where(), dict[str, str](), time.monotonic()
        while True:
            waiting = {name for name, pods in members.items() if not pods <= where.keys()}
            is_quiet = time.monotonic() > since + QUIET_SECONDS
            if (
                not waiting
                or (is_quiet and waiting <= refused.keys())
                or time.monotonic() > deadline
            ):
                return Outcome(where, {name: refused.get(name, "") for name in waiting})
            time.sleep(_LOOK_SECONDS)
            seen = (self._where(), self._refused())
            if seen != (where, refused):
                (where, refused), since = seen, time.monotonic()

    def _where(self) -> dict[str, str]:
        """The nodes of the members that have one, as the case calls them."""
        return {
            _name(pod): pod["spec"]["nodeName"].removeprefix(f"{self.name}-")
            for pod in self._items(f"{self._pods}?labelSelector={manifests.MEMBER}%3Dyes")
            if "nodeName" in pod["spec"]
        }

    def _refused(self) -> dict[str, str]:
        """What the scheduler says of the gangs that it does not start."""
        return {
            _name(group): f"{line.get('reason')}: {line.get('message')}"
            for path in self._groups
            for group in self._items(path)
            for line in group.get("status", {}).get("conditions", [])
            if line["type"] in _PLACED[self.form]
            and line["status"] == "False"
            and line.get("reason") != _NOT_YET
        }

    def _clear(self) -> None:
        """Delete all pods and groups, and wait until they are gone."""
        if self.form is Form.TUTTI:
            self._wire.request("DELETE", collection(manifests.tutti_topology()))
        for path in (self._others, self._pods, *self._groups):
            self._wire.request("DELETE", f"{path}?gracePeriodSeconds=0")
        while left := [*self._items(self._pods), *self._items(self._others)]:
            # Kueue keeps pods that a group might replace; nobody comes to replace these.
            for name in (_name(pod) for pod in left if pod["metadata"].get("finalizers")):
                with suppress(RequestError):  # it may be gone
                    self._wire.request("PATCH", f"{self._pods}/{name}", NO_FINALIZERS)
            time.sleep(_LOOK_SECONDS)

    def _items(self, path: str) -> list[dict[str, Any]]:
        return list(self._wire.request("GET", path)["items"])

    def _create(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self._write(written("POST", collection(item), item) for item in objects)

    def _write(self, requests: Iterable[bytes]) -> None:
        write_all(self._server, requests, in_flight=_IN_FLIGHT)


def _kinds(form: Form) -> list[tuple[str | None, str]]:
    """The versions and the plurals of what a gang has beside pods."""
    composite = NATIVE_COMPOSITE_API.get(chosen_k8s())
    match form:
        case Form.KUEUE:
            return [(manifests.KUEUE_API, "workloads")]
        case Form.NATIVE if composite:
            more = [(composite, "compositepodgroups"), (composite, "workloads")]
            return [(version(form), "podgroups"), *more]
        case _:
            return [(version(form), "podgroups")]


def _name(body: Mapping[str, Any]) -> str:
    return str(body["metadata"]["name"])


@contextmanager
def players(names: Collection[str]) -> Iterator[list[Player]]:
    """A control plane of its own, and these schedulers at work on it.

    One kube-scheduler is there for the PodGroups of Kubernetes and for what Kueue lets through.
    """
    with ControlPlane.start(components=("native-topology",)) as plane:
        made = [Player(plane, name) for name in names]
        operator_process.install(plane)
        operator = operator_process.OperatorProcess(plane)
        try:
            if Form.TUTTI in names:
                operator.start(ready=False)
            if {Form.NATIVE, Form.KUEUE} & {*names}:
                plane.add("scheduler", "native-topology")
            if Form.KUEUE in names:
                plane.add("kueue")
            for player in made:
                player.settle()
            if Form.TUTTI in names:
                operator.await_ready()
            yield made
        finally:
            for player in made:
                player.close()
            operator.stop()
