"""The CEL selectors of device classes and requests, as Kubernetes evaluates them.

A tenant may write any expression, and the engine cannot be interrupted. So it runs in a process of
its own (``environment``) that has little memory and ends at an expression that takes too long. It
is started with the first expression, and ends with this process. An expression that it cannot
evaluate is unsupported, with the reason, and is not tried again.
Answers are cached by the expression and what it reads of a device, so equal devices are evaluated
once. As long as it is cached, an answer is always the same: that is why this is still a function.
"""

import atexit
import json
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from threading import Lock, Timer
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeAlias

from ...model.devices.inventory import Device

CPU_SECONDS = 1.0  # of the process for one request
MOST_BYTES = 160 * 2**20  # of memory that the process may have, a fifth of it for the engine
DEVICES_AT_ONCE = 100  # of one request
ANSWER_SECONDS = 10.0  # until a process that does not answer is killed, however busy the machine is
START_SECONDS = 1.0  # until a process that does not start is tried again
MOST_ANSWERS = 500_000  # that are cached
LEAST_ANSWERS = 256  # for which an expression counts, even if it has fewer

TOO_SLOW = f"selectors[].cel.expression, takes more than {CPU_SECONDS:g} s"
TOO_LARGE = f"selectors[].cel.expression, takes more than {MOST_BYTES >> 20} MiB"
FATAL = "selectors[].cel.expression, ends the process that evaluates it"
TOO_MANY = "selectors[].cel.expression, too many together with those of other claims"

_MOST_ANSWERED = 2**20  # bytes of an answer
_SHARED = "allowMultipleAllocations"
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from tutti.filters.devices import environment; environment.main()"
)


class Read(NamedTuple):
    """A field of a device that an expression reads; an empty name stands for a whole domain."""

    map: str  # driver, allowMultipleAllocations, attributes or capacity; empty if unclear
    domain: str = ""
    name: str = ""


# What an expression reads of a device: driver, allowMultipleAllocations, attributes and capacity.
Seen: TypeAlias = tuple[str, bool, Sequence[Any], Sequence[Any]]


class UnansweredError(Exception):
    """There is no answer now, though it may come later; the text says why, or is empty."""


@dataclass(slots=True)
class Selector:
    """What is known of a CEL expression."""

    problem: str  # why Tutti cannot evaluate it, in words
    reads: frozenset[Read] = frozenset()
    answers: dict[Seen, bool] = field(default_factory=dict)  # by what it reads of a device


class Evaluated(NamedTuple):
    """The expressions that are answered for all devices, or cannot be; why others are not."""

    problems: Mapping[str, str]  # by expression; empty if it is answered
    trouble: str = ""
    first_left: str = ""  # the first expression that is not answered


class _Engine:
    """The process that evaluates expressions, one at a time."""

    def __init__(self) -> None:
        self.has_expired = False  # it did not answer in time
        arguments = (Path(__file__).parents[3], CPU_SECONDS, MOST_BYTES)
        self._process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
            [sys.executable, "-P", "-c", _PROGRAM, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.end)
        if self.ask(b"") is None:
            self.end()
            raise OSError("it ended at once")

    def ask(self, request: bytes) -> bytes | None:
        """Send a request and return the answer; None if the process has ended instead."""
        timer = Timer(ANSWER_SECONDS, self._expire)
        timer.daemon = True
        timer.start()
        try:
            assert self._process.stdin and self._process.stdout  # noqa: S101, PT018 - they are pipes
            self._process.stdin.write(request)
            self._process.stdin.flush()
            answer = self._process.stdout.readline(_MOST_ANSWERED)
        except OSError:
            return None
        finally:
            timer.cancel()
        return answer if answer.endswith(b"\n") else None

    def _expire(self) -> None:
        self.has_expired = True
        self._process.kill()

    def end(self) -> int:
        """Let the process end; returns its exit code."""
        atexit.unregister(self.end)
        assert self._process.stdin and self._process.stdout  # noqa: S101, PT018 - they are pipes
        with suppress(OSError):  # what it has not read
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            return self._process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


_selectors: dict[str, Selector] = {}
_engines: list[_Engine] = []  # one, once it is needed
_lock = Lock()  # of the engine


def matches(expressions: Iterable[str], device: Device) -> bool:
    """Whether all expressions hold for the device; one that fails at it does not hold.

    kube-scheduler gives the whole pod up at an expression that fails at any device that it tries.

    Raises:
        UnansweredError: it is not cached, and the engine does not start or was killed.
    """
    return all(_holds(text, device) for text in expressions)


def selector(expression: str) -> Selector:
    """What is known of an expression, which may be that it cannot be evaluated."""
    return _selectors.get(expression) or _learn(expression, inf)


def evaluate(wanted: Collection[tuple[str, Collection[Device]]], seconds: float) -> Evaluated:
    """Fill the cache with the answers of each expression for its devices.

    After so many seconds, no more is asked. The expressions that come last are left out if the
    answers are more than are cached.
    """
    until, left = monotonic() + seconds, MOST_ANSWERS
    problems: dict[str, str] = {}
    trouble = first_left = ""
    for expression, devices in wanted:
        if left >= 0:
            try:
                known = _selectors.get(expression) or _learn(expression, until)
                new = _unknown(known, devices)
                left -= max(len(known.answers) + len(new), LEAST_ANSWERS)
                if left >= 0:
                    _extend(expression, known, new, until)
                    problems[expression] = known.problem
            except UnansweredError as why:
                trouble, first_left = trouble or str(why), first_left or expression
        if left < 0:
            problems[expression] = TOO_MANY
    _forget_others({text for text, _ in wanted if problems.get(text) != TOO_MANY})
    return Evaluated(problems, trouble, first_left)


def lacks_answers(expression: str, devices: Iterable[Device]) -> bool:
    """Whether the cache has no answer of an expression for one of these devices."""
    known = _selectors.get(expression)
    return known is None or bool(not known.problem and _unknown(known, devices))


def _holds(expression: str, device: Device) -> bool:
    known = selector(expression)
    seen = _seen(known.reads, device)
    if not known.problem and seen not in known.answers:
        _extend(expression, known, [seen], inf)
    return known.answers.get(seen, False)


def _learn(expression: str, until: float) -> Selector:
    why, reads, _ = _asked(expression, (), until)
    made = Selector(why, frozenset(Read(*read) for read in reads))
    _selectors[expression] = made
    return made


def _unknown(known: Selector, devices: Iterable[Device]) -> Sequence[Seen]:
    """What the expression reads of these devices, as far as there is no answer for it."""
    seen = dict.fromkeys(_seen(known.reads, device) for device in devices)
    return [own for own in seen if own not in known.answers]


def _extend(expression: str, known: Selector, new: Sequence[Seen], until: float) -> None:
    """Add the answers for what the expression reads of devices."""
    for at in range(0, len(new), DEVICES_AT_ONCE):
        part = new[at : at + DEVICES_AT_ONCE]
        if not known.problem:
            known.problem, _, holds = _asked(expression, part, until)
            known.answers.update(zip(part, holds, strict=False))
    if known.problem:
        known.answers = {}


def _asked(expression: str, seen: Sequence[Seen], until: float) -> tuple[str, Any, Any]:
    """The problem of an expression, what it reads, and whether it holds for each device.

    Two processes in a row must end at a request before it is to blame: the first may be worn out,
    or somebody else may have ended it. The expression is to blame, too, if neither answers in time.
    """
    request = f"{json.dumps([expression, seen])}\n".encode()
    code, has_expired = 0, True
    with _lock:
        if monotonic() >= until:
            raise UnansweredError
        for _ in range(2):  # also once time is over, or a slow machine would never get an answer
            answer = _started().ask(request)
            if answer is not None:
                why, reads, holds = json.loads(answer)
                return why, reads, holds
            engine = _engines.pop()
            code, has_expired = engine.end(), has_expired and engine.has_expired
            if code == -signal.SIGPROF:
                return TOO_SLOW, (), ()
    if has_expired:
        return TOO_SLOW, (), ()
    if code == -signal.SIGKILL:
        raise UnansweredError("the process that evaluates them was killed")
    return TOO_LARGE if code in (1, -signal.SIGABRT) else FATAL, (), ()


def _started() -> _Engine:
    if not _engines:
        try:
            _engines.append(_Engine())
        except OSError as error:
            sleep(START_SECONDS)
            raise UnansweredError(f"no process starts that evaluates them ({error})") from error
    return _engines[0]


def _forget_others(expressions: Collection[str]) -> None:
    """Keep only these expressions, if all are too many."""
    counts = (max(len(known.answers), LEAST_ANSWERS) for known in [*_selectors.values()])
    if sum(counts) > MOST_ANSWERS:
        for expression in _selectors.keys() - expressions:
            del _selectors[expression]


def _seen(reads: Collection[Read], device: Device) -> Seen:
    """What an expression reads of a device."""
    return (
        device.id.driver if ("driver", "", "") in reads else "",
        (_SHARED, "", "") in reads and _SHARED in device.unsupported,
        tuple(
            of if type(of.value) is str else (*of, type(of.value).__name__)  # True is not 1
            for of in device.attributes
            if ("attributes", of.domain, of.name) in reads or ("attributes", of.domain, "") in reads
        ),
        tuple(
            of
            for of in device.capacity
            if ("capacity", of.domain, of.name) in reads or ("capacity", of.domain, "") in reads
        ),
    )
