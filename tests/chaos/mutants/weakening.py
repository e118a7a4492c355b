"""One check less: every way to drop a single check from the source of a module.

Separate from the catalogue, whose mutants are few and named: these are found, so that a check that
is added tomorrow has its mutants the same day.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Weakened(NamedTuple):
    """The source with one check less, and what was dropped, as it was written."""

    name: str
    source: str


def weakened(source: str) -> Iterator[Weakened]:
    """The module without one of its statements that find or count, or one of its conditions."""
    tree = ast.parse(source)
    for function, place in _places(tree):
        for name, changed in _without(tree, place):
            yield Weakened(f"{function}: {name}", changed)


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """All that a function consists of, by its name."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for place in ast.walk(function):
                yield function.name, place


def _without(tree: ast.Module, place: ast.AST) -> Iterator[tuple[str, str]]:
    """What is there to drop at one place."""
    if isinstance(place, ast.BoolOp):
        for operand in place.values:
            rest = [value for value in place.values if value is not operand]
            yield f"no {ast.unparse(operand)}", _replaced(tree, place, {"values": rest})
    elif isinstance(place, ast.comprehension):
        for condition in place.ifs:
            rest = [other for other in place.ifs if other is not condition]
            yield f"no if {ast.unparse(condition)}", _replaced(tree, place, {"ifs": rest})
    elif isinstance(place, ast.If):
        yield (
            f"never {ast.unparse(place.test)}",
            _replaced(tree, place, {"test": ast.Constant(value=False)}),
        )
    elif isinstance(place, ast.Expr) and isinstance(place.value, ast.Call):
        nothing: ast.expr = ast.Constant(value=None)
        yield f"no {ast.unparse(place)}", _replaced(tree, place, {"value": nothing})
    elif isinstance(place, ast.Expr) and isinstance(place.value, ast.Yield | ast.YieldFrom):
        nothing = ast.YieldFrom(ast.Tuple([], ast.Load()))
        yield f"no {ast.unparse(place)}", _replaced(tree, place, {"value": nothing})


def _replaced(tree: ast.Module, place: ast.AST, fields: dict[str, object]) -> str:
    """The source with some fields of one place changed; the tree stays as it is."""
    before = {field: getattr(place, field) for field in fields}
    try:
        for field, value in fields.items():
            setattr(place, field, value)
        return ast.unparse(tree)
    finally:
        for field, value in before.items():
            setattr(place, field, value)
