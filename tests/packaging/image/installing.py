"""From `helm install` to the first bound gang: the chart's release, with the image's operator.

Helm, controllers and kube-scheduler are real. A kubelet is not there: what it would start of the
release's Deployment once a replica has a node is started here, for one of them, in the image's
root, with that container's command, variables, user and account. Separate from `trying`, which
needs no cluster.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from ...harness import rig as rigs
from ...harness.controlplane import build
from ...harness.controlplane.cluster import ControlPlane
from ...harness.judge.audit import binders, read_audit
from ...harness.operator_process import NAMESPACE, OperatorProcess, container_environment
from . import root
from .building import PROJECT
from .trying import WrongError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...harness.judge.audit import AuditEntry
    from ...harness.operator_process import Process
    from .building import Built

# As in docs/install.md.
HELM = (
    f"helm install tutti charts/tutti -n {NAMESPACE} --create-namespace"
    " --set image.repository=registry.example.com/tutti"
)
USERS = "ml"
GANG = 4
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/tutti"


class Took(NamedTuple):
    """Seconds since `helm install` was begun."""

    helm: float  # until it was done
    placed: float  # until the first replica had a node
    bound: float  # until the last member of the gang had one

    def lines(self) -> Iterator[str]:
        """What took how long, and what is not in it."""
        yield (
            f"install: helm took {self.helm:.1f} s; "
            f"kube-scheduler had a node for a replica after {self.placed:.1f} s"
        )
        yield (
            f"install: the first gang, {GANG} pods made once helm was done, was bound "
            f"{self.bound:.1f} s after `helm install` began"
        )
        yield (
            "install: not in it are pulling the image and starting its container, since no kubelet "
            f"is here; one replica ran, and shared {os.cpu_count()} cores with the control plane"
        )


def installed(image: Built) -> Iterator[str]:
    """Install the chart, and bind a gang; answers what that took.

    Raises:
        WrongError: Helm refused.
    """
    build.binaries(("helm",))  # so that it is linked beside kubectl
    components = ("kwok", "scheduler", "controller-manager")
    with (
        tempfile.TemporaryDirectory(prefix="tutti-image-") as beside,
        ControlPlane.start(components=components) as plane,
    ):
        rig = rigs.Rig(plane, Replica(plane, image, Path(beside)))
        rig.nodes(2, cpu=GANG, memory="16Gi")
        plane.create_namespace(USERS)
        began = datetime.now(UTC)
        _helm(plane)
        ended = datetime.now(UTC)
        with rig:
            rig.create(
                rigs.pod_group("first", GANG, namespace=USERS),
                *rigs.members("first", GANG, namespace=USERS, cpu=1),
            )
            rig.until(lambda: rig.bound(namespace=NAMESPACE), "a replica has a node")
            rig.operator.start()
            took = rig.until(
                lambda: measured(began, ended, read_audit(plane.audit_log)), "the gang is bound"
            )
    yield from took.lines()


def measured(began: datetime, ended: datetime, log: Sequence[AuditEntry]) -> Took | None:
    """What it took, by Helm's begin and end and the API server's log; None before all are bound."""
    at = {key: of_pod[-1].answered for key, of_pod in binders(log).items()}
    replicas = [when for key, when in at.items() if when and key.namespace == NAMESPACE]
    members = [when for key, when in at.items() if when and key.namespace == USERS]
    if not replicas or len(members) < GANG:
        return None
    return Took(*((when - began).total_seconds() for when in (ended, min(replicas), max(members))))


def _helm(plane: ControlPlane) -> None:
    done = subprocess.run(
        HELM.split(),
        cwd=PROJECT,
        env=dict(plane.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise WrongError(f"{HELM}\nended with {done.returncode}:\n{done.stderr}")


class Replica(OperatorProcess):
    """A container of the release's Deployment, started in the image's root as a kubelet would.

    Its network is this machine's, so the port of its probes is one that is free here.
    """

    def __init__(self, plane: ControlPlane, image: Built, beside: Path) -> None:
        super().__init__(plane, kubeconfig=plane.kubeconfig)  # not given to it: see `_launch`
        self._image = image
        self._beside = beside

    def _launch(self, environment: Mapping[str, str]) -> Process:
        spec = self._plane.request("GET", DEPLOYMENT)["spec"]["template"]["spec"]
        self._mount(spec["serviceAccountName"])
        host, _, port = self._plane.server.removeprefix("https://").partition(":")
        variables = {
            "PATH": root.PATH,
            "HOME": "/",
            **container_environment(spec),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            "TUTTI_PROBE_PORT": environment["TUTTI_PROBE_PORT"],
        }
        user = (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"])
        (container,) = spec["containers"]
        words = root.starting(
            self._image.root, user, self._beside, *container["command"], network=True
        )
        return self._spawn(words, variables)

    def _mount(self, account: str) -> None:
        """The account's files, where the root shows them to a pod."""
        kubeconfig = self._plane.kubeconfig_for_service_account(NAMESPACE, account)
        (entry,) = yaml.safe_load(kubeconfig.read_text())["users"]
        files = {
            "token": entry["user"]["token"],
            "ca.crt": self._plane.authority.read_text(),
            "namespace": NAMESPACE,
        }
        folder = self._beside / root.ACCOUNT
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
