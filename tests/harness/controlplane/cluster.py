"""A control plane: started, used, stopped.

All of it lives in one directory: credentials, logs, etcd's files, and `processes.json`, from
which another program can take it over.
"""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import ssl
import tempfile
import time
import urllib.request
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from . import build, cache, credentials
from .access import Access
from .components import (
    PORTS,
    base_components,
    controllers,
    free_ports,
    needed_binaries,
    optional_components,
)
from .controllers import RECIPES, install
from .errors import StartError
from .pins import chosen_k8s
from .processes import Process, spawn, stop
from .wiring import AUDIT_POLICY, Wiring

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import TracebackType

    from .controllers import Recipe
    from .wiring import Component

_READY_SECONDS = 90
_POLL_SECONDS = 0.05
_STOP_SECONDS = 10
_OK = 200
_ADDRESS_TAKEN = "address already in use"
_ATTEMPTS = 3
# Who is shown each control plane when it has ended, before its files go.
last_looks: list[Callable[[ControlPlane], None]] = []


class ControlPlane(Access):
    """etcd, kube-apiserver and what else was asked for; it ends with its `with` block.

    Unless detached, the kernel ends the processes when this program dies, however it dies.
    """

    def __init__(
        self,
        directory: Path,
        server: str,
        *,
        k8s: str,
        components: Collection[str],
        owns_directory: bool,
    ) -> None:
        super().__init__(directory, server)
        self.k8s = k8s
        self.components = tuple(sorted(components))
        self.processes: list[Process] = []
        self.hosts_mutants = False  # operators that are wrong on purpose
        self._owns_directory = owns_directory
        self._wiring: Wiring | None = None

    @classmethod
    def start(
        cls,
        directory: Path | None = None,
        *,
        components: Collection[str] = ("kwok",),
        clients: Collection[str] = ("kubectl",),
        k8s: str | None = None,
        detached: bool = False,
        audit_policy: Path = AUDIT_POLICY,
    ) -> Self:
        """A ready control plane, its binaries and those of ``clients`` built first if need be.

        A directory made here goes when it stops; a given one exists, is empty, and stays.
        """
        minor = chosen_k8s(k8s)
        binaries = build.binaries({*needed_binaries(components), *clients}, k8s=minor)
        names = frozenset(components)
        for attempt in range(1, _ATTEMPTS + 1):
            place = directory or Path(tempfile.mkdtemp(prefix="tutti-control-plane-"))
            wiring = Wiring(place, binaries, free_ports(*PORTS), minor, names, audit_policy)
            plane = cls(
                place,
                wiring.server,
                k8s=minor,
                components=components,
                owns_directory=directory is None,
            )
            try:
                plane._start(wiring, detached=detached)
            except BaseException as error:
                plane.stop()
                # Another process took a port between our look and the start: look again.
                taken = isinstance(error, StartError) and _ADDRESS_TAKEN in str(error)
                if not taken or attempt == _ATTEMPTS:
                    raise
            else:
                return plane
        raise AssertionError

    @classmethod
    def attach(cls, directory: Path) -> Self:
        """The control plane that some program started in this directory."""
        state = json.loads((directory / "processes.json").read_text())
        plane = cls(
            directory,
            state["server"],
            k8s=state["k8s"],
            components=state["components"],
            owns_directory=True,
        )
        plane.processes = [Process(**process) for process in state["processes"]]
        return plane

    @property
    def is_alive(self) -> bool:
        """Whether all of its processes run."""
        return bool(self.processes) and all(process.is_alive for process in self.processes)

    @property
    def feature_gates(self) -> list[str]:
        """The flags that turn on, in a process of Kubernetes, what is on in the API server."""
        return self._require_wiring().gates()

    def stop(self) -> None:
        """End exactly these processes, etcd last, and remove what was made for them."""
        for process in reversed(self.processes):
            stop(process, seconds=_STOP_SECONDS)
        self.processes = []
        for look in last_looks:
            look(self)
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def process(self, name: str) -> Process:
        """The process of this name, such as "etcd" or "kube-scheduler"."""
        return next(process for process in self.processes if process.name == name)

    def add(self, *names: str, ready: bool = True) -> Process:
        """Start one more component; unless told otherwise, wait until it is ready.

        Further names are its features, such as "native-gang": they count for it alone.
        """
        own = self._require_wiring()
        known = {**own.binaries, **build.binaries(needed_binaries(names), k8s=self.k8s)}
        wiring = replace(own, binaries=known, names=frozenset(names))
        for component in optional_components(wiring):
            self.run(component, ready=ready)
        for recipe in controllers(wiring):
            install(self, wiring, recipe)
            self._start_controller(recipe, wiring, detached=False)
        return self.processes[-1]

    def run(self, component: Component, *, ready: bool = True) -> None:
        """Start a process that ends with the others, and wait until it is ready if asked to."""
        self._spawn(component, detached=False)
        if ready:
            self._await_ready([component])

    def restart_api_server(self) -> None:
        """Kill the API server as a power cut would, and start it again; it is ready then."""
        before, again = self.process("kube-apiserver"), base_components(self._require_wiring())[-1]
        before.send(signal.SIGKILL)
        self.remove(before)
        self._spawn(again, detached=False)
        self._await_ready([again])

    def remove(self, process: Process) -> None:
        """End one of its processes."""
        stop(process, seconds=_STOP_SECONDS)
        self.processes.remove(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _require_wiring(self) -> Wiring:
        if self._wiring is None:
            message = "processes are added by the program that started the control plane"
            raise StartError(message)
        return self._wiring

    def _start(self, wiring: Wiring, *, detached: bool) -> None:
        self._wiring = wiring
        for name in ("bin", "logs", "etcd"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
            (self.directory / name).mkdir(mode=0o700)
        _write_credentials(wiring)
        _link_binaries(wiring)
        base = base_components(wiring)
        for component in base:
            self._spawn(component, detached=detached)
        self._await_ready(base[-1:])
        self.create_namespace("default")
        # Before kube-controller-manager: its garbage collector seeks new kinds twice a minute.
        for recipe in controllers(wiring):
            install(self, wiring, recipe)
        optional = optional_components(wiring)
        for component in optional:
            self._spawn(component, detached=detached)
        self._await_ready(optional)
        for recipe in controllers(wiring):
            self._start_controller(recipe, wiring, detached=detached)

    def _start_controller(self, recipe: Recipe, wiring: Wiring, *, detached: bool) -> None:
        components = [make(wiring, name) for name, make in recipe.processes.items()]
        for component in components:
            self._spawn(component, detached=detached)
        self._await_ready(components)
        self.apply(recipe.afterwards)
        for manifest in recipe.admitted:
            self.until_admitted(manifest)

    def _spawn(self, component: Component, *, detached: bool) -> Process:
        log = self.directory / "logs" / f"{component.name}.log"
        # Not one's own PATH and kubeconfig: each process is told by flags what to use.
        environment = {name: self.environment[name] for name in ("PATH", "HOME")}
        environment |= component.environment
        process = spawn(
            component.name, component.command, log, environment=environment, detached=detached
        )
        self.processes.append(process)
        state = {
            "server": self.server,
            "k8s": self.k8s,
            "components": self.components,
            "processes": [asdict(process) for process in self.processes],
        }
        cache.write(self.directory / "processes.json", json.dumps(state))
        return process

    def _await_ready(self, waited_for: Collection[Component]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        # Nobody in particular asks: a server that verifies clients may not know the administrator.
        context = ssl.create_default_context(cafile=str(self.authority))
        pending = list(waited_for)
        while pending:
            dead = [process for process in self.processes if not process.is_alive]
            if dead:
                message = f"{dead[0].name} ended at its start, saying\n{dead[0].tail()}"
                raise StartError(message)
            if time.monotonic() > deadline:
                late = self.process(pending[0].name)
                message = f"{late.name} is not ready after {_READY_SECONDS} s\n{late.tail()}"
                raise StartError(message)
            pending = [each for each in pending if not _is_ready(each.health, context)]
            if pending:
                time.sleep(_POLL_SECONDS)


def _is_ready(address: str, context: ssl.SSLContext) -> bool:
    opener = urllib.request.build_opener(
        # Not the proxy of the user's shell: this is loopback.
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=context),
    )
    try:
        with opener.open(address, timeout=5) as answer:
            return bool(answer.status == _OK)
    except (OSError, http.client.HTTPException):
        return False


def _write_credentials(wiring: Wiring) -> None:
    authority = credentials.Authority()
    place, trusted = wiring.directory, authority.certificate
    (place / "ca.crt").write_text(trusted)
    certificate, key = authority.server()
    (place / "server.crt").write_text(certificate)
    credentials.write_private(place / "server.key", key)
    credentials.write_private(place / "service-accounts.key", credentials.signing_key())
    administrator = authority.client("admin", "system:masters")
    credentials.write_private(place / "admin.pem", "".join(administrator.values()))
    users = {
        "admin": administrator,
        # A name of its own, so that the audit log tells kwok's writes from ours.
        "kwok": authority.client("kwok", "system:masters"),
        "kube-scheduler": authority.client("system:kube-scheduler"),
        "kube-controller-manager": authority.client("system:kube-controller-manager"),
        "coscheduling": authority.client("coscheduling", "system:masters"),
        **{
            process: authority.client(process, "system:masters")
            for recipe in RECIPES.values()
            for process in recipe.processes
        },
    }
    for name, user in users.items():
        path = place / f"{name}.kubeconfig"
        credentials.write_kubeconfig(path, wiring.server, trusted, user)


def _link_binaries(wiring: Wiring) -> None:
    for name, path in {**build.existing(wiring.k8s), **wiring.binaries}.items():
        (wiring.directory / "bin" / name).symlink_to(path)
