"""The commands of the docs that need a cluster, page by page, as a reader types them.

Which these are says `tests/docs/commands.py`. The reader's checkout is a folder of links, so that
files which commands write are not in the real one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.docs import commands
from tests.docs.commands import Kind
from tests.harness.operator_process import OperatorProcess, container_environment

from .places import NAMESPACE, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tests.docs.commands import Command

    from .places import Place

LIVE = sorted({one.page for one in commands.every() if Kind.LIVE in one.kinds})
CRDS = "tutti crds | kubectl apply -f -"
RELEASE = f"helm install tutti charts/tutti -n {NAMESPACE} --create-namespace"
# Where the Prometheus operator would be: its kinds, and no more.
MONITORING = "kubectl apply -f tests/api/chart/monitoring.yaml"
ITS_OWN = ("TUTTI_PROBE_PORT", "TUTTI_LOG_FORMAT")  # of the pods, not of the process in their place
PATIENCE = 60.0  # seconds until a cluster is as a page shows it
# What a page takes to be there.
BEFORE: Mapping[str, tuple[str, ...]] = {
    "README.md": (CRDS, "kubectl create -f tests/api/chart/tour.yaml"),
    "docs/install.md": ("kubectl create namespace ml", "kubectl create namespace etl"),
    "docs/operations.md": (RELEASE, MONITORING),
    "docs/plugin.md": (CRDS,),
    "docs/spark.md": (RELEASE,),
    "docs/troubleshooting.md": (CRDS,),
    "docs/what-if.md": (CRDS,),
}
AFTER = (
    f"helm ls -n {NAMESPACE} -q | xargs -r -n1 helm uninstall --wait -n {NAMESPACE}",
    "kubectl delete namespace ml etl --ignore-not-found",
    "kubectl delete nodes -l tutti.dev/test=tour",
    "kubectl delete crd -l tutti.dev/test=monitoring",
    "kubectl delete jobs,pods --all --wait=false",
    "kubectl get crd podgroups.tutti.dev -o name && kubectl delete ptg --all || true",
)


class Reader:
    """Somebody who types what a page says, with Tutti where the release's pods would run it."""

    def __init__(self, shell: Place, checkout: Path) -> None:
        self._shell = shell
        self._checkout = checkout
        self._operator: OperatorProcess | None = None
        self._left_running: list[subprocess.Popen[bytes]] = []
        for path in ROOT.iterdir():
            (checkout / path.name).symlink_to(path)
        programs = checkout / "programs"
        programs.mkdir()
        for name in ("tutti", "kubectl-tutti", "kubectl_complete-tutti"):
            (programs / name).symlink_to(Path(sys.executable).parent / name)
        given = dict(shell.plane.environment)
        self._environment = {
            **given,
            "PATH": f"{programs}:{given['PATH']}",
            "PYTHONPATH": str(ROOT / "operator"),
            "TUTTI_PROBE_PORT": "0",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        for process in self._left_running:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=30)
        for line in AFTER:
            self.run(line)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Type a line and wait until it has ended."""
        return subprocess.run(
            ["bash", "-uo", "pipefail", "-c", line],
            cwd=self._checkout,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def type(self, command: Command) -> None:
        """Type a command of a page; it does what the page says, or the test fails."""
        line = command.line
        if line.endswith("&"):
            self._leave_running(line.removesuffix("&"))
            return
        if re.match(r"helm (install|upgrade|rollback|uninstall) ", line):
            line += " --wait --timeout=60s"
        if line.startswith("helm uninstall "):
            self._stop()
        if line.startswith(RELEASE):  # another way to install it, on the same page
            self._stop()
            self.run(f"helm uninstall tutti -n {NAMESPACE} --ignore-not-found --wait")
        done = self.run(line)
        if command.printed.startswith("Error: "):
            assert done.returncode != 0, line
            assert command.printed.split() == done.stderr.split(), line
            return
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        if command.printed.strip():
            self._compare(command, done.stdout)
        if line.startswith(RELEASE):
            self.serve()

    def _compare(self, command: Command, printed: str) -> None:
        """It prints what the page shows, ages aside; what only looks may be typed until it does."""
        want, deadline = _words(command.printed), time.monotonic() + PATIENCE
        while _words(printed) != want and time.monotonic() < deadline:
            if not command.line.startswith("kubectl get "):
                break
            time.sleep(0.5)
            printed = self.run(command.line).stdout
        assert _words(printed) == want, f"{command.page}: {command.line}\n{printed}"

    def serve(self) -> None:
        """Run what the pods of the release would run, with their settings and rights."""
        plane = self._shell.plane
        account = plane.kubeconfig_for_service_account(NAMESPACE, "tutti")
        deadline = time.monotonic() + PATIENCE
        while not (pods := self._shell.pods()):  # kube-controller-manager creates them
            assert time.monotonic() < deadline, "the release has no pods"
            time.sleep(0.1)
        variables = container_environment(pods[0]["spec"]).items()
        settings = {name: value for name, value in variables if value and name not in ITS_OWN}
        self._operator = OperatorProcess(plane, environment=settings, kubeconfig=account)
        self._operator.start()

    def _stop(self) -> None:
        if self._operator is not None:
            self._operator.stop()
            self._operator = None

    def _leave_running(self, line: str) -> None:
        self._left_running.append(
            subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self._checkout,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )


def _words(printed: str) -> list[list[str]]:
    """Line by line; of a table without its last column, if that is AGE."""
    lines = [line.split() for line in printed.strip().splitlines()]
    has_ages = bool(lines) and lines[0][-1] == "AGE"
    return [line[:-1] for line in lines] if has_ages else lines


@pytest.mark.parametrize("page", LIVE)
def test_what_a_page_says_can_be_typed(shell: Place, page: str, tmp_path: Path) -> None:
    """In its order, with nothing between the lines but what the page takes to be there."""
    with Reader(shell, tmp_path) as reader:
        for line in BEFORE.get(page, ()):
            done = reader.run(line)
            assert done.returncode == 0, f"{line}\n{done.stderr}"
        if RELEASE in BEFORE.get(page, ()):
            reader.serve()
        for command in commands.of(page):
            if Kind.LIVE in command.kinds:
                reader.type(command)
