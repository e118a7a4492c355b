"""``tutti plan`` and ``tutti explain``, called as a user does, in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from tutti.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence


class NoAnswerError(Exception):
    """The command failed."""


def plan(text: str) -> dict[str, Any]:
    """What ``tutti plan -o json`` prints about a file of this text.

    Raises:
        NoAnswerError: it prints no plan.
    """
    answer: dict[str, Any] = json.loads(_run(["plan", "-f", "-", "-o", "json"], text))
    return answer


def explain(text: str) -> dict[str, Any]:
    """What ``tutti explain -o json`` prints; see ``plan``."""
    answer: dict[str, Any] = json.loads(_run(["explain", "-f", "-", "-o", "json"], text))
    return answer


def picture(text: str) -> str:
    """What ``tutti plan -o picture`` prints; see ``plan``."""
    return _run(["plan", "-f", "-", "-o", "picture"], text)


def _run(words: Sequence[str], text: str) -> str:
    result = CliRunner().invoke(main, list(words), input=text)
    if result.exit_code != 0:
        told = result.exception if result.exception is not None else ""
        raise NoAnswerError(f"exit code {result.exit_code}: {result.stderr.strip()} {told!r}")
    return result.stdout
