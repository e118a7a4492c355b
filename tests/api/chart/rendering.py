"""What Helm renders, and the snapshots of what is off by default.

`python -m tests.api.chart.rendering` writes these files again; look at the difference.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ...harness.controlplane import build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "tutti"
RENDERED = Path(__file__).parent / "rendered"
POLICIES = "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

# What is off by default: the file with what it adds to the release, and how it is turned on.
OPTIONS: Mapping[str, Sequence[str]] = {
    "network-policy": ["--set=networkPolicy.enabled=true"],
    "network-policy-addresses": [
        "--set=networkPolicy.enabled=true",
        "--set=networkPolicy.apiServerPorts={6443}",
        "--set=networkPolicy.apiServerCidrs={10.0.0.1/32,10.0.0.2/32}",
    ],
    "pod-monitor": ["--set=metrics.podMonitor.enabled=true,metrics.podMonitor.labels.release=mine"],
    "rules": ["--set=metrics.rules.enabled=true"],
    "dashboard": ["--set=metrics.dashboard.enabled=true"],
    "namespaces": ["--set=settings.namespaces={ml,etl}"],
    "hand-over": ["--set=settings.handOver=true"],
    "admission": ["--set=admission.enabled=true", POLICIES],
}


class HelmError(AssertionError):
    """Helm refused; what it said."""


def helm(*arguments: str) -> str:
    """What Helm prints, without a cluster."""
    program = build.binaries(("helm",))["helm"]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HelmError(done.stderr)
    return done.stdout


def render(*arguments: str) -> list[dict[str, Any]]:
    """The objects of a release named tutti in namespace tutti-system."""
    text = helm("template", "tutti", str(CHART), "--namespace=tutti-system", *arguments)
    return [part for part in yaml.safe_load_all(text) if part]


def added(option: str) -> str:
    """What an option adds to the objects of a release, as text."""
    usual = render()
    more = [part for part in render(*OPTIONS[option]) if part not in usual]
    return yaml.safe_dump_all(more, sort_keys=False)


if __name__ == "__main__":
    for option in OPTIONS:
        (RENDERED / f"{option}.yaml").write_text(added(option))
