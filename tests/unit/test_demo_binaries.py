"""The demo builds only what it starts: no Helm, and no kubectl if PATH has one that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from demo import kubectl, own

if TYPE_CHECKING:
    from pathlib import Path

STARTED = {"etcd", "kube-apiserver", "kube-controller-manager", "kwok"}


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script that PATH has as its only kubectl; the test writes it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    return tmp_path / "kubectl"


def _write(script: Path, version: str) -> None:
    script.write_text(f"#!/bin/sh\necho 'Client Version: {version}'\n")
    script.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "is_near"),
    [
        ("v1.36.9", True),
        ("v1.37.0", True),
        ("v1.38.0-rc.1+k3s1", True),
        ("v1.35.2", False),
        ("v1.39.0", False),
        ("v2.37.0", False),
        ("of an unknown build", False),
    ],
)
def test_kubectl_may_differ_by_one_minor(answers: Path, version: str, *, is_near: bool) -> None:
    _write(answers, version)
    assert kubectl.recent_version("1.37") == (version if is_near else "")
    missing = set() if is_near else {"kubectl"}
    assert own.wanted_binaries("1.37", stay=True) == STARTED | missing


def test_a_demo_that_ends_by_itself_needs_no_kubectl(answers: Path) -> None:
    _write(answers, "v1.20.0")
    assert own.wanted_binaries("1.37", stay=False) == STARTED


def test_a_kubectl_that_cannot_run_does_not_count(answers: Path) -> None:
    answers.write_text("")
    answers.chmod(0o755)
    assert kubectl.recent_version("1.37") == ""
