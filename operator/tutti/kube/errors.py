"""The errors of the API server, sorted by what to do about them.

* ApiError
  - Conflict: another client wrote first; drop the write, the next cycle looks again
  - Gone: the object, or the version to watch from, is gone; look again
  - Refused: a bug of Tutti, a size limit or missing rights; log an error, try again much later
    - Unchangeable: no patch of this object is accepted, but for its status
  - Unavailable: wait, then look again
* NoAccess: there is no API server to send requests to
* BadObject: one object cannot be read; other objects can
"""

# ruff: noqa: N818 - the classes are named for situations, without "Error"

import json
from collections.abc import Iterator, Mapping
from typing import Any

MESSAGE_LIMIT = 500  # the API server may quote a whole object
GONE = (404, 410)
REFUSED = (400, 401, 403, 405, 406, 413, 415, 422)
TOO_LARGE = "too large"  # in a 500: etcd refused a request over its size limit
TOO_LARGE_FOR_GRPC = "larger than max"  # the same, refused by the etcd client of the API server
INVALID = "Invalid"  # the reason of a refusal by the rules for a kind
# For a patch, the API server writes the whole object as JSON anew. It refuses the patch if a field
# that must not change was sent with other spaces or escapes, although the patch lacks this field.
UNCHANGEABLE = ("field is immutable", "field cannot be modified once set")
DENIED = 'admission webhook "'  # the message about a webhook that refused begins so
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
        self.status = status  # HTTP status; 0 if there was no answer
        self.reason = reason  # the reason of the Status object, in one word
        self.retry_after = retry_after  # seconds; None if none are named, or a webhook names them


class Conflict(ApiError):
    """Another client wrote first: a stale version, another uid, or an object that exists."""


class Gone(ApiError):
    """The object does not exist, or a watch can no longer start from that version."""


class Refused(ApiError):
    """The API server refuses the same request every time, unless something else changes."""


class Unchangeable(Refused):
    """The API server refuses every patch of this object, but for its status (``UNCHANGEABLE``)."""


class Unavailable(ApiError):
    """The server is away, overloaded or broken for now."""


class NoAccess(Exception):
    """There is no kubeconfig or service account to reach a cluster with."""

    def __init__(self, sentence: str, todo: str = "") -> None:
        super().__init__(sentence)
        self.todo = todo  # what may help; empty if only naming another cluster helps


class BadObject(Exception):
    """One object has a value that cannot be read."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(f"{name}: {sentence}")
        self.name = name  # namespace/name, as far as they are known
        self.sentence = sentence


def from_response(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """The error for an HTTP answer with a status of 400 or more.

    ``retry_after`` is the value of the header in seconds; a value in the body overrides it.
    """
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
    """The error for a Status object, from a failed request or the ERROR event of a watch."""
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
        retry_after = None  # a webhook answered; the server itself is not overloaded
    kind = _kind(status, reason, message)
    return kind(_shortened(message), status=status, reason=reason, retry_after=retry_after)


def _kind(status: int, reason: str, message: str) -> type[ApiError]:
    if status == 409:  # noqa: PLR2004 - HTTP's own number
        return Conflict
    if status in GONE:
        return Gone
    if status in REFUSED:
        is_said = any(words in message for words in UNCHANGEABLE) and not message.startswith(DENIED)
        return Unchangeable if reason == INVALID and is_said else Refused
    if status == 500 and (TOO_LARGE in message or TOO_LARGE_FOR_GRPC in message):  # noqa: PLR2004
        return Refused
    return Unavailable


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _budgets(causes: object) -> Iterator[str]:
    """Why disruption budgets forbid an eviction; only the causes name the budgets."""
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == BUDGET_CAUSE:
            yield _text(cause.get("message"))


def _shortened(message: str) -> str:
    if len(message) <= MESSAGE_LIMIT:
        return message
    return message[: MESSAGE_LIMIT - 1] + "…"
