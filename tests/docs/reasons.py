"""Every reason that the operator can give: in conditions, in `PodScheduled`, in Events.

Read from the source: the enums, and literals where a reason is passed.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from tutti.gang.health import Cause
from tutti.model.decisions import Reason
from tutti.queues.tree import Fault
from tutti.reporting.queue_status import Why

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = Path(__file__).parents[2] / "operator" / "tutti"
# Of Queues, those that people ask about; the others say that all is well.
_OF_QUEUES = (Why.HELD, Why.DRAINING, Why.DELETING, Why.BEYOND_LIMIT)
# What takes a reason, and at which place it stands where no name is given.
TAKE_A_REASON: Mapping[str, int] = {
    "GangCondition": 2,
    "PodCondition": 1,
    "PodNotice": 1,
    "Event": 1,
    "Why": 0,
    "Released": 3,
    "fence": 2,
}


def known() -> frozenset[str]:
    """All of them."""
    found = {*Reason, *Cause, *Fault, *_OF_QUEUES}
    for path in SOURCE.rglob("*.py"):
        if "cli" not in path.relative_to(SOURCE).parts:
            found.update(_in(ast.parse(path.read_text())))
    return frozenset(map(str, found))


def _in(module: ast.Module) -> Iterator[str]:
    """The words that one module passes as a reason, or takes where none is passed."""
    constants = {
        target.id: at.value.value
        for at in module.body
        if isinstance(at, ast.Assign) and isinstance(at.value, ast.Constant)
        for target in at.targets
        if isinstance(target, ast.Name) and isinstance(at.value.value, str)
    }
    for at in ast.walk(module):
        if isinstance(at, ast.Call):
            for given in _passed(at):
                yield from _words(given, constants)
        elif isinstance(at, ast.AnnAssign) and _name(at.target) == "reason" and at.value:
            yield from _words(at.value, constants)
        elif isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef):
            for given in _of_function(at):
                yield from _words(given, constants)


def _passed(call: ast.Call) -> Iterator[ast.expr]:
    place = TAKE_A_REASON.get(_name(call.func))
    if place is None:
        return
    yield from call.args[place : place + 1]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "reason")


def _of_function(at: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """What it takes for a reason where none is passed; what it answers, if it answers a reason."""
    yield from (default for argument, default in _defaults(at.args) if argument == "reason")
    if at.name == "_pod_reason":
        answers = (inner for inner in ast.walk(at) if isinstance(inner, ast.Return))
        yield from (answer.value for answer in answers if answer.value is not None)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    usual = [*arguments.posonlyargs, *arguments.args]
    last = usual[len(usual) - len(arguments.defaults) :]
    yield from ((one.arg, value) for one, value in zip(last, arguments.defaults, strict=True))
    for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            yield one.arg, value


def _words(expr: ast.expr, constants: Mapping[str, str]) -> Iterator[str]:
    """What an expression may say, as far as it says it here."""
    match expr:
        case ast.Constant(value=str(word)) if word:
            yield word
        case ast.Name(id=name) if name in constants:
            yield constants[name]
        case ast.IfExp(body=one, orelse=other):
            yield from _words(one, constants)
            yield from _words(other, constants)


def _name(at: ast.expr) -> str:
    return at.attr if isinstance(at, ast.Attribute) else at.id if isinstance(at, ast.Name) else ""
