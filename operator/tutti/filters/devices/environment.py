"""The CEL engine, in the environment that Kubernetes gives to selectors of devices.

It runs in a process of its own (``selectors``), so an expression that takes too much time or memory
ends nothing else. Each line that is read is a request, and is answered by a line.
Sources: ``cel`` of k8s.io/dynamic-resource-allocation; the Quantity and Semver libraries of
k8s.io/apiserver; semver 2.0.0, section 11.
"""

import json
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache, partial
from typing import IO, Any, NamedTuple

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from .selectors import Read, Seen
from .values import (
    INT64,
    QUANTITY,
    SEMVER,
    Number,
    Value,
    added,
    normalized,
    number,
    number_of,
    quantity,
    value_of,
    version,
    version_parts,
)

_OURS = "tutti_"  # before the names of functions that replace those of the engine
_REPLACED = re.compile(r"\b(?:substring|bool|int|getMilliseconds)(?=\s*\()")
_UNKNOWN = re.compile(r"undeclared reference to '([^']*)'")
# String literals and comments are left out before the fields of the device are looked for. The
# engine takes no raw string that ends with a backslash.
_NO_CODE = re.compile(
    r"""//[^\n]*
      | "{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}
      | "(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""",
    re.DOTALL | re.VERBOSE,
)
_DEVICE = re.compile(r"(?<![\w.])device\b")
_DOMAIN = r"[A-Za-z0-9._-]+"
_FIELD = re.compile(
    rf"""\s*\.\s*(?:
        (?P<plain>driver|allowMultipleAllocations)\b
      | (?P<map>attributes|capacity)
        \s*\[\s*\??\s*(?P<quote>["'])(?P<domain>{_DOMAIN})(?P=quote)\s*\]
        (?:\s*\.\s*\??\s*(?P<name>[A-Za-z_]\w*)\b(?!\s*\())?
    )""",
    re.VERBOSE,
)
_BARE: Seen = ("", False, (), ())
_WHOLE = re.compile(r"[+-]?[0-9]+")
_TRUTHS = {"1", "t", "T", "TRUE", "true", "True"}
_FALSEHOODS = {"0", "f", "F", "FALSE", "false", "False"}


class Program(NamedTuple):
    """A compiled expression, or why it cannot be evaluated, in words."""

    problem: str
    reads: Sequence[Read] = ()
    compiled: Any = None


def main() -> None:
    """Answer the requests on standard input, each within so many seconds of CPU time.

    The arguments are these seconds, and the bytes that this process may have; it ends at the limit.
    """
    seconds, most = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with its parent
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    serve(sys.stdin, sys.stdout, seconds)


def serve(requests: Iterable[str], answers: IO[str], seconds: float) -> None:
    """Write an empty line once the engine is loaded; then answer each request.

    A request is an expression, and what it reads of some devices (``selectors.Seen``). The answer
    has the problem of the expression, what it reads, and for each device whether it holds.
    """
    _environment()
    print(file=answers, flush=True)
    for line in requests:
        expression, devices = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)  # the kernel ends the process
        program = _program(expression)
        holds = [] if program.problem else [_holds(program, device) for device in devices]
        answer = json.dumps([program.problem, program.reads, holds])
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(answer, file=answers, flush=True)


@lru_cache(maxsize=1)
def _program(expression: str) -> Program:
    reads = sorted({*_reads(expression)})
    if not all(read.map for read in reads):
        return Program("an expression that uses device without naming a domain")
    try:
        compiled = _environment().compile(_replaced(expression))
    except (RuntimeError, ValueError) as failure:  # the engine has no error of its own
        unknown = _UNKNOWN.search(str(failure))
        name = f"the CEL function {unknown[1]}" if unknown else "a CEL expression not compiled"
        return Program(name)
    try:
        compiled.eval(data={"device": _device(reads, _BARE)})
    except RuntimeError:  # too many iterations, whatever the device has
        return Program("a CEL expression that loops too often")
    return Program("", reads, compiled)


def _holds(program: Program, device: Seen) -> bool:
    try:
        made = program.compiled.eval(data={"device": _device(program.reads, device)})
    except (RuntimeError, ValueError):  # too many iterations; a version that is none
        return False
    return made.plain_value() is True


def _replaced(expression: str) -> str:
    """The expression with our functions in place of those that the engine has otherwise."""
    made, end = "", 0
    for match in _REPLACED.finditer(_code(expression)):
        made += f"{expression[end : match.start()]}{_OURS}"
        end = match.start()
    return made + expression[end:]


def _reads(expression: str) -> Iterator[Read]:
    """The fields of the device that an expression reads; one without a map if that is unclear."""
    for at in _DEVICE.finditer(_code(expression)):
        field = _FIELD.match(expression, at.end())
        if field is None:
            yield Read("")
        elif field["plain"]:
            yield Read(field["plain"])
        else:
            yield Read(field["map"], field["domain"], field["name"] or "")


def _code(expression: str) -> str:
    """The expression with blanks in place of its string literals and comments."""
    return _NO_CODE.sub(lambda match: " " * len(match[0]), expression)


def _device(reads: Iterable[Read], device: Seen) -> Mapping[str, Any]:
    """The device as expressions see it; a domain that they name and it lacks is an empty map."""
    driver, is_shared, own, amounts = device
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}
    for read in reads:
        if read.domain:
            (attributes if read.map == "attributes" else capacity).setdefault(read.domain, {})
    for domain, name, value, is_version, *_ in own:
        attributes.setdefault(domain, {})[name] = version(str(value)) if is_version else value
    for domain, name, amount in amounts:
        capacity.setdefault(domain, {})[name] = quantity(amount)
    return {
        "driver": driver,
        "allowMultipleAllocations": is_shared,
        "attributes": attributes,
        "capacity": capacity,
    }


@lru_cache(maxsize=1)
def _environment() -> cel.Env:
    """An environment with one variable, ``device``."""
    libraries = [ExtStrings(), ExtBindings(), ExtOptional()]
    return cel.NewEnv(
        variables={"device": cel.Type.DYN}, extensions=libraries, functions=[*_functions()]
    )


def compared(first: Value, second: Value) -> int:
    """-1, 0 or 1: how two quantities or two versions compare; raises ``ValueError``."""
    one, other = _order(first, second), _order(second, first)
    return int(one > other) - int(one < other)


def _order(value: Value, beside: Value) -> Any:
    if QUANTITY in value and QUANTITY in beside:
        return Fraction(value[QUANTITY])
    if SEMVER in value and SEMVER in beside:
        return _precedence(value[SEMVER])
    raise ValueError("only quantities, or only semantic versions, can be compared")


def _precedence(text: str) -> tuple[Any, ...]:
    """The sort key of a version; the build counts for nothing."""
    major, minor, patch, words, _ = version_parts(text)
    before = [
        (0, int(word), "") if word.isdigit() else (1, 0, word) for word in (words or "").split(".")
    ]
    return int(major), int(minor), int(patch), words is None, before if words else []


def _integer(value: Value) -> int:
    if not _is_integer(value):
        raise ValueError("it is no whole number of 64 bits")
    return number_of(value).value.numerator


def _is_integer(value: Value) -> bool:
    kept = number_of(value)
    return kept.is_small and kept.power >= 0 and kept.value.numerator in INT64


def _float(value: Value) -> float:
    """With the rounding of kube-scheduler, whose digits are a float before their power counts."""
    kept = number_of(value)
    digits = float(kept.value / Fraction(10) ** kept.power)
    return digits * float(f"1e{kept.power}") if kept.power else digits


def _sum(first: Value, second: Value | int, sign: int = 1) -> Value:
    if isinstance(second, int):
        other = Number(Fraction(second), 0, is_small=True)
    else:
        other = number_of(second)
    return value_of(added(number_of(first), other._replace(value=sign * other.value)))


def _sign(value: Value) -> int:
    amount = number_of(value).value
    return (amount > 0) - (amount < 0)


def _version(text: str, normalize: object) -> Value:
    return version(normalized(text) if normalize else text)


def _is_version(text: str, *normalize: object) -> bool:
    try:
        _version(text, any(normalize))
    except ValueError:
        return False
    return True


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError("it has no such substring")
    return text[start:end]


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns; the engine would take a lack of memory for an error of CEL."""
    try:
        return function(*arguments)
    except MemoryError:
        signal.raise_signal(signal.SIGABRT)
        raise


def _bool(text: str) -> bool:
    if text not in _TRUTHS | _FALSEHOODS:
        raise ValueError(f"{text!r} is no bool")
    return text in _TRUTHS


def _int(value: float | str | datetime) -> int:
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError(f"{value!r} is no int")
        whole = int(value)
    else:
        whole = int(value.timestamp() // 1 if isinstance(value, datetime) else value)
    if whole not in INT64 or (isinstance(value, float) and whole == INT64[0]):  # as in cel-go
        raise ValueError("it is no int of 64 bits")
    return whole


def _functions() -> Iterator[cel.FunctionDecl]:
    kind = cel.Type
    text, whole, truth, value = kind.STRING, kind.INT, kind.BOOL, kind.MAP

    def of(name: str, *overloads: tuple[list[cel.Type], cel.Type, Callable[..., Any]]) -> Any:
        return declared(name, overloads, [types[0] == value for types, _, _ in overloads])

    def declared(name: str, overloads: Any, members: list[bool]) -> Any:
        made = [
            cel.Overload(
                f"tutti_{name}_{i}",
                return_type=result,
                parameters=parameters,
                is_member=is_member,
                impl=partial(_called, implementation),
            )
            for i, ((parameters, result, implementation), is_member) in enumerate(
                zip(overloads, members, strict=True)
            )
        ]
        return cel.FunctionDecl(name, made)

    yield of("quantity", ([text], value, quantity))
    yield of("isQuantity", ([text], truth, lambda t: number(t) is not None))
    yield of("semver", ([text], value, version), ([text, truth], value, _version))
    yield of("isSemver", ([text], truth, _is_version), ([text, truth], truth, _is_version))
    yield of("compareTo", ([value, value], whole, compared))
    yield of("isLessThan", ([value, value], truth, lambda a, b: compared(a, b) < 0))
    yield of("isGreaterThan", ([value, value], truth, lambda a, b: compared(a, b) > 0))
    yield declared("sign", [([value], whole, _sign)], [False])  # as Kubernetes declares it
    yield of("asInteger", ([value], whole, _integer))
    yield of("isInteger", ([value], truth, _is_integer))
    yield of("asApproximateFloat", ([value], kind.DOUBLE, _float))
    yield of("add", ([value, value], value, _sum), ([value, whole], value, _sum))
    yield of(
        "sub",
        ([value, value], value, lambda a, b: _sum(a, b, -1)),
        ([value, whole], value, lambda a, b: _sum(a, b, -1)),
    )
    for i, name in enumerate(("major", "minor", "patch")):
        yield of(name, ([value], whole, lambda v, i=i: int(version_parts(v.get(SEMVER, ""))[i])))
    substring = [([text, whole], text, _substring), ([text, whole, whole], text, _substring)]
    yield declared(f"{_OURS}substring", substring, [True, True])
    yield of(f"{_OURS}bool", ([text], truth, _bool), ([truth], truth, lambda t: t))
    numbers = (whole, kind.UINT, kind.DOUBLE, text, kind.TIMESTAMP)  # no bool, as in cel-go
    yield of(f"{_OURS}int", *(([each], whole, _int) for each in numbers))
    milliseconds = [
        ([kind.DURATION], whole, lambda of: int(of / timedelta(milliseconds=1))),  # towards zero
        ([kind.TIMESTAMP], whole, lambda of: of.microsecond // 1000),
        ([kind.TIMESTAMP, text], whole, lambda of, _zone: of.microsecond // 1000),
    ]
    yield declared(f"{_OURS}getMilliseconds", milliseconds, [True, True, True])
