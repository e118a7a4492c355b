"""The demo does what it promises, ends well, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from ..harness.controlplane import ControlPlane
from ..harness.controlplane.nodes import node_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[2]
INTERRUPTED = 130
PATIENCE = 90.0
SETTLED_LOOKS = 30  # so many times nothing has changed
NODES = "/api/v1/nodes"
DEAD = "http://127.0.0.1:9"  # the discard port, where nobody listens
DEAD_KUBECONFIG = f"""
apiVersion: v1
kind: Config
clusters: [{{name: dead, cluster: {{server: {DEAD}}}}}]
users: [{{name: dead, user: {{}}}}]
contexts: [{{name: dead, context: {{cluster: dead, user: dead}}}}]
current-context: dead
"""


class Demo:
    """`python -m demo` as a user starts it, its temporary files in a folder of the test."""

    def __init__(self, place: Path, *arguments: str, **environment: str) -> None:
        self.place = place
        self.output = place / "output"
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        with self.output.open("wb") as output:
            self.process = psutil.Popen(
                [sys.executable, "-m", "demo", *arguments],
                cwd=ROOT,
                env={
                    **os.environ,
                    "TMPDIR": str(self.temporary),
                    "PYTHONUNBUFFERED": "1",
                    **environment,
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        """What it has printed so far."""
        return self.output.read_text()

    def until(self, look: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not look():
            assert self.process.poll() is None, f"it ended before {what}:\n{self.said()}"
            assert time.monotonic() < deadline, f"not in time: {what}\n{self.said()}"
            time.sleep(0.05)

    def until_said(self, text: str) -> None:
        """Wait until it has printed this."""
        self.until(lambda: text in self.said(), f"it said {text!r}")

    def hears(self) -> bool:
        """Whether signals reach its own code: until it asks for SIGHUP, the interpreter starts."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", status)
        return caught is not None and bool(int(caught[1], 16) >> (signal.SIGHUP - 1) & 1)

    def interrupt(self) -> int:
        """Press Ctrl-C; answers the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.end()

    def end(self) -> int:
        """Wait for its end; answers the exit code."""
        return int(self.process.wait())

    def children(self) -> list[psutil.Process]:
        """The processes that it has started."""
        return list(self.process.children(recursive=True))

    def leftovers(self) -> list[str]:
        """Processes that were started for it, and files in its temporary folder."""
        running = []
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
            except psutil.Error:
                continue
            if any(str(self.temporary) in word for word in command):
                running.append(" ".join(command))
        return running + [str(path) for path in self.temporary.rglob("*")]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Start the demo; it is killed if the test fails while it runs."""
    started: list[Demo] = []

    def start(*arguments: str, **environment: str) -> Demo:
        started.append(Demo(tmp_path, *arguments, **environment))
        return started[-1]

    yield start
    for each in started:
        family = [*each.children(), each.process] if each.process.is_running() else []
        for process in family:
            process.kill()
        each.process.wait()


def test_the_story_is_told_whole_and_a_dead_kubeconfig_of_the_shell_is_ignored(
    demo: Callable[..., Demo], tmp_path: Path
) -> None:
    """Without a terminal it comes line by line; the exit code says that all was seen."""
    dead = tmp_path / "kubeconfig"
    dead.write_text(DEAD_KUBECONFIG)
    run = demo("--run-seconds", "3", KUBECONFIG=str(dead), HTTPS_PROXY=DEAD, NO_PROXY="")
    assert run.end() == 0, run.said()
    said = run.said()
    assert "\x1b" not in said
    _in_order(
        said,
        r"training +reserved +room for all 16 members",
        r"training +bound +all 16 members on 8 nodes",
        r"next +NotEnoughRoom +6 members",
        r"cluster-1\.png",
        r"next +reserved +room for all 6 members",
        r"next +bound",
        r"cluster-2\.png",
        r"borrower +running",
        r"borrower +ended +4 pods evicted, so that gang demo/claimant of queue vision starts",
        r"claimant +bound +all 4 members",
        r"What borrower is told, as an Event: 4 pods to evict",
        r"a\s+guarantee\s+covers\s+it",
        r"proved\s+least",
        r"cluster-3\.png",
        r"What to try next",
    )
    assert re.search(r"roles +bound +all 9 members", said)
    assert not re.search(r"covered +ended", said)
    assert re.search(r"too-large +NoNodeFits +.*16 nvidia\.com/gpu", said)
    for picture in re.findall(r"The same as a picture: (.*\.png)", said):
        assert Path(picture).read_bytes().startswith(b"\x89PNG")
    assert run.leftovers() == []


def _in_order(text: str, *patterns: str) -> None:
    at = 0
    for pattern in patterns:
        found = re.compile(pattern).search(text, at)
        assert found, f"{pattern!r} is not said, or too early:\n{text}"
        at = found.end()


@pytest.mark.parametrize("moment", ["at once", "while etcd starts", "while gangs are shown"])
def test_ctrl_c_leaves_no_process_and_no_file(demo: Callable[..., Demo], moment: str) -> None:
    """At the beginning, in the middle of the start, and with everything running."""
    run = demo()
    if moment == "at once":
        run.until(run.hears, "it hears signals")
    elif moment == "while etcd starts":
        run.until(run.children, "it has started a process")
    else:
        run.until_said("all or none")
    children = run.children()
    assert run.interrupt() == INTERRUPTED, run.said()
    assert [child for child in children if child.is_running()] == []
    assert run.leftovers() == []
    assert "Traceback" not in run.said()


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """What stands for the user's own cluster: three nodes without GPUs, and somebody's pod."""
    with ControlPlane.start(components=("kwok", "controller-manager")) as plane:
        labels = {"node.kubernetes.io/instance-type": "small"}
        plane.create(
            node_manifest(f"own-{i}", cpu=8, memory="16Gi", labels=labels) for i in range(3)
        )
        plane.create_namespace("default")
        resources = {"requests": {"cpu": "1"}}
        container = {"name": "main", "image": "pause", "resources": resources}
        plane.create(
            [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "somebody", "namespace": "default"},
                    "spec": {"nodeName": "own-0", "containers": [container]},
                }
            ]
        )
        plane.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        plane.kubectl("wait", "--for=condition=Ready", "pod/somebody", "--timeout=60s")
        _settle(plane)
        yield plane


def _settle(plane: ControlPlane) -> None:
    """Wait until the control plane has stopped writing to its new nodes."""
    seen, equal = "", 0
    while equal < SETTLED_LOOKS:
        version = "resourceVersion"
        now = str([n["metadata"][version] for n in plane.request("GET", NODES)["items"]])
        seen, equal = now, equal + 1 if now == seen else 0
        time.sleep(0.1)


def _everything(plane: ControlPlane) -> Mapping[str, Any]:
    """Nodes to the last field, and the names of all that the demo might create."""
    nodes = plane.request("GET", NODES)["items"]
    rights = "/apis/rbac.authorization.k8s.io/v1"
    kinds = (
        "/api/v1/namespaces",
        "/api/v1/pods",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        f"{rights}/clusterroles",
        f"{rights}/clusterrolebindings",
    )
    names = {
        kind: sorted(item["metadata"]["name"] for item in plane.request("GET", kind)["items"])
        for kind in kinds
    }
    return {"nodes": nodes, **names}


def test_on_the_users_own_cluster_all_that_was_created_is_removed(
    demo: Callable[..., Demo], cluster: ControlPlane
) -> None:
    """It says what and where first; nodes are as they were, to the resourceVersion."""
    before = _everything(cluster)
    arguments = ("--cluster", "current", "--yes", "--run-seconds", "20")
    run = demo(*arguments, KUBECONFIG=str(cluster.kubeconfig))
    assert run.end() == 0, run.said()
    said = run.said()
    for fact in (cluster.server, "Namespace tutti-demo", "ClusterRole tutti-demo", "No node"):
        assert fact in said
    _in_order(said, r"training +bound", r"next +NotEnoughRoom", r"next +bound")
    assert "claimant" not in said
    assert _everything(cluster) == before
    assert run.leftovers() == []


def test_ctrl_c_on_the_users_own_cluster_removes_all_of_it(
    demo: Callable[..., Demo], cluster: ControlPlane
) -> None:
    """With gangs running."""
    before = _everything(cluster)
    run = demo("--cluster", "current", "--yes", KUBECONFIG=str(cluster.kubeconfig))
    run.until_said("all or none")
    assert run.interrupt() == INTERRUPTED, run.said()
    assert _everything(cluster) == before
    assert run.leftovers() == []


def test_without_consent_nothing_is_created(
    demo: Callable[..., Demo], cluster: ControlPlane
) -> None:
    """Nobody is there to answer, and --yes was not given."""
    before = _everything(cluster)
    run = demo("--cluster", "current", KUBECONFIG=str(cluster.kubeconfig))
    assert run.end() == 2, run.said()
    assert "Nothing was created" in run.said()
    assert _everything(cluster) == before
