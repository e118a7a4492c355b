"""What is said of requests without an answer: whom they asked, what became of them, no secrets."""

import errno
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from tutti.kube import access, client, connection_errors, errors, kinds

SERVER = "https://me:hunter2@api.example:6443/k8s"
KEY = ConnectionKey(
    host="api.example",
    port=6443,
    is_ssl=True,
    ssl=True,
    proxy=None,
    proxy_auth=None,
    proxy_headers_hash=None,
)
SIX = KEY._replace(host="::1")
TOKEN = CIMultiDictProxy(CIMultiDict({"Authorization": "Bearer hunter2"}))
REQUEST = aiohttp.RequestInfo(URL(SERVER), "GET", TOKEN)


def refused(number: int | None, words: str = "hunter2") -> OSError:
    return OSError(words) if number is None else OSError(number, words)


def mistrusted(message: str) -> ssl.SSLCertVerificationError:
    problem = ssl.SSLCertVerificationError(1, "hunter2")
    problem.verify_message = message
    return problem


SAID: Mapping[str, tuple[Exception, str]] = {
    "refused": (
        aiohttp.ClientConnectorError(KEY, refused(errno.ECONNREFUSED)),
        "api.example:6443 refused the connection",
    ),
    "refused, by an address with colons": (
        aiohttp.ClientConnectorError(SIX, refused(errno.ECONNREFUSED)),
        "[::1]:6443 refused the connection",
    ),
    "refused by a proxy": (
        aiohttp.ClientProxyConnectionError(KEY, refused(errno.ECONNREFUSED)),
        "the proxy api.example:6443 refused the connection",
    ),
    "no way": (
        aiohttp.ClientConnectorError(KEY, refused(errno.EHOSTUNREACH)),
        "api.example:6443 cannot be reached: No route to host",
    ),
    "several reasons": (
        aiohttp.ClientConnectorError(KEY, refused(None)),
        "api.example:6443 cannot be reached: no reason is given",
    ),
    "no name": (
        aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "hunter2")),
        "api.example:6443 is not found: there is no address of that name",
    ),
    "no answer in time": (TimeoutError(), "api.example:6443 timed out"),
    "no answer in time, by the library": (
        aiohttp.SocketTimeoutError("hunter2"),
        "api.example:6443 timed out",
    ),
    "no answer in time, by the system": (
        aiohttp.ClientConnectorError(KEY, refused(errno.ETIMEDOUT)),
        "api.example:6443 timed out",
    ),
    "closed": (
        aiohttp.ServerDisconnectedError("hunter2"),
        "api.example:6443 closed the connection without an answer",
    ),
    "reset": (
        aiohttp.ClientOSError(errno.ECONNRESET, "hunter2"),
        "api.example:6443 closed the connection without an answer",
    ),
    "cut off": (
        aiohttp.ClientPayloadError("hunter2"),
        "api.example:6443 broke off in the middle of its answer",
    ),
    "another protocol": (
        aiohttp.ClientResponseError(REQUEST, (), status=400, message="Bad\nstatus line"),
        "api.example:6443 does not answer as an API server does",
    ),
    "a proxy that wants a password": (
        aiohttp.ClientHttpProxyError(REQUEST, (), status=407, message="hunter2"),
        "api.example:6443 is behind a proxy that answered 407",
    ),
    "a certificate of its own": (
        aiohttp.ClientConnectorCertificateError(KEY, mistrusted("self-signed certificate.")),
        "api.example:6443 has a certificate that is not trusted: self-signed certificate",
    ),
    "a certificate of which nothing is said": (
        aiohttp.ClientConnectorCertificateError(KEY, Exception("hunter2")),
        "api.example:6443 has a certificate that is not trusted",
    ),
    "no TLS": (
        aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "hunter2")),
        "api.example:6443 does not speak TLS as it should",
    ),
    "no token": (
        FileNotFoundError(errno.ENOENT, "hunter2", "/run/token"),
        "api.example:6443 was not asked: /run/token: No such file or directory",
    ),
    "no address": (
        aiohttp.InvalidUrlClientError(SERVER),
        "the server is not named by an address with http:// or https://",
    ),
    "another scheme": (
        aiohttp.NonHttpUrlClientError(SERVER),
        "the server is not named by an address with http:// or https://",
    ),
    "what is new": (aiohttp.ClientConnectionError("hunter2"), "api.example:6443 gave no answer"),
}


@pytest.mark.parametrize("case", SAID)
def test_each_is_one_line_about_whom_was_asked(case: str) -> None:
    problem, words = SAID[case]
    assert connection_errors.why(problem, SERVER) == words


def test_a_server_need_not_name_its_port() -> None:
    assert connection_errors.why(TimeoutError(), "https://api.example") == "api.example timed out"


async def test_lists_and_watches_say_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        """
        current-context: it
        contexts: [{name: it, context: {cluster: it, user: it}}]
        clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
        users: [{name: it, user: {token: hunter2}}]
        """
    )
    async with client.Client(await access.Access.load(str(path))) as api:
        with pytest.raises(errors.Unavailable) as list_said:
            await api.page(kinds.NODE.stream())
        with pytest.raises(errors.Unavailable) as watch_said:
            await anext(api.watch(kinds.NODE.stream(), "1"))
    assert str(list_said.value) == "GET /api/v1/nodes: 127.0.0.1:1 refused the connection."
    assert str(watch_said.value) == "WATCH /api/v1/nodes: 127.0.0.1:1 refused the connection."
