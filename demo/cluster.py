"""One cluster as the demo speaks to it: JSON requests, manifests in and out, and one watch."""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

Manifest = dict[str, Any]
REQUEST_SECONDS = 30.0
WATCH_SECONDS = 5.0  # a silent watch is renewed this often, so that it can end
PLURALS = {
    "Namespace": "namespaces",
    "Pod": "pods",
    "ServiceAccount": "serviceaccounts",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "Job": "jobs",
    "PodGroup": "podgroups",
    "Queue": "queues",
}


class DemoError(Exception):
    """The demo cannot go on; the message is for the user."""


class RefusedError(DemoError):
    """The API server refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Cluster:
    """An API server, reached by a kubeconfig: a named file, or the user's own."""

    def __init__(self, kubeconfig: Path | None = None) -> None:
        """Read the kubeconfig; no request is made.

        Raises:
            DemoError: it cannot be read.
        """
        configuration = kubernetes_client.Configuration()
        try:
            kubernetes_config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=None if kubeconfig is None else str(kubeconfig),
                client_configuration=configuration,
                persist_config=False,
            )
        except (kubernetes_config.ConfigException, OSError, ValueError, TypeError) as problem:
            raise DemoError(f"no cluster: the kubeconfig cannot be used: {problem}") from problem
        if kubeconfig is not None:
            configuration.proxy = None  # a proxy of the user's shell knows nothing of loopback
        self.context = _context(kubeconfig)
        self.configuration = configuration
        self.server = str(configuration.host).rstrip("/")
        self._api = kubernetes_client.ApiClient(configuration)
        self._pool: urllib3.PoolManager = self._api.rest_client.pool_manager

    def request(self, method: str, path: str, body: object = None) -> Manifest:
        """The API server's JSON answer.

        Raises:
            RefusedError: it said no.
            DemoError: it did not answer.
        """
        answer = self._send(method, path, body, seconds=REQUEST_SECONDS)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise RefusedError(answer.status, _message(answer.data))
        parsed: Manifest = json.loads(answer.data)
        return parsed

    def items(self, path: str) -> list[Manifest]:
        """The objects of a list."""
        return list(self.request("GET", path)["items"])

    def find(self, path: str) -> Manifest | None:
        """An object, or None where there is none."""
        try:
            return self.request("GET", path)
        except RefusedError as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Create an object, which must be new."""
        self.request("POST", collection(manifest), manifest)

    def delete(self, path: str) -> None:
        """Delete one object and what it owns; one that is gone already is fine."""
        try:
            self.request("DELETE", path, {"propagationPolicy": "Background"})
        except RefusedError as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise

    def watch(self, path: str, seen: Callable[[str, Manifest], None]) -> Watching:
        """Call ``seen`` with type and object of every change from now on, in a thread."""
        return Watching(self, path, seen)

    def stream(self, path: str, version: str) -> Iterable[bytes]:
        """The lines of one watch, until the server ends it."""
        path = f"{path}?watch=1&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS:.0f}"
        answer = self._send("GET", path, None, seconds=4 * WATCH_SECONDS, preload=False)
        try:
            yield from answer
        finally:
            answer.release_conn()

    def _send(
        self, method: str, path: str, body: object, *, seconds: float, preload: bool = True
    ) -> urllib3.BaseHTTPResponse:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers: dict[str, str] = {"Content-Type": kind, "Accept": "application/json"}
        self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
        try:
            return self._pool.request(
                method,
                self.server + path,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=seconds,
                retries=False,
                preload_content=preload,
            )
        except urllib3.exceptions.HTTPError as problem:
            host = urlsplit(self.server).netloc
            raise DemoError(f"the API server at {host} does not answer: {problem}") from problem


class Watching:
    """A watch that goes on until it is closed; what it cannot follow it leaves out."""

    def __init__(self, cluster: Cluster, path: str, seen: Callable[[str, Manifest], None]) -> None:
        self._cluster = cluster
        self._path = path
        self._seen = seen
        self._over = threading.Event()
        self._version = str(cluster.request("GET", path)["metadata"]["resourceVersion"])
        threading.Thread(target=self._follow, daemon=True, name="watch").start()

    def close(self) -> None:
        """Tell it to end; the thread goes within seconds, or with the program."""
        self._over.set()

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                for line in self._cluster.stream(self._path, self._version):
                    if self._over.is_set():
                        return
                    event = json.loads(line)
                    self._version = str(event["object"]["metadata"]["resourceVersion"])
                    self._seen(event["type"], event["object"])
            except (DemoError, urllib3.exceptions.HTTPError, ValueError, KeyError):
                self._over.wait(0.5)


def _context(kubeconfig: Path | None) -> str:
    path = None if kubeconfig is None else str(kubeconfig)
    contexts = kubernetes_config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call]
    return str(contexts[1]["name"])


def collection(manifest: Mapping[str, Any]) -> str:
    """The path under which objects of a manifest's kind and namespace are created."""
    version = manifest["apiVersion"]
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{prefix}{place}/{PLURALS[manifest['kind']]}"


def place_of(manifest: Mapping[str, Any]) -> str:
    """The path of the object that a manifest describes."""
    return f"{collection(manifest)}/{manifest['metadata']['name']}"


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content.decode(errors="replace").strip()
