"""A Pod that stands for the operator's process, so that the API server leads to its metrics."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from .operator_process import ACCOUNT, NAMESPACE

if TYPE_CHECKING:
    from .rig import Rig

NAME = "tutti-0"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
ANYWHERE = ("192.0.2.1", 9)  # nobody is there (RFC 5737), and nothing is sent


def create(rig: Rig) -> None:
    """Create the Pod, on a node without a kubelet; the API server leads to no loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(ANYWHERE)
        address = probe.getsockname()[0]
    port = rig.operator.port
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/name": "tutti"},
        },
        "spec": {
            "serviceAccountName": ACCOUNT,
            "nodeName": "elsewhere",
            "containers": [
                {
                    "name": "tutti",
                    "image": "tutti",
                    "ports": [{"name": "probes", "containerPort": port}],
                }
            ],
        },
    }
    rig.create(pod)
    created = rig.plane.request("GET", f"{PODS}/{NAME}")
    created["status"] = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    rig.plane.request("PUT", f"{PODS}/{NAME}/status", created)
