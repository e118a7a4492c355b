"""What ``tutti`` answers to a case, and the digests by which answers are compared.

The command line and its JSON are all that is relied on: modules may move and be renamed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from . import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .cases import Case

    Given = Case | str  # a generated case goes by its name
    Map = Callable[[Callable[[Given], Any], list[Given]], Iterator[Any]]

OPERATOR = cases.ROOT / "operator"
# Sentences for people, by the names of their fields.
WORDS = frozenset({"sentence", "shortfall", "ailment", "hindrance"})
# Values in the objective's own unit, and the effort of an explanation.
FIGURES = frozenset({"levels", "plans"})
# The parts of an answer, and how many digits of each digest are kept.
PARTS = {"choice": 8, "figures": 4, "words": 4}
# A generated case that takes longer may have been cut by the clock: 1/20 of its budget.
MOST_SECONDS = cases.SECONDS / 20


@dataclass(frozen=True)
class Answer:
    """What one command printed."""

    exit_code: int
    data: Any  # the JSON; None where there is none
    complaint: str = ""

    def part(self, name: str) -> Any:
        """The choice is what is left once figures and words are taken out."""
        if name == "choice":
            return [self.exit_code, _without(self.data, WORDS | FIGURES)]
        return [*_only(self.data, WORDS if name == "words" else FIGURES)]

    def digest(self, name: str) -> str:
        """A short digest of one part."""
        text = json.dumps(self.part(name), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[: PARTS[name]]

    def pretty(self) -> str:
        """The JSON as people read it."""
        return self.complaint if self.data is None else json.dumps(self.data, indent=1)


@dataclass(frozen=True)
class Outcome:
    """A case that was answered, as it is recorded."""

    name: str
    input: str  # digest
    parts: Mapping[str, str]  # digests
    exit_code: int = 0
    seconds: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)  # answers and reasons


def answer(given: Given) -> Answer:
    """Run the command in this process."""
    case = _case(given)
    from tutti import cli  # noqa: PLC0415 - of the revision that this process is for

    result = CliRunner().invoke(cli.main, list(case.arguments), input=case.text)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return Answer(-1, None, f"{type(result.exception).__name__}: {result.exception}")
    try:
        return Answer(result.exit_code, json.loads(result.stdout), result.stderr)
    except ValueError:
        return Answer(result.exit_code, None, result.stderr)


def outcome(given: Given) -> Outcome:
    """Answer a case and keep the digests."""
    case = _case(given)
    begun = monotonic()
    found = answer(case)
    seconds = monotonic() - begun
    parts = {name: found.digest(name) for name in PARTS}
    return Outcome(case.name, case.digest, parts, found.exit_code, seconds, _seen(found.data))


def _case(given: Given) -> Case:
    return cases.by_name(given) if isinstance(given, str) else given


def _seen(data: Any) -> Counter[str]:
    """How often which answer and reason is in a plan."""
    if not isinstance(data, dict) or "proved" not in data:
        return Counter()
    seen = Counter({"proved": 1} if data["proved"] else {"not proved": 1})
    for gang in data["gangs"]:
        seen[gang["answer"]] += 1
        if gang["reason"]:
            seen[gang["reason"]] += 1
    return seen


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner, names) for key, inner in value.items() if key not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


def _only(value: Any, names: frozenset[str]) -> Iterator[Any]:
    """The values of these fields, wherever they are."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in names:
                yield inner
            else:
                yield from _only(inner, names)
    elif isinstance(value, list):
        for inner in value:
            yield from _only(inner, names)


@contextmanager
def workers(jobs: int, operator: Path = OPERATOR) -> Iterator[Map]:
    """Processes that run the code in this directory; what they give is a ``map`` in order."""
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin, (str(operator),)) as pool:
        try:
            yield lambda function, given: pool.map(function, given, chunksize=8)
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(operator: str) -> None:
    """Import ``tutti`` from there and from nowhere else."""
    sys.path.insert(0, operator)
    import tutti  # noqa: PLC0415 - only now it can be told from where

    if not Path(str(tutti.__file__)).is_relative_to(operator):
        raise ImportError(f"tutti comes from {tutti.__file__}, not from {operator}")
