"""`kubectl tutti status` and `top` as a new user types them, in a pipe and at a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.operator_process import ROOT
from tests.harness.rig import Rig, members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REDRAWN = 2  # times that the watch has shown it, until it is stopped


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A gang that runs, one that waits, one half made, and a pod alone that fits nowhere."""
    with Rig.start() as rig:
        rig.ends_at_rest = False
        rig.nodes(2, cpu=4, memory="16Gi", gpus=2)
        rig.create(pod_group("runs", 4), *members("runs", 4, cpu=1, gpu=1))
        rig.create(pod_group("waits", 9), *members("waits", 9, cpu=1))
        rig.create(pod_group("half", 3), *members("half", 1, cpu=1), pod("alone", cpu=64))
        rig.until_bound("runs", 4)
        rig.until_waiting("waits", "NotEnoughRoom")
        rig.until_waiting("half", "WaitingForMembers")
        rig.until(lambda: rig.pod_says("alone"), "the pod says why")
        yield rig


def environment(rig: Rig) -> Mapping[str, str]:
    """A shell where kubectl finds its plugin."""
    given = dict(rig.plane.environment)
    path = f"{Path(sys.executable).parent}:{given['PATH']}"
    return {**given, "PATH": path, "PYTHONPATH": str(ROOT / "operator"), "TERM": "xterm"}


def tutti(rig: Rig, line: str) -> str:
    """What `kubectl tutti …` prints in a pipe."""
    command = ["kubectl", "tutti", *line.split()]
    done = subprocess.run(
        command, env=dict(environment(rig)), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def at_terminal(rig: Rig, line: str, columns: int, *, stop_after: int = 0) -> str:
    """What a terminal so wide shows; a watch is stopped once it has been cleared so often."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = ["kubectl", "tutti", *line.split()]
    process = subprocess.Popen(
        command, env=dict(environment(rig)), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
            if stop_after and shown.count(b"\x1b[2J") >= stop_after:
                process.send_signal(signal.SIGINT)
                stop_after = 0
    except OSError:
        pass  # Linux says so where the other side has closed
    os.close(ours)
    process.wait(timeout=30)
    return shown.decode()


def plain(shown: str) -> list[str]:
    """Lines without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "").splitlines()


def test_it_shows_who_waits_and_why(rig: Rig) -> None:
    out = tutti(rig, "status -A")
    assert "\x1b" not in out
    lines = {line.split()[1]: line for line in out.splitlines() if line.startswith("ml ")}
    assert set(lines) == {"waits", "half", "alone"}
    sentence = rig.condition("waits", "Reserved")["message"]
    assert lines["waits"].endswith(f" {sentence}")
    assert "NotEnoughRoom" in lines["waits"]
    assert "1 of 3 members exist" in lines["half"]
    assert "Unschedulable" in lines["alone"]


def test_the_namespace_is_the_contexts_unless_another_is_named(rig: Rig) -> None:
    assert tutti(rig, "status").endswith("No gang waits in namespace default.\n")
    assert "runs" in tutti(rig, "status -n ml -o wide")


def test_data_is_what_the_operator_tells_prometheus(rig: Rig) -> None:
    told = json.loads(tutti(rig, "status -A -o json"))
    text = rig.operator.probe("metrics")
    for state, n in told["states"].items():
        assert f'tutti_gangs{{state="{state}"}} {n}.0' in text
    free = told["resources"]["nvidia.com/gpu"]["free"]
    assert f'tutti_resource_free{{resource="nvidia.com/gpu",unit="integer"}} {free}.0' in text


def test_top_shows_what_gangs_hold(rig: Rig) -> None:
    header, runs = (line.split() for line in tutti(rig, "top -n ml").splitlines())
    assert dict(zip(header, runs, strict=True)) == {
        "NAME": "runs",
        "STATE": "started",
        "HELD": "4/4",
        "NODES": "2",
        "CPU": "4",
        "MEMORY": "0",
        "NVIDIA.COM/GPU": "4",
    }


@pytest.mark.parametrize("columns", [80, 200])
def test_at_a_terminal_no_line_is_longer_and_no_word_is_lost(rig: Rig, columns: int) -> None:
    shown = at_terminal(rig, "status -A", columns)
    assert "\x1b[33m" in shown, "yellow, for those that wait"
    lines = plain(shown)
    assert max(len(line.rstrip()) for line in lines) <= columns
    words = " ".join(lines).split()
    for word in rig.condition("waits", "Reserved")["message"].split():
        assert word in words


def test_a_watch_shows_it_again_until_it_is_stopped(rig: Rig) -> None:
    lines = plain(at_terminal(rig, "status -A -w", 100, stop_after=REDRAWN))
    assert sum("NAMESPACE" in line for line in lines) >= REDRAWN
    assert not any("Traceback" in line or "Aborted" in line for line in lines)


def test_kubectl_completes_what_is_typed(rig: Rig) -> None:
    """By the program beside the plugin; the last line is a directive to the shell."""
    command = ["kubectl", "__complete", "tutti", "status", "--output", "w"]
    done = subprocess.run(
        command, env=dict(environment(rig)), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["wide", ":4"]


def test_without_rights_one_line_says_what_to_do(rig: Rig) -> None:
    plane = rig.plane
    plane.kubectl("create", "serviceaccount", "nobody", "-n", "ml")
    config = plane.kubeconfig_for_service_account("ml", "nobody")
    command = ["kubectl", "tutti", "status", "--kubeconfig", str(config)]
    done = subprocess.run(
        command, env=dict(environment(rig)), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "forbidden" in done.stderr
    assert "ask for this right" in done.stderr
