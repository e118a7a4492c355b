"""The static pod of docs/install.md: sound, and as locked down as the chart's pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tutti.operator.settings import Settings

from .places import ROOT
from .rendering import render

if TYPE_CHECKING:
    from .places import Place


@pytest.fixture(scope="module")
def written() -> str:
    """The manifest as it is in the docs."""
    (manifest,) = re.findall(
        r"(?ms)^```yaml\n(.*?)^```", (ROOT / "docs" / "install.md").read_text()
    )
    return str(manifest)


def test_the_api_server_takes_the_static_pod(shell: Place, written: str) -> None:
    """Strictly: no field is misspelt; admitted with its priority class."""
    shell.plane.create_namespace("kube-system")
    said = shell.plane.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "--output=yaml", "-f", "-", input=written
    )
    assert yaml.safe_load(said)["spec"]["priority"] == 2_000_001_000


def test_the_static_pod_is_like_the_charts(written: str) -> None:
    """The same image's version, command, probes, limits and locks."""
    (deployment,) = (part for part in render() if part["kind"] == "Deployment")
    chart = deployment["spec"]["template"]["spec"]
    pod: dict[str, Any] = yaml.safe_load(written)["spec"]
    (theirs,), (ours,) = chart["containers"], pod["containers"]
    assert pod["securityContext"].items() <= chart["securityContext"].items()
    for key in ("securityContext", "resources"):
        assert ours[key] == theirs[key]
    assert ours["image"].rpartition(":")[2] == theirs["image"].rpartition(":")[2]
    assert ours["command"][: len(theirs["command"])] == theirs["command"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert ours[probe]["httpGet"]["path"] == theirs[probe]["httpGet"]["path"]


def test_the_static_pods_settings_are_settings(written: str) -> None:
    """And its probes ask where it answers."""
    (container,) = yaml.safe_load(written)["spec"]["containers"]
    settings = Settings.from_environment({each["name"]: each["value"] for each in container["env"]})
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == settings.probe_port
    assert settings.lease_namespace == "kube-system"
