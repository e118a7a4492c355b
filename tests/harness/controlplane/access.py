"""What a test or the demo does with a running control plane: as its administrator, or as others."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from . import credentials
from .api import Bulk, Connection, collection
from .errors import KubectlError, RequestError, StartError
from .nodes import is_usable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SERVED_SECONDS = 30.0
_POLL_SECONDS = 0.05
_TOKEN_SECONDS = 30 * 24 * 3600
_CONFLICT = 409


class Access:
    """The administrator's hands on one API server, by the kubeconfig in its directory."""

    def __init__(self, directory: Path, server: str) -> None:
        self.directory = directory
        self.server = server

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.directory / "admin.kubeconfig"

    @property
    def authority(self) -> Path:
        """The certificate that every client of this API server trusts."""
        return self.directory / "ca.crt"

    @property
    def audit_log(self) -> Path:
        """One JSON document per line, in the order of the API server's answers."""
        return self.directory / "audit.log"

    def audited(self) -> list[dict[str, Any]]:
        """What the audit log says by now, entry by entry; the last line may be half written."""
        *whole, _ = self.audit_log.read_text().split("\n")
        return [json.loads(line) for line in whole]

    @property
    def bin(self) -> Path:
        """The folder with this control plane's kubectl and other binaries."""
        return self.directory / "bin"

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of every process here: nothing of the user's shell but PATH."""
        path = f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        home = str(self.directory)
        return {"PATH": path, "HOME": home, "KUBECONFIG": str(self.kubeconfig)}

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The API server's JSON answer to the administrator; a refusal is a RequestError."""
        with closing(Connection(self.server, self.tls())) as connection:
            return connection.request(method, path, body)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # as in subprocess.run
        """What kubectl prints, as the administrator."""
        done = subprocess.run(
            [str(self.bin / "kubectl"), *arguments],
            input=input,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            message = f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
            raise KubectlError(message)
        return done.stdout

    def install_crds(self, path: Path) -> None:
        """Install the CRDs of a file or folder; objects of their kinds can be made at once.

        `kubectl wait` fails on one that has no conditions yet (kubernetes/kubernetes#66439).
        """
        for name in self.kubectl("apply", "--output=name", "-f", str(path)).split():
            self._until_usable(self.request("GET", f"{_CRDS}/{Path(name).name}"))

    def install(self, crds: Sequence[Mapping[str, Any]]) -> None:
        """Install CRDs, however large; objects of their kinds can be made at once."""
        self.apply(crds)
        for crd in crds:
            self._until_usable(crd)

    def _until_usable(self, crd: Mapping[str, Any]) -> None:
        """Wait until the objects are served, and controllers that look for the kind find it."""
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        for version in (v["name"] for v in crd["spec"]["versions"] if v["served"]):
            self.until_served(f"/apis/{group}/{version}/{kind}")
            deadline = time.monotonic() + _SERVED_SECONDS
            while kind not in self._kinds(f"/apis/{group}/{version}"):
                if time.monotonic() > deadline:
                    raise StartError(f"{kind}.{group} is not found after {_SERVED_SECONDS:.0f} s")
                time.sleep(_POLL_SECONDS)

    def _kinds(self, version: str) -> set[str]:
        try:
            return {resource["name"] for resource in self.request("GET", version)["resources"]}
        except RequestError:
            return set()  # the group is not known yet

    def until_served(self, path: str) -> None:
        """Wait until the API server answers there, which it may not know yet, or be starting."""
        self._until_answered("GET", path)

    def until_admitted(self, manifest: Mapping[str, Any]) -> None:
        """Wait until an object would be admitted; it is not made.

        A webhook may decide by what it watches, and so be late.
        """
        self._until_answered("POST", f"{collection(manifest)}?dryRun=All", manifest)

    def _until_answered(self, method: str, path: str, body: object = None) -> None:
        deadline = time.monotonic() + _SERVED_SECONDS
        while True:
            try:
                self.request(method, path, body)
            except (RequestError, OSError) as answer:
                if time.monotonic() > deadline:
                    message = f"{path} is not served after {_SERVED_SECONDS:.0f} s: {answer}"
                    raise StartError(message) from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def apply(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Make these objects so by server-side apply; side by side while the kind is the same."""
        Bulk(self.server, self.tls()).write("APPLY", objects)

    def create(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Create these objects, which must be new; side by side while the kind is the same."""
        Bulk(self.server, self.tls()).write("POST", objects)

    def create_nodes(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        """Create nodes, which must be new, and wait until no taint of Kubernetes keeps pods off.

        Admission taints each new node as not ready; kwok or kube-controller-manager lifts it.
        """
        nodes = [*manifests]
        self.create(nodes)
        deadline = time.monotonic() + _SERVED_SECONDS
        for path in (f"/api/v1/nodes/{node['metadata']['name']}" for node in nodes):
            while not is_usable(self.request("GET", path)):
                if time.monotonic() > deadline:
                    raise StartError(f"{path} is not usable after {_SERVED_SECONDS:.0f} s")
                time.sleep(_POLL_SECONDS)

    def create_namespace(self, name: str) -> None:
        """Create a namespace in which pods can be created at once; an existing one is completed."""
        self._create("/api/v1/namespaces", name)
        # Admission refuses a pod whose service account is missing; its controller may not run.
        self._create(f"/api/v1/namespaces/{quote(name)}/serviceaccounts", "default")

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of this existing service account, and its rights only."""
        account = f"/api/v1/namespaces/{quote(namespace)}/serviceaccounts/{quote(name)}"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        token = self.request("POST", f"{account}/token", body)["status"]["token"]
        path = self.directory / "service-accounts" / f"{namespace}.{name}.kubeconfig"
        authority = self.authority.read_text()
        return credentials.write_kubeconfig(path, self.server, authority, {"token": token})

    def tls(self) -> ssl.SSLContext:
        """What trusts this API server and makes it trust the administrator."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.directory / "admin.pem")
        return context

    def _create(self, path: str, name: str) -> None:
        try:
            self.request("POST", path, {"metadata": {"name": name}})
        except RequestError as error:
            if error.status != _CONFLICT:
                raise
