"""The least client that tests and the demo need: JSON requests, one at a time or many at once."""

from __future__ import annotations

import http.client
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from .errors import RequestError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping, Sequence

_ERRORS_FROM = 400
_TIMEOUT_SECONDS = 60
# More do not make the API server faster on two cores.
_IN_FLIGHT = 8
_PATCHES = {"PATCH": "application/merge-patch+json", "APPLY": "application/apply-patch+yaml"}


class Connection:
    """One kept-alive connection; APPLY stands for the PATCH of a server-side apply."""

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        target = urlsplit(server)
        host, port = target.hostname or "", target.port
        self._wire = http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=tls)

    def close(self) -> None:
        """Give the connection back to the system."""
        self._wire.close()

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The API server's JSON answer; a refusal is an error."""
        headers = {"Content-Type": _PATCHES.get(method, "application/json")}
        # Without spaces, as clients in Go write it. A claim for devices keeps the configuration of
        # its driver as it was sent, and the API server refuses patches that take the spaces out.
        payload = None if body is None else json.dumps(body, separators=(",", ":"))
        self._wire.request("PATCH" if method == "APPLY" else method, path, payload, headers)
        answer = self._wire.getresponse()
        content = answer.read()
        if answer.status >= _ERRORS_FROM:
            raise RequestError(answer.status, _message(content))
        parsed: dict[str, Any] = json.loads(content)
        return parsed


@dataclass(frozen=True, slots=True)
class Bulk:
    """Many objects written at once: kinds one after the other, objects of a kind side by side."""

    server: str
    tls: ssl.SSLContext

    def write(self, method: str, objects: Iterable[Mapping[str, Any]]) -> None:
        """Write every object with POST or APPLY; the first refusal is raised after its kind."""
        for (version, kind), group in itertools.groupby(objects, _kind_of):
            with closing(Connection(self.server, self.tls)) as connection:
                resource, namespaced = _resource(connection, version, kind)
            prefix = _prefix(version)
            targets = [
                (_target(method, prefix, resource, each, namespaced=namespaced), each)
                for each in group
            ]
            stripes = [targets[start::_IN_FLIGHT] for start in range(_IN_FLIGHT)]
            with ThreadPoolExecutor(_IN_FLIGHT) as pool:
                list(pool.map(lambda stripe: self._write(method, stripe), filter(None, stripes)))

    def _write(self, method: str, targets: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        with closing(Connection(self.server, self.tls)) as connection:
            for path, body in targets:
                connection.request(method, path, body)


def collection(manifest: Mapping[str, Any]) -> str:
    """The path under which an object is created, if its kind has the plural of an English word.

    Source: UnsafeGuessKindToResource in k8s.io/apimachinery/pkg/api/meta/restmapper.go.
    """
    kind, namespace = manifest["kind"].lower(), manifest["metadata"].get("namespace")
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    if kind.endswith("s"):
        plural = f"{kind}es"
    elif kind.endswith("y"):
        plural = f"{kind[:-1]}ies"
    else:
        plural = f"{kind}s"
    return f"{_prefix(manifest['apiVersion'])}{place}/{plural}"


def _message(content: bytes) -> str:
    text = content.decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text


def _kind_of(body: Mapping[str, Any]) -> tuple[str, str]:
    return body["apiVersion"], body["kind"]


def _prefix(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _resource(connection: Connection, version: str, kind: str) -> tuple[str, bool]:
    for resource in connection.request("GET", _prefix(version))["resources"]:
        if resource["kind"] == kind and "/" not in resource["name"]:
            return resource["name"], resource["namespaced"]
    raise RequestError(http.client.NOT_FOUND, f"{version} serves no kind {kind}")


def _target(
    method: str, prefix: str, resource: str, body: Mapping[str, Any], *, namespaced: bool
) -> str:
    metadata = body["metadata"]
    place = f"/namespaces/{quote(metadata.get('namespace', 'default'))}" if namespaced else ""
    path = f"{prefix}{place}/{resource}"
    if method == "POST":
        return path
    return f"{path}/{quote(metadata['name'])}?fieldManager=tests&force=true"
