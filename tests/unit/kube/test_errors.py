"""What the API server answers, sorted by what to do about it."""

import json

import pytest

from tutti.kube import errors
from tutti.kube.concurrency import is_away


def status(code: int, message: str = "no", **more: object) -> bytes:
    """A Status object as the API server writes it."""
    return json.dumps({"kind": "Status", "code": code, "message": message, **more}).encode()


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (409, "the object has been modified", errors.Conflict),
        (404, "not found", errors.Gone),
        (410, "too old resource version", errors.Gone),
        (400, "bad", errors.Refused),
        (401, "Unauthorized", errors.Refused),
        (403, "forbidden", errors.Refused),
        (405, "no", errors.Refused),
        (413, "too big", errors.Refused),
        (415, "no", errors.Refused),
        (422, "Invalid value", errors.Refused),
        (500, "etcdserver: request is too large", errors.Refused),
        (500, "trying to send message larger than max (3 vs. 2)", errors.Refused),
        (500, "internal error", errors.Unavailable),
        (408, "timeout", errors.Unavailable),
        (429, "too many requests", errors.Unavailable),
        (503, "overloaded", errors.Unavailable),
        (504, "timeout", errors.Unavailable),
        (418, "tea", errors.Unavailable),
        (302, "elsewhere", errors.Unavailable),
    ],
)
def test_each_answer_has_its_kind(code: int, message: str, kind: type[errors.ApiError]) -> None:
    problem = errors.from_response(code, status(code, message, reason="Word"))
    assert type(problem) is kind
    assert (problem.status, problem.reason, str(problem)) == (code, "Word", message)


def test_the_disruption_budget_is_named() -> None:
    """The server's message does not: its cause does."""
    named = "The disruption budget a needs 3 healthy pods and has 2 currently"
    causes = [{"reason": "DisruptionBudget", "message": named}]
    problem = errors.from_response(429, status(429, "Not now.", details={"causes": causes}))
    assert str(problem) == f"Not now. {named}"


@pytest.mark.parametrize("causes", [7, [7], [{"reason": "Other", "message": "no"}], []])
def test_other_causes_are_not_repeated(causes: object) -> None:
    problem = errors.from_response(429, status(429, "Not now.", details={"causes": causes}))
    assert str(problem) == "Not now."


def test_a_long_message_is_cut() -> None:
    problem = errors.from_response(422, status(422, "x" * 10_000))
    assert len(str(problem)) == errors.MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "HTTP 502 without a message"),
        (b"{}", "HTTP 502 without a message"),
        (b'{"message": null, "reason": 7, "details": []}', "HTTP 502 without a message"),
        (b"<html>\n  Bad   gateway</html>", "<html> Bad gateway</html>"),
        (b"[1]", "[1]"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, "[" * (errors.MESSAGE_LIMIT - 1) + "…"),
    ],
)
def test_a_body_that_is_no_status_is_quoted(body: bytes, message: str) -> None:
    problem = errors.from_response(502, body)
    assert isinstance(problem, errors.Unavailable)
    assert str(problem) == message


def test_the_body_says_better_than_the_header_how_long_to_wait() -> None:
    busy = status(429, details={"retryAfterSeconds": 7})
    assert errors.from_response(429, busy, retry_after=1).retry_after == 7
    assert errors.from_response(429, status(429), retry_after=1).retry_after == 1
    assert errors.from_response(429, status(429)).retry_after is None


def test_the_status_in_a_watch_brings_its_own_code() -> None:
    problem = errors.from_status({"code": 410, "reason": "Expired", "message": "too old"})
    assert isinstance(problem, errors.Gone)
    assert problem.status == 410


def test_a_broken_object_is_no_answer_of_the_server() -> None:
    problem = errors.BadObject("ml/train", "its request cannot be read")
    assert not isinstance(problem, errors.ApiError)
    assert str(problem) == "ml/train: its request cannot be read"


def test_a_webhook_that_says_when_to_come_back_speaks_for_itself_alone() -> None:
    said = 'admission webhook "w.example.com" denied the request: not now'
    body = status(429, said, details={"retryAfterSeconds": 7})
    problem = errors.from_response(429, body, retry_after=7)
    assert problem.retry_after is None
    assert not is_away(problem)
    assert is_away(errors.from_response(429, status(429, "Too many requests."), retry_after=1))
