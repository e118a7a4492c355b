"""A kube-scheduler under a name and a user of its own, so that logs tell it from another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...harness.controlplane import build
from ...harness.controlplane.components import free_ports
from ...harness.controlplane.wiring import LOOPBACK, Component

if TYPE_CHECKING:
    from ...harness.controlplane.cluster import ControlPlane

HOME = "kube-system"


def user_of(name: str) -> str:
    """By what name the audit log knows it."""
    return f"system:serviceaccount:{HOME}:{name}"


def start(plane: ControlPlane, name: str, **settings: Any) -> None:
    """Run one that serves this scheduler name; it ends with the control plane.

    Further settings are those of a KubeSchedulerConfiguration.
    """
    kubeconfig = _account(plane, name)
    configuration: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": name}],
        # At full speed: a pod that found no room looks again after a second, not after ten.
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        **settings,
    }
    path = plane.directory / f"kube-scheduler-{name}.json"
    path.write_text(json.dumps(configuration))
    port = free_ports(name)[name]
    command = (
        str(build.binaries(("kube-scheduler",), k8s=plane.k8s)["kube-scheduler"]),
        f"--config={path}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={plane.directory / 'server.crt'}",
        f"--tls-private-key-file={plane.directory / 'server.key'}",
        *plane.feature_gates,
    )
    health = f"https://{LOOPBACK}:{port}/healthz"
    plane.run(Component(f"kube-scheduler-{name}", command, health))


def _account(plane: ControlPlane, name: str) -> str:
    """A service account with every right; answers the path of its kubeconfig."""
    plane.create(
        (
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": HOME},
            },
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"kube-scheduler-{name}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": HOME}],
            },
        )
    )
    return str(plane.kubeconfig_for_service_account(HOME, name))
