"""Many writes at once as cheaply as Python can: ready-made requests on kept-alive connections.

It shares two cores with what is measured, so nothing is parsed but the length of an answer.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ...harness.controlplane.errors import RequestError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

IN_FLIGHT = 16
_TIMEOUT_SECONDS = 120.0
_CHUNK = 1 << 16
_END_OF_HEAD = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_ERRORS_FROM = 400
_NOT_FOUND = 404
_IDLE_SECONDS = 20.0  # the API server closes a connection without a request after 32 s
# The object itself would come back with every write; its metadata is short.
ACCEPT_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class Server(NamedTuple):
    """Where to write, and how to be let in."""

    address: str
    tls: ssl.SSLContext


def written(
    method: str,
    path: str,
    body: object = None,
    kind: str = "application/json",
    *,
    token: str = "",
) -> bytes:
    """One whole request, as it goes over the wire."""
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}"
        f"Accept: {ACCEPT_METADATA}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def write_all(server: Server, requests: Iterable[bytes], *, in_flight: int = IN_FLIGHT) -> None:
    """Send every request, in order but side by side, and wait for the answers.

    Raises:
        RequestError: one of them was refused; some of the others were not sent.
    """
    waiting = deque(requests)

    def drain() -> None:
        with closing(_Wire(server)) as wire:
            while True:
                try:
                    request = waiting.popleft()
                except IndexError:
                    return
                wire.write(request)

    with ThreadPoolExecutor(in_flight) as pool:
        drains = [pool.submit(drain) for _ in range(min(in_flight, len(waiting)))]
        try:
            for each in drains:
                each.result()
        except BaseException:
            waiting.clear()
            raise


class Writer:
    """Lasting connections, which send requests while the caller goes on."""

    def __init__(self, server: Server, in_flight: int = IN_FLIGHT) -> None:
        self._server = server
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._pool = ThreadPoolExecutor(in_flight)
        self._drains = [self._pool.submit(self._drain) for _ in range(in_flight)]

    def send(self, requests: Iterable[bytes]) -> None:
        """Hand requests over; they are sent in this order but side by side.

        Raises:
            RequestError: an earlier one was refused, other than for an object that is gone.
        """
        self._look()
        for request in requests:
            self._requests.put(request)

    def close(self) -> None:
        """Wait until all are answered.

        Raises:
            RequestError: one was refused, other than for an object that is gone.
        """
        for _ in self._drains:
            self._requests.put(None)
        self._pool.shutdown()
        self._look()

    def _look(self) -> None:
        for drain in self._drains:
            if drain.done():
                drain.result()

    def _drain(self) -> None:
        with closing(_Wire(self._server)) as wire:
            while (request := self._requests.get()) is not None:
                _unless_gone(wire, request)


def _unless_gone(wire: _Wire, request: bytes) -> None:
    """Send a request whose object somebody else may have deleted."""
    try:
        wire.write(request)
    except RequestError as refusal:
        if refusal.status != _NOT_FOUND or request.startswith(b"POST "):
            raise


def _connected(server: Server) -> ssl.SSLSocket:
    target = urlsplit(server.address)
    host = target.hostname or ""
    plain = socket.create_connection((host, target.port or 443), timeout=_TIMEOUT_SECONDS)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server.tls.wrap_socket(plain, server_hostname=host)


class _Wire:
    """One kept-alive connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._socket = _connected(server)
        self._last = time.monotonic()

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def write(self, request: bytes) -> None:
        """Send a request and wait for its answer.

        Raises:
            RequestError: it was refused.
        """
        if time.monotonic() > self._last + _IDLE_SECONDS:
            self.close()
            self._socket = _connected(self._server)
        self._socket.sendall(request)
        head, body = self._answer()
        self._last = time.monotonic()
        status = int(head.split(b" ", 2)[1])
        if status >= _ERRORS_FROM:
            line = request.split(b"\r\n", 1)[0].decode()
            raise RequestError(status, f"{line}: {body.decode(errors='replace')[:300]}")

    def _answer(self) -> tuple[bytes, bytes]:
        head, body = self._until(b"", _END_OF_HEAD)
        if found := _LENGTH.search(head):
            while len(body) < int(found.group(1)):
                body += self._received()
        elif _CHUNKED.search(head):
            while not body.endswith(_LAST_CHUNK):
                body += self._received()
        return head, body

    def _until(self, start: bytes, end: bytes) -> tuple[bytes, bytes]:
        seen = start
        while end not in seen:
            seen += self._received()
        head, _, rest = seen.partition(end)
        return head, rest

    def _received(self) -> bytes:
        part = self._socket.recv(_CHUNK)
        if not part:
            raise ConnectionError("the API server has closed the connection")
        return part
