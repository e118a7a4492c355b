"""What Tutti depends on, by name, as the installed packages say it of one another."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PROJECT = Path(__file__).parents[3]
# The image: this Python, that of its Debian, and these extras beside what is always there.
PYTHON = "3.13"
EXTRAS = ("highs",)


def of_the_image() -> Sequence[Requirement]:
    """What the image asks for by name, as pyproject.toml has it."""
    project = _pyproject()["project"]
    extras = [each for name in EXTRAS for each in project["optional-dependencies"][name]]
    return [Requirement(each) for each in [*project["dependencies"], *extras]]


def of_the_build() -> Sequence[Requirement]:
    """What the wheel is built with."""
    return [Requirement(each) for each in _pyproject()["build-system"]["requires"]]


def closure(roots: Iterable[Requirement], machine: str) -> Mapping[str, Sequence[str]]:
    """Everything that these need on the image's Python, by name; who needs it, "" for us."""
    environment = {
        **{name: str(value) for name, value in default_environment().items()},
        "python_version": PYTHON,
        "python_full_version": f"{PYTHON}.0",
        "platform_machine": machine,
    }
    needed: dict[str, set[str]] = {}
    waiting = [("", root) for root in roots]
    asked = set()
    while waiting:
        by, requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        needed.setdefault(name, set()).add(by)
        for extra in ("", *requirement.extras):
            if (name, extra) in asked:
                continue
            asked.add((name, extra))
            for text in metadata.requires(name) or ():
                more = Requirement(text)
                if more.marker is None or more.marker.evaluate({**environment, "extra": extra}):
                    waiting.append((name, more))
    return {name: sorted(by) for name, by in sorted(needed.items())}


def _pyproject() -> dict[str, dict[str, dict[str, list[str]]]]:
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())
