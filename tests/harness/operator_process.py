"""The operator under test: its own process, with the rights of the chart and no others."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import yaml

from .controlplane import build, die_with_parent
from .controlplane.components import free_ports, is_free
from .judge.history import TUTTI_READS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .controlplane.access import Access
    from .controlplane.cluster import ControlPlane

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "charts" / "tutti" / "crds"
NAMESPACE = "tutti-system"
ACCOUNT = "tutti"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")  # kinds
READY_SECONDS = 30.0
SENT = re.compile(
    r"pod \S+ \((?P<uid>\S+)\): binding it .* seen up to version (?P<version>\d+)$", re.MULTILINE
)
_DIE_WITH_PARENT = (sys.executable, die_with_parent.__file__)


class Process(Protocol):
    """What is needed of a process; `subprocess.Popen` is one."""

    pid: int

    def poll(self) -> int | None:
        """Answer its exit code, or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; answers its exit code, or raises `subprocess.TimeoutExpired`."""

    def send_signal(self, sig: int, /) -> None:
        """Send a signal, unless it has ended."""

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""


class OperatorError(AssertionError):
    """The operator did not do what every test relies on; its log's end is in the message."""


def install(plane: ControlPlane, *values: str, crds: bool = True) -> None:
    """Install the CRDs and the chart's rights, as `helm install` would, but no Deployment.

    ``values`` are the chart's, as ``name=value``.
    """
    if crds:
        plane.install_crds(CRDS)
    plane.create_namespace(NAMESPACE)
    grant(plane, *(f"--set={value}" for value in values))


def grant(plane: ControlPlane, *options: str) -> None:
    """Grant what the chart grants with these options of Helm, and no more."""
    plane.apply(rights(*options))


def rights(*options: str) -> list[dict[str, Any]]:
    """What the chart grants with these options of Helm, and to whom."""
    helm = build.binaries(("helm",))["helm"]
    chart = str(ROOT / "charts/tutti")
    rendered = subprocess.run(
        [helm, "template", "tutti", chart, "--namespace", NAMESPACE, *options],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = [part for part in yaml.safe_load_all(rendered.stdout) if part]
    return [part for part in parts if part["kind"] in RIGHTS]


def container_environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """What variables tell the container of a pod of the chart."""
    (container,) = spec["containers"]
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


class OperatorProcess:
    """`tutti run` against a control plane; started, killed and started again at will."""

    def __init__(
        self,
        plane: Access,
        *,
        command: Sequence[str] = (sys.executable, "-m", "tutti", "run"),
        environment: Mapping[str, str] | None = None,
        kubeconfig: Path | None = None,
    ) -> None:
        """``command`` lets a test run a mutant; ``environment`` adds settings."""
        self._plane = plane
        self._command = command
        self._environment = dict(environment or {})
        self._kubeconfig = kubeconfig or plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT)
        self.log = plane.directory / "operator.log"
        self.port = free_ports("probes")["probes"]
        self.identity = "tutti-0"
        self.process: Process | None = None

    @property
    def scheduler_name(self) -> str:
        """The name that its pods have as their scheduler's."""
        return self._environment.get("TUTTI_SCHEDULER_NAME", "tutti")

    @property
    def gang_sources(self) -> Collection[str]:
        """The kinds of others whose gangs it reads."""
        names = self._environment.get("TUTTI_GANG_SOURCES")
        return TUTTI_READS if names is None else names.split(",")

    def start(self, *, ready: bool = True) -> None:
        """Start it, and wait until it knows the cluster unless told otherwise."""
        # While it was down, another program may have got its port.
        if not is_free(self.port):
            self.port = free_ports("probes")["probes"]
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "operator"),
            "TUTTI_PROBE_PORT": str(self.port),
            "TUTTI_LOG_FORMAT": "human",
            "TUTTI_IDENTITY": self.identity,
            "TUTTI_LEASE_NAMESPACE": NAMESPACE,
            **self._environment,
        }
        self.process = self._launch(environment)
        if ready:
            self.await_ready()

    def _launch(self, environment: Mapping[str, str]) -> Process:
        return self._spawn([*self._command, "--kubeconfig", str(self._kubeconfig)], environment)

    def _spawn(self, command: Sequence[str], environment: Mapping[str, str]) -> Process:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*_DIE_WITH_PARENT, str(os.getpid()), *command],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def await_ready(self) -> None:
        """Wait for /readyz."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                raise OperatorError(f"the operator ended:\n{self.tail()}")
            if self.probe("readyz") == "ok":
                return
            time.sleep(0.05)
        raise OperatorError(f"not ready after {READY_SECONDS} s:\n{self.tail()}")

    def probe(self, path: str) -> str:
        """What a probe answers; empty where nothing does."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/{path}", timeout=5
            ) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as refusal:
            return refusal.read().decode()
        except OSError:
            return ""

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait for its end; answers the exit code."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise OperatorError(f"it ignored {number.name}:\n{self.tail()}") from None

    def strike(self) -> None:
        """Send SIGKILL and wait for nothing: whatever it had sent stays under way."""
        process = self.process  # another thread may be starting it again
        if process is not None and process.poll() is None:
            process.kill()

    @property
    def is_down(self) -> bool:
        """Whether it was started and has ended."""
        return self.process is not None and self.process.poll() is not None

    def kill(self) -> None:
        """End it as a power cut would."""
        self.stop(signal.SIGKILL)

    def seen(self) -> Mapping[str, int]:
        """Up to which version it had seen bound pods when it sent the last binding of each uid.

        Empty unless it logs at debug.
        """
        sent = SENT.finditer(self.log.read_text(errors="replace"))
        return {binding["uid"]: int(binding["version"]) for binding in sent}

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
