"""A loop that only binds: each new pod to the next node, without a look at room or gangs.

It shows what the API server can take. As a program, it binds the pods of the default scheduler's
name: ``python -m tests.bench.e2e.bind_loop KUBECONFIG``.
"""

from __future__ import annotations

import base64
import http
import http.client
import itertools
import json
import math
import os
import ssl
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import yaml

from ...harness.controlplane.errors import RequestError
from ...harness.controlplane.processes import Process, spawn, stop
from ...harness.operator_process import ROOT
from .changes import PODS
from .scenarios import NAMESPACE
from .writing import ACCEPT_METADATA, Server, Writer, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...harness.controlplane.cluster import ControlPlane

NAME = "bind-loop"
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
_WAITING = f"{PODS}?watch=1&fieldSelector=spec.schedulerName%3Ddefault-scheduler,spec.nodeName%3D"
_GRACE_SECONDS = 10.0


class BindLoop:
    """The loop as a process beside a control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        plane.apply(_account())
        kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, NAME)
        command = [sys.executable, "-m", __name__, str(kubeconfig)]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        log = plane.directory / f"{NAME}.log"
        self._process: Process = spawn(NAME, command, log, environment=environment, detached=False)

    @property
    def pids(self) -> Sequence[int]:
        """Its only process."""
        return (self._process.pid,)

    def stop(self) -> None:
        """End it."""
        stop(self._process, seconds=_GRACE_SECONDS)

    def watch_delay(self) -> float:
        """It has no metrics."""
        return math.nan


def _account() -> list[dict[str, Any]]:
    """A service account that may do everything, so that the audit log knows its writes."""
    metadata = {"name": NAME, "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
    ]


class _Api:
    """Who the loop is, and where its API server is."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        (cluster,), (user,) = content["clusters"], content["users"]
        authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        self.address: str = cluster["cluster"]["server"]
        self.token: str = user["user"]["token"]

    def get(self, path: str, accept: str) -> http.client.HTTPResponse:
        """An answer that has begun.

        Raises:
            RequestError: it is a refusal.
        """
        target = urlsplit(self.address)
        connection = http.client.HTTPSConnection(
            target.hostname or "", target.port, context=self.tls
        )
        headers = {"Accept": accept, "Authorization": f"Bearer {self.token}"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise RequestError(answer.status, answer.read().decode(errors="replace"))
        return answer

    def nodes(self) -> list[str]:
        """The names of all nodes."""
        listed = json.load(self.get("/api/v1/nodes", "application/json"))["items"]
        return [node["metadata"]["name"] for node in listed]

    def waiting_pods(self) -> Iterator[str]:
        """The names of pods without a node, as they come, for ever."""
        while True:  # the API server ends every watch after a while
            for line in self.get(_WAITING, ACCEPT_METADATA):
                event = json.loads(line)
                if event["type"] == "ADDED":
                    yield event["object"]["metadata"]["name"]


def main(kubeconfig: Path) -> None:
    """Bind for ever."""
    api = _Api(kubeconfig)
    nodes = itertools.cycle(api.nodes())
    with closing(Writer(Server(api.address, api.tls))) as writer:  # a refusal ends the loop
        for name in api.waiting_pods():
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "target": {"apiVersion": "v1", "kind": "Node", "name": next(nodes)},
            }
            writer.send([written("POST", f"{PODS}/{name}/binding", body, token=api.token)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
