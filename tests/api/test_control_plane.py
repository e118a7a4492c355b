"""The control plane itself: it is what it says, does what a cluster does, and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..harness.controlplane import (
    RUN_SECONDS,
    STOP_SECONDS,
    ControlPlane,
    ControlPlaneError,
    build,
    node_manifest,
)
from ..harness.controlplane.errors import KubectlError, RequestError
from ..harness.controlplane.pins import chosen_k8s, pins_for
from ..harness.controlplane.processes import spawn, stop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

CHECKOUT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 60


def until(fact: Callable[[], object], what: str) -> None:
    """Return when the fact holds; fail with what it was otherwise."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not fact():
        assert time.monotonic() < deadline, f"still not so after {DEADLINE_SECONDS} s: {what}"
        time.sleep(0.05)


def pod(name: str, namespace: str, **annotations: str) -> dict[str, Any]:
    """A pod bound to the node of these tests."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {
            "nodeName": "worker",
            "containers": [{"name": "main", "image": "none", "resources": {}}],
        },
    }


def phase(plane: ControlPlane, namespace: str, name: str) -> str:
    """The pod's phase, or Gone."""
    try:
        read = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
    except RequestError as error:
        if error.status != 404:
            raise
        return "Gone"
    return str(read["status"]["phase"])


def is_running(pid: int) -> bool:
    """Whether a process of this pid exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@pytest.fixture(scope="module")
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace with a node for its pods."""
    name = "control-plane-tests"
    control_plane.create_namespace(name)
    control_plane.create_nodes([node_manifest("worker", cpu=8, memory="32Gi", gpus=4)])
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}/pods")
    control_plane.request("DELETE", "/api/v1/nodes/worker")


def is_ready(node: Mapping[str, Any]) -> bool:
    """Whether the node is ready and nothing keeps pods off it."""
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


@pytest.mark.skipif("KUBEBUILDER_ASSETS" in os.environ, reason="binaries are not the pinned ones")
def test_the_api_server_is_of_the_pinned_version(control_plane: ControlPlane) -> None:
    kubernetes = pins_for(control_plane.k8s)[0]
    version = control_plane.request("GET", "/version")
    assert version["gitVersion"] == kubernetes.version
    assert f"{version['major']}.{version['minor']}" == control_plane.k8s


def test_a_start_is_timed_for_people_and_a_stop_leaves_nothing() -> None:
    began = time.monotonic()
    with ControlPlane.start() as plane:
        print(f"\ncontrol plane with kwok ready after {time.monotonic() - began:.1f} s (aim: 10)")
        processes = list(plane.processes)
        assert [process.name for process in processes] == ["etcd", "kube-apiserver", "kwok"]
        assert plane.is_alive
    assert not any(is_running(process.pid) for process in processes)
    assert not plane.directory.exists()


def test_the_processes_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib\n"
        "from tests.harness.controlplane import ControlPlane\n"
        "plane = ControlPlane.start(pathlib.Path(sys.argv[1]), components=())\n"
        "print(*[process.pid for process in plane.processes], flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    until(lambda: not any(is_running(pid) for pid in pids), "both processes are gone")


def test_a_process_that_dies_at_its_start_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "audit.log").mkdir()
    with pytest.raises(ControlPlaneError, match=r"(?s)kube-apiserver ended at its start.*audit"):
        ControlPlane.start(tmp_path, components=())


def test_an_unknown_component_and_an_unknown_minor_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no such component: schedular; there are kwok"):
        ControlPlane.start(components=("schedular",))
    with pytest.raises(ValueError, match=r"Kubernetes 1\.12 is not pinned here; pinned are 1\.37"):
        ControlPlane.start(k8s="1.12")


def test_up_and_down_ignore_the_kubeconfig_of_the_shell_and_leave_nothing(tmp_path: Path) -> None:
    dead = tmp_path / "dead.kubeconfig"
    dead.write_text(
        '{"apiVersion": "v1", "kind": "Config", "current-context": "dead", '
        '"clusters": [{"name": "dead", "cluster": {"server": "https://127.0.0.1:1"}}], '
        '"contexts": [{"name": "dead", "context": {"cluster": "dead", "user": ""}}]}'
    )
    # The binaries stay where they are; what runs is recorded by the copy of this checkout's path.
    environment = os.environ | {"KUBECONFIG": str(dead), "TMPDIR": str(tmp_path)}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "tests.harness.controlplane", *arguments]
        done = subprocess.run(
            command, cwd=other, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    # A checkout of its own, so that a person's own `make up` is left alone.
    other = tmp_path / "checkout"
    harness = other / "tests" / "harness"
    harness.mkdir(parents=True)
    for package in (harness.parent, harness):
        (package / "__init__.py").touch()
    copied = CHECKOUT / "tests" / "harness" / "controlplane"
    subprocess.run(["cp", "-r", str(copied), str(harness)], check=True)

    exports = run("up")
    try:
        assert [line.partition("=")[0] for line in exports.splitlines()] == [
            "export KUBECONFIG",
            "export PATH",
        ]
        assert run("up") == exports
        (directory,) = tmp_path.glob("tutti-control-plane-*")
        plane = ControlPlane.attach(directory)
        assert plane.is_alive
        shell = f"{exports}\nkubectl get --raw /readyz"
        answer = subprocess.run(
            ["/bin/sh", "-c", shell], env=environment, capture_output=True, text=True, check=True
        )
        assert answer.stdout == "ok"
        assert "Server Version" in plane.kubectl("version")
    finally:
        run("down")
    assert not any(is_running(process.pid) for process in plane.processes)
    assert not directory.exists()
    assert run("down") == ""


def test_a_process_is_alive_until_its_last_thread_has_ended(tmp_path: Path) -> None:
    """A killed server whose first thread ends first still holds its port for a moment."""
    program = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=[600]).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    command = [sys.executable, "-c", program]
    process = spawn("two", command, tmp_path / "log", environment=dict(os.environ), detached=False)
    state = Path(f"/proc/{process.pid}/stat")
    until(lambda: state.read_text().rpartition(")")[2].split()[0] == "Z", "the first has ended")
    assert process.is_alive
    stop(process, seconds=10)
    assert not process.is_alive


def test_down_spares_a_process_that_took_over_a_recorded_pid(control_plane: ControlPlane) -> None:
    with subprocess.Popen(["/bin/sleep", "600"]) as stranger:
        recorded = control_plane.process("etcd")
        impostor = type(recorded)("etcd", stranger.pid, recorded.started, recorded.log)
        impostor.send(signal.SIGKILL)
        assert stranger.poll() is None
        stranger.kill()


def test_pods_can_be_created_at_once_in_a_new_namespace(control_plane: ControlPlane) -> None:
    control_plane.create_namespace("fresh")
    control_plane.create_namespace("fresh")
    control_plane.create([pod("first", "fresh")])
    assert phase(control_plane, "fresh", "first") in {"Pending", "Running"}


def test_a_node_keeps_its_resources_and_loses_its_first_taint(
    control_plane: ControlPlane, namespace: str
) -> None:
    assert namespace
    node = control_plane.request("GET", "/api/v1/nodes/worker")
    assert node["status"]["allocatable"] == {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
        "nvidia.com/gpu": "4",
    }
    assert is_ready(node)


def test_nodes_become_ready_without_kube_controller_manager_too() -> None:
    taint = {"key": "kept", "value": "yes", "effect": "NoSchedule"}
    with ControlPlane.start() as plane:
        plane.apply([node_manifest("alone", cpu=1, memory="1Gi", taints=[taint])])

        def taints() -> list[str]:
            node = plane.request("GET", "/api/v1/nodes/alone")
            return [taint["key"] for taint in node["spec"].get("taints", [])]

        until(lambda: taints() == ["kept"], "the taint of admission is gone, ours is not")


def test_a_pod_runs_until_it_is_deleted(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create([pod("lasting", namespace)])
    until(lambda: phase(control_plane, namespace, "lasting") == "Running", "lasting runs")
    time.sleep(2)
    assert phase(control_plane, namespace, "lasting") == "Running"
    control_plane.kubectl("delete", "pod", "lasting", "-n", namespace)
    assert phase(control_plane, namespace, "lasting") == "Gone"


def test_a_pod_succeeds_after_the_seconds_it_was_given(
    control_plane: ControlPlane, namespace: str
) -> None:
    began = time.monotonic()
    control_plane.create([pod("short", namespace, **{RUN_SECONDS: "3"})])
    until(lambda: phase(control_plane, namespace, "short") == "Succeeded", "short succeeded")
    assert time.monotonic() - began > 2


def test_a_running_pod_can_be_told_to_end(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.create([pod("told", namespace)])
    until(lambda: phase(control_plane, namespace, "told") == "Running", "told runs")
    told = (f"{RUN_SECONDS}=0", "pod", "told", "-n", namespace)
    control_plane.kubectl("annotate", *told[1:], told[0])
    until(lambda: phase(control_plane, namespace, "told") == "Succeeded", "told succeeded")


def test_a_deleted_pod_stays_for_the_seconds_it_was_given(
    control_plane: ControlPlane, namespace: str
) -> None:
    for name, seconds in (("late", "600"), ("soon", "1")):
        control_plane.create([pod(name, namespace, **{STOP_SECONDS: seconds})])
    phases = partial(map, partial(phase, control_plane, namespace), ("late", "soon"))
    until(lambda: [*phases()] == ["Running", "Running"], "both run")
    for name in ("late", "soon"):
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
    until(lambda: phase(control_plane, namespace, "soon") == "Gone", "soon is gone")
    assert phase(control_plane, namespace, "late") == "Running"


def test_a_service_account_has_its_own_rights_and_its_reads_are_audited(
    control_plane: ControlPlane, namespace: str
) -> None:
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "default")
    own = ("--kubeconfig", str(kubeconfig))
    user = f"system:serviceaccount:{namespace}:default"
    assert user in control_plane.kubectl(*own, "auth", "whoami")
    with pytest.raises(KubectlError, match="cannot list resource"):
        control_plane.kubectl(*own, "get", "pods", "-n", namespace)
    read = [
        event
        for event in control_plane.audited()
        if event["user"]["username"] == user and event["verb"] == "list"
    ]
    assert {event["objectRef"]["resource"] for event in read} == {"pods"}
    assert {event["responseStatus"]["code"] for event in read} == {403}


def test_a_binding_is_audited_with_its_content(control_plane: ControlPlane, namespace: str) -> None:
    waiting = pod("bound", namespace)
    del waiting["spec"]["nodeName"]
    control_plane.create([waiting])
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "bound"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "worker"},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/bound/binding"
    control_plane.request("POST", path, binding)
    (written,) = (
        event
        for event in control_plane.audited()
        if event.get("objectRef", {}).get("subresource") == "binding"
        and event["objectRef"]["name"] == "bound"
    )
    assert written["requestObject"]["target"]["name"] == "worker"
    assert written["user"]["username"] == "admin"
    # Reads of people are not in the log at all.
    reads = [event for event in control_plane.audited() if event["verb"] in {"get", "list"}]
    assert not [event for event in reads if event["user"]["username"] == "admin"]


def test_kubebuilder_assets_win_over_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "etcd"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    found = build.existing(chosen_k8s())
    assert found["etcd"] == own
    assert found["kube-apiserver"].parent != tmp_path
