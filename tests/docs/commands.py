"""Every command that the README and the docs show, and which test executes it.

A command is a line with `$ ` in a block of kind `console`; what follows is what it prints. Each is
of one kind, and `tests/docs/test_commands.py` fails where one is of none.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from .reference import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BLOCK = re.compile(r"(?ms)^```console\n(.*?)^```")


class Kind(StrEnum):
    """Who executes a command."""

    OFFLINE = "offline"  # tests/docs/test_commands.py, and compares what it prints
    LIVE = "live"  # tests/api/chart/test_documented.py, page by page, on a real API server
    ELSEWHERE = "elsewhere"  # the test that ELSEWHERE names
    MAKE = "make"  # by its dry run alone; MAKE says what runs the same thing, or why nothing does
    NOT_RUN = "not run"  # NOT_RUN says why


# Pages, and parts of them, that a test of their own executes.
ELSEWHERE: Mapping[tuple[str, str], str] = {
    ("docs/first-week.md", ""): "tests/api/chart/test_first_week.py",
    ("docs/spark.md", "spark-submit "): "tests/conformance/spark_jobs/examples.py",
    ("docs/spark.md", "pyspark "): "tests/conformance/spark_jobs/examples.py",
    ("docs/console.md", ""): "tests/e2e/test_console.py",
    ("docs/operations.md", "python -m tests.bench.sizing"): "tests/api/test_sizing.py",
}
# Targets of make: what runs the same, or why nothing runs all of it.
MAKE: Mapping[str, str] = {
    "bench": "takes an hour; tests/unit/test_planbench.py runs its parts",
    "bench-e2e": "takes hours; tests/unit/test_bench.py runs its parts",
    "conformance": "takes hours; tests/conformance and tests/api have samples",
    "control-plane": "builds for minutes; the fixtures of tests/api use what it builds",
    "demo": "tests/e2e/test_demo.py",
    "docs": "tests/docs/test_pages.py",
    "down": "tests/api/test_control_plane.py",
    "image-check": ".ci/run, where it runs as root",
    "lint": ".ci/run",
    "load": "tests/e2e/test_load.py",
    "release": "tests/e2e/test_release.py builds one, twice",
    "soak": "takes hours; tests/e2e/test_faults.py and test_long_life.py run its parts",
    "test": ".ci/run",
    "test-fast": "a part of `make test`",
    "up": "tests/api/test_control_plane.py",
    "venv": "a part of every other target",
}
# What cannot be typed as it stands.
NOT_RUN: Mapping[str, str] = {
    "docker build": "needs a Docker engine; tests/packaging/image carries the Dockerfile out",
    ".venv/bin/python -m tests.conformance.console.speed": (
        "measures for minutes, on a machine that does nothing else; tests/e2e/test_console.py "
        "drives the same page"
    ),
    "kubectl krew install": "krew is not built; tests/packaging/krew unpacks as it does",
}


class Command(NamedTuple):
    """One command as it is typed, and what the page says that it prints."""

    page: str
    text: str
    printed: str

    @property
    def line(self) -> str:
        """The command without its remark."""
        return re.sub(r"\s+# .*$", "", self.text)

    @property
    def target(self) -> str:
        """The target of make; empty if it is another command."""
        found = re.search(r"\bmake (?:-s )?([a-z0-9-]+)", self.line)
        return found.group(1) if found else ""

    @property
    def elsewhere(self) -> str:
        """The test of its own that executes it; empty if there is none."""
        tests = (
            test
            for (page, begin), test in ELSEWHERE.items()
            if page == self.page and self.line.startswith(begin)
        )
        return next(tests, "")

    @property
    def kinds(self) -> Sequence[Kind]:
        """What it is; sound if that is one thing."""
        is_offline = bool(re.match(r"tutti (plan|explain) .*\bdocs/", self.line))
        is_not_run = any(self.line.startswith(begin) for begin in NOT_RUN)
        found = {
            Kind.OFFLINE: is_offline,
            Kind.ELSEWHERE: bool(self.elsewhere),
            Kind.MAKE: bool(self.target),
            Kind.NOT_RUN: is_not_run,
        }
        return [kind for kind, is_so in found.items() if is_so] or [Kind.LIVE]


def pages() -> Sequence[str]:
    """The README, CONTRIBUTING and every page, from the root of the checkout."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def of(page: str) -> Iterator[Command]:
    """The commands of a page, in their order."""
    for block in BLOCK.findall((ROOT / page).read_text()):
        joined = block.replace("\\\n", "")
        for part in re.split(r"(?m)^\$ ", joined)[1:]:
            text, _, printed = part.partition("\n")
            yield Command(page, text, printed)


def every() -> Sequence[Command]:
    """All commands of all pages."""
    return [command for page in pages() for command in of(page)]
