"""Kueue itself on the same load: its own benchmark, built from source and run here.

It starts an API server with etcd, a Kueue without webhooks and job controllers, and a generator
that takes our numbers. What it counts is printed as it counts it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

from ...harness.controlplane import build
from ...harness.controlplane.controllers.manifests import module_directory
from ...harness.controlplane.pins import KUEUE_PERFORMANCE
from .trials import Figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .kueue_load import Load

# As Kueue's own Makefile runs it; the time is that of its large-scale run.
_RUN = ("--qps=1000", "--burst=2000", "--timeout=30m")
_CRDS = Path("config") / "components" / "crd" / "bases"
_TAIL = 300  # characters
# SIGTERM when this process ends, upon which it ends what it has started.
_GUARD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])
"""


def generator(load: Load) -> Mapping[str, Any]:
    """The load as Kueue's generator reads it."""
    workloads = [
        {
            "count": cls.count,
            "creationIntervalMs": round(1_000 * cls.every),
            "workloads": [
                {
                    "className": cls.name,
                    "runtimeMs": round(1_000 * cls.runtime),
                    "priority": cls.priority,
                    "request": str(cls.cores),
                }
            ],
        }
        for cls in load.classes
    ]
    queues = {
        "className": "cq",
        "count": load.queues,
        "nominalQuota": str(load.nominal),
        "borrowingLimit": str(load.borrowing),
        "reclaimWithinCohort": "Any",
        "withinClusterQueue": "LowerPriority",
        "workloadsSets": workloads,
    }
    cohorts = {"className": "cohort", "count": load.cohorts, "queuesSets": [queues]}
    return {"cohorts": [cohorts]}


def figures(summary: Mapping[str, Any], command: Mapping[str, Any]) -> Figures:
    """What Kueue's benchmark has written down of a run."""
    (usage,) = summary["clusterQueueClasses"].values()
    classes = summary["workloadClasses"]
    workloads = sum(own["count"] for own in classes.values())
    seconds = command["wallMs"] / 1_000
    return Figures(
        seconds=seconds,
        gangs=workloads,
        load={
            "started per second": workloads / seconds,
            "quota in use": usage["cpuAverageUsage"] / usage["nominalQuota"],
            "end": seconds,
            "evicted": sum(own["totalEvictions"] for own in classes.values()),
            **{
                f"until {name}": own["averageTimeToAdmissionMs"] / 1_000
                for name, own in classes.items()
            },
        },
    )


def measured(load: Load) -> Figures:
    """The figures of a run here."""
    servers = build.binaries(("kube-apiserver", "etcd", "kubectl"))
    programs = build.binaries_of((KUEUE_PERFORMANCE,))
    module = module_directory(KUEUE_PERFORMANCE)
    with TemporaryDirectory(prefix="tutti-kueue-") as name:
        folder = Path(name)
        for binary, path in servers.items():
            (folder / binary).symlink_to(path)
        (folder / "generator.yaml").write_text(yaml.safe_dump(generator(load)))
        command = [
            *(str(programs["kueue-runner"]), *_RUN),
            *("--o", name, "--crds", str(module / _CRDS)),
            *("--generatorConfig", str(folder / "generator.yaml")),
            *("--minimalKueue", str(programs["minimalkueue"])),
        ]
        done = subprocess.run(
            [sys.executable, "-c", _GUARD, *command],
            # It asks for the folder of a Makefile, and needs none.
            env=os.environ | {"KUBEBUILDER_ASSETS": name, "PROJECT_DIR": f"{module}/bin"},
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
        summary = folder / "summary.yaml"
        if done.returncode != 0 or not summary.exists():
            return Figures(unfinished=f"failed: {done.stderr.strip()[-_TAIL:]}")
        own = folder / "minimalkueue.stats.yaml"
        return figures(yaml.safe_load(summary.read_text()), yaml.safe_load(own.read_text()))
