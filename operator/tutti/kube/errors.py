"""What the API server can answer instead of yes, sorted by what to do about it.

* ApiError
  - Conflict: someone wrote first; drop it, the next cycle looks again
  - Gone: the object, or the version to watch from, has left; look again
  - Refused: our bug, a size limit or missing rights; say it loudly, and ask again only much later
  - Unavailable: wait, then look again
* NoAccess: there is no API server to send requests to
* BadObject: one object that cannot be read; the others can
"""

# ruff: noqa: N818 - they are named for the situation, not for being errors

import json
from collections.abc import Iterator, Mapping
from typing import Any

MESSAGE_LIMIT = 500  # the API server may quote a whole object
GONE = (404, 410)
REFUSED = (400, 401, 403, 405, 406, 413, 415, 422)
TOO_LARGE = "too large"  # etcd's answer to a request over its limit comes as a 500
TOO_LARGE_FOR_GRPC = "larger than max"  # the same limit, met by the API server's etcd client
DENIED = 'admission webhook "'  # so begins what the API server says of one that has refused
BUDGET_CAUSE = "DisruptionBudget"  # the reason of a cause that names a disruption budget


class ApiError(Exception):
    """The API server did not carry out a request."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status  # HTTP status; 0 where there was no answer
        self.reason = reason  # the machine-readable word of the Status object
        self.retry_after = retry_after  # seconds, where the server names them; no webhook's


class Conflict(ApiError):
    """Someone wrote first: a stale version, another uid, or an object that exists already."""


class Gone(ApiError):
    """The object is not there, or a watch can no longer start from that version."""


class Refused(ApiError):
    """The same request will be refused every time."""


class Unavailable(ApiError):
    """The server is away, overloaded or broken for now."""


class NoAccess(Exception):
    """There is no kubeconfig or service account to reach a cluster with."""

    def __init__(self, sentence: str, todo: str = "") -> None:
        super().__init__(sentence)
        self.todo = todo  # what may help; empty where that is to name another cluster


class BadObject(Exception):
    """One object holds something that cannot be read."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"{name}: {sentence}")
        self.name = name  # namespace/name, or whatever is known of it
        self.sentence = sentence


def from_response(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """Sort an HTTP answer of 400 or more; ``retry_after`` is the header's, the body's wins."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        text = body[: 4 * MESSAGE_LIMIT].decode(errors="replace")
        answer = {"message": " ".join(text.split())}
    return from_status(answer, status=status, retry_after=retry_after)


def from_status(
    answer: Mapping[str, Any], *, status: int = 0, retry_after: float | None = None
) -> ApiError:
    """Sort a Status object, as a failed request or the ERROR event of a watch carries it."""
    if not status:
        code = answer.get("code")
        status = code if isinstance(code, int) else 0
    reason = _text(answer.get("reason"))
    message = _text(answer.get("message")) or reason or f"HTTP {status} without a message"
    details = answer.get("details")
    details = details if isinstance(details, dict) else {}
    message = " ".join((message, *_budgets(details.get("causes"))))
    seconds = details.get("retryAfterSeconds")
    if isinstance(seconds, int | float) and seconds > 0:
        retry_after = float(seconds)
    if message.startswith(DENIED):
        retry_after = None  # a webhook's own words: the server itself has time
    kind = _kind(status, message)
    return kind(_shortened(message), status=status, reason=reason, retry_after=retry_after)


def _kind(status: int, message: str) -> type[ApiError]:
    if status == 409:  # noqa: PLR2004 - HTTP's own number
        return Conflict
    if status in GONE:
        return Gone
    if status in REFUSED:
        return Refused
    if status == 500 and (TOO_LARGE in message or TOO_LARGE_FOR_GRPC in message):  # noqa: PLR2004
        return Refused
    return Unavailable


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _budgets(causes: object) -> Iterator[str]:
    """What a disruption budget has against an eviction; the message does not name it."""
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == BUDGET_CAUSE:
            yield _text(cause.get("message"))


def _shortened(message: str) -> str:
    if len(message) <= MESSAGE_LIMIT:
        return message
    return message[: MESSAGE_LIMIT - 1] + "…"
