"""The CEL selectors of device classes and requests, in the environment that Kubernetes gives them.

Answers are cached by the expression and the fields of the device that it reads, so equal devices
are evaluated once. A function that the engine lacks makes the expression unsupported, by name. Of
what is compiled, the latest used is kept: the engine takes much memory for a long expression.
Sources: ``cel`` of k8s.io/dynamic-resource-allocation and the CEL libraries of k8s.io/apiserver.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from ...model.devices.inventory import Device, DeviceId
from .values import quantity, version

MOST_CHARACTERS = 524_288  # of the expressions that are kept compiled
MOST_EXPRESSIONS = 4096  # whose answers are cached
MOST_ANSWERS = 262_144  # that are cached for one expression

# String literals and comments are left out before the fields of the device are looked for.
_DOMAIN = r"[A-Za-z0-9._-]+"
_STRING = re.compile(
    r"""[rRbB]{0,2}(?:"{3}.*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", re.DOTALL
)
_COMMENT = re.compile(r"//[^\n]*")
_DEVICE = re.compile(r"(?<![\w.])device\b")
_FIELD = re.compile(
    rf"""\s*\.\s*(?:
        (?P<plain>driver|allowMultipleAllocations)\b
      | (?P<map>attributes|capacity)
        \s*\[\s*\??\s*(?P<quote>["'])(?P<domain>{_DOMAIN})(?P=quote)\s*\]
        (?:\s*\.\s*\??\s*(?P<name>[A-Za-z_]\w*)\b(?!\s*\())?
    )""",
    re.VERBOSE,
)
_REPLACED = re.compile(r"\b(?:substring|replace|split|join|bool|int|getMilliseconds)(?=\s*\()")
_BARE = Device(DeviceId("", "", ""))
_SHARED = "allowMultipleAllocations"
_UNKNOWN = re.compile(r"undeclared reference to '([^']*)'")


class Read(NamedTuple):
    """A field of a device that an expression reads; an empty name stands for a whole domain."""

    map: str  # driver, allowMultipleAllocations, attributes or capacity; empty if unclear
    domain: str = ""
    name: str = ""


class Selector(NamedTuple):
    """A CEL expression, or why Tutti cannot evaluate it, in words."""

    expression: str
    problem: str
    reads: tuple[Read, ...] = ()
    evaluate: Callable[[Mapping[str, Any]], bool] | None = None


Answers: TypeAlias = dict[Hashable, bool]
_answers: dict[str, Answers] = {}
_selectors: OrderedDict[str, Selector] = OrderedDict()  # the latest used at the end


def problem(expressions: Iterable[str]) -> str:
    """Why Tutti cannot evaluate one of these expressions, in words; empty if it can."""
    return next((why for text in expressions if (why := selector(text).problem)), "")


def matches(expressions: Iterable[str], device: Device) -> bool:
    """Whether all expressions hold for the device; one that fails at it does not hold.

    kube-scheduler gives the whole pod up at an expression that fails at any device that it tries.
    """
    return all(_answer(selector(text), device) for text in expressions)


def evaluate(expressions: Iterable[str], devices: Collection[Device]) -> Mapping[str, str]:
    """Fill the cache with the answers of these expressions for these devices.

    Returns why Tutti cannot evaluate each of the expressions, in words; empty if it can.
    """
    problems = {}
    for text in expressions:
        compiled = selector(text)
        problems[text] = compiled.problem
        for device in devices:
            _answer(compiled, device)
    return problems


def selector(expression: str) -> Selector:
    """The compiled selector of a CEL expression."""
    try:
        _selectors.move_to_end(expression)
        return _selectors[expression]
    except KeyError:  # another thread may have dropped it meanwhile
        made = _selectors[expression] = _compiled(expression)
    texts = tuple(_selectors)
    excess = sum(map(len, texts)) - MOST_CHARACTERS
    for text in texts:
        if excess <= 0:
            break
        _selectors.pop(text, None)
        excess -= len(text)
    return made


def _compiled(expression: str) -> Selector:
    reads = tuple(sorted(set(_reads(expression)), key=str))
    if not all(read.map for read in reads):
        return Selector(expression, "an expression that uses device without naming a domain")
    try:
        program = _environment().compile(_replaced(expression))
    except RuntimeError as failure:  # the engine has no error of its own
        unknown = _UNKNOWN.search(str(failure))
        name = f"the CEL function {unknown[1]}" if unknown else "a CEL expression not compiled"
        return Selector(expression, name)
    try:
        program.eval(data={"device": _device(reads, _BARE)})
    except RuntimeError:  # too many iterations, whatever the device has
        return Selector(expression, "a CEL expression that loops too often")

    def evaluate(device: Mapping[str, Any]) -> bool:
        try:
            answer: object = program.eval(data={"device": device}).plain_value()
        except RuntimeError:  # too many iterations for what this device has
            return False
        return answer is True

    return Selector(expression, "", reads, evaluate)


@lru_cache(maxsize=1)
def _environment() -> Any:
    from .environment import environment  # noqa: PLC0415 - only selectors need its engine

    return environment()


def _replaced(expression: str) -> str:
    """The expression with our functions in place of those that the engine has otherwise."""
    made, end = "", 0
    for found in _REPLACED.finditer(_code(expression)):
        made += f"{expression[end : found.start()]}tutti_"
        end = found.start()
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
    code = _STRING.sub(lambda found: " " * len(found[0]), expression)
    return _COMMENT.sub(lambda found: " " * len(found[0]), code)


def _answer(selector: Selector, device: Device) -> bool:
    if selector.evaluate is None:
        return False
    answers = _answers.setdefault(selector.expression, {})
    values = tuple(_value(read, device) for read in selector.reads)
    if values not in answers:
        if len(answers) >= MOST_ANSWERS or len(_answers) > MOST_EXPRESSIONS:
            _answers.clear()
            answers = _answers.setdefault(selector.expression, {})
        try:
            seen = _device(selector.reads, device)
        except ValueError:  # a version or a quantity that is none, although it says so
            answers[values] = False
        else:
            answers[values] = selector.evaluate(seen)
    return answers[values]


def _value(read: Read, device: Device) -> Hashable:
    """What an expression reads of a device, for the cache."""
    if read.map == "driver":
        return device.id.driver
    if read.map == _SHARED:
        return _SHARED in device.unsupported
    values = device.attributes if read.map == "attributes" else device.capacity
    return tuple(
        (*value[1:], type(value[2]))  # True is not 1
        for value in values
        if value.domain == read.domain and read.name in ("", value.name)
    )


def _device(reads: Iterable[Read], device: Device) -> Mapping[str, Any]:
    """The device as expressions see it; a domain that they name and it lacks is an empty map."""
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, dict[str, Any]] = {}
    for read in reads:
        if read.domain:
            (attributes if read.map == "attributes" else capacity).setdefault(read.domain, {})
    for attribute in device.attributes:
        value = version(str(attribute.value)) if attribute.is_version else attribute.value
        attributes.setdefault(attribute.domain, {})[attribute.name] = value
    for amount in device.capacity:
        capacity.setdefault(amount.domain, {})[amount.name] = quantity(amount.quantity)
    return {
        "driver": device.id.driver,
        _SHARED: _SHARED in device.unsupported,
        "attributes": attributes,
        "capacity": capacity,
    }
