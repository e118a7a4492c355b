"""``python -m tests.chaos.mutants.surviving MODULE TESTS…``: print mutants that tests let pass.

A process of its own: the module is changed in place, a hundred times, and its tests are collected
once. They are plain functions, so they are called as such.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .weakening import weakened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import ModuleType


class Loop:
    """A run of pytest that runs its tests against every mutant of a module."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._path = Path(str(module.__file__))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests once as they are, where all must pass, and once for each mutant."""
        tests = [_called(item) for item in session.items]
        if not all(map(_passes, tests)):
            raise pytest.UsageError("the tests fail without a mutant")
        for name in self._survivors(tests):
            print(f"survives {name}", flush=True)
        return True

    def _survivors(self, tests: Sequence[Callable[[], object]]) -> Iterator[str]:
        for mutant in weakened(self._path.read_text()):
            exec(compile(mutant.source, mutant.name, "exec"), self._module.__dict__)
            if all(map(_passes, tests)):
                yield mutant.name


def _called(item: pytest.Item) -> Callable[[], object]:
    if not isinstance(item, pytest.Function):
        raise pytest.UsageError(f"{item.nodeid} is no function")
    callspec = getattr(item, "callspec", None)
    return partial(item.obj, **(callspec.params if callspec is not None else {}))


def _passes(test: Callable[[], object]) -> bool:
    try:
        test()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - whatever a test may raise
        return False
    return True


def main(module: str, *tests: str) -> int:
    """Print the survivors; pytest's exit code."""
    return pytest.main(
        ["-q", "-s", "-p", "no:cacheprovider", *tests],
        plugins=[Loop(importlib.import_module(module))],
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
