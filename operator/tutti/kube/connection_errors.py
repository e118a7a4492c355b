"""Why a request got no answer, in words: the address of the server, and what happened.

Exceptions of the HTTP library may contain headers with credentials. So only hosts, ports and the
messages of the operating system are quoted.
"""

import errno
import os
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp

TIMED_OUT = "timed out"
CLOSED = "closed the connection without an answer"
BY_NUMBER: Mapping[int, str] = {
    errno.ECONNREFUSED: "refused the connection",
    errno.ECONNRESET: CLOSED,
    errno.EPIPE: CLOSED,
    errno.ETIMEDOUT: TIMED_OUT,
}


def why(problem: Exception, server: str) -> str:
    """What happened to a request to ``server``: one clause in one line."""
    if isinstance(problem, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        return "the server is not named by an address with http:// or https://"
    return f"{_address(problem, server)} {_outcome(problem)}"


def _address(problem: Exception, server: str) -> str:
    """Host and port of the server, or of the proxy in front of it that failed."""
    if isinstance(problem, aiohttp.ClientConnectorError):
        host, port = problem.host, problem.port
    else:
        address = urlsplit(server)
        host, port = address.hostname or "", address.port
    name = f"[{host}]" if ":" in host else host
    is_proxy = isinstance(problem, aiohttp.ClientProxyConnectionError)
    return f"{'the proxy ' * is_proxy}{name}{f':{port}' if port else ''}"


def _outcome(problem: Exception) -> str:
    match problem:
        case aiohttp.ClientConnectorDNSError():
            outcome = "is not found: there is no address of that name"
        case aiohttp.ClientConnectorCertificateError():
            outcome = f"has a certificate that is not trusted{_mistrust(problem.certificate_error)}"
        case aiohttp.ClientSSLError():
            outcome = "does not speak TLS as it should"
        case TimeoutError():
            outcome = TIMED_OUT
        case aiohttp.ServerDisconnectedError():
            outcome = CLOSED
        case aiohttp.ClientPayloadError():
            outcome = "broke off in the middle of its answer"
        case aiohttp.ClientHttpProxyError():
            outcome = f"is behind a proxy that answered {problem.status}"
        case aiohttp.ClientResponseError():
            outcome = "does not answer as an API server does"
        case OSError():
            outcome = _by_number(problem)
        case _:
            outcome = "gave no answer"
    return outcome


def _mistrust(problem: Exception) -> str:
    """What is wrong with a certificate, if the TLS library says it."""
    message = problem.verify_message if isinstance(problem, ssl.SSLCertVerificationError) else ""
    return f": {message.rstrip('.')}" if message else ""


def _by_number(problem: OSError) -> str:
    """The message of the operating system; an error of a file, such as a token, names the file."""
    message = os.strerror(problem.errno) if problem.errno else "no reason is given"
    if problem.filename is not None:
        return f"was not asked: {problem.filename}: {message}"
    return BY_NUMBER.get(problem.errno or 0, f"cannot be reached: {message}")
