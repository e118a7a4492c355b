"""The examples of docs/spark.md, as a reader would copy them, for the tests that execute them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ..spark_sizes import environment
from ..spark_sizes.comparing import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..spark_sizes.asked import Door
    from ..spark_sizes.pins import Pin

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "spark.md"
_BLOCK = r"(?ms)^```{}\n(.*?)^```"
# What the page's reader has set up for all applications, in spark-defaults.conf.
_OURS = ("spark.app.name", "spark.kubernetes.container.image")
SMALL = {
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.kubernetes.submission.waitAppCompletion": "false",
    # No task starts before all executors have come: each has its part.
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
}


def commands() -> list[str]:
    """All commands of the page, one that goes on over several lines as one."""
    text = "\n".join(re.findall(_BLOCK.format("console"), PAGE.read_text()))
    lines = text.replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def command(*words: str) -> str:
    """The one command of the page with all of these words."""
    (found,) = [line for line in commands() if all(word in line for word in words)]
    return found


def manifest(kind: str) -> dict[str, Any]:
    """The one manifest of the page of this kind."""
    loaded = [yaml.safe_load(text) for text in re.findall(_BLOCK.format("yaml"), PAGE.read_text())]
    (found,) = [each for each in loaded if each["kind"] == kind]
    return dict(found)


@dataclass(frozen=True, slots=True)
class Shell:
    """Where a person's commands run: with a Spark on the PATH, and defaults for this cluster."""

    variables: Mapping[str, str]
    folder: Path

    @classmethod
    def opened(cls, pin: Pin, door: Door, folder: Path, **more: str) -> Shell:
        """With this Spark; ``more`` are variables of the shell."""
        conf = folder / f"conf-{pin.name}"
        conf.mkdir(parents=True)
        given = {name: value for name, value in door.properties.items() if name not in _OURS}
        defaults = {**given, **SMALL}
        (conf / "spark-defaults.conf").write_text(written(defaults))
        server = given["spark.master"].removeprefix("k8s://")
        here = environment.variables(environment.installed(pin))
        return cls({**here, "SPARK_CONF_DIR": str(conf), "API_SERVER": server, **more}, folder)

    def run(self, line: str) -> str:
        """What a command prints; it must end well."""
        done = self.begin(line, stdin=subprocess.DEVNULL)
        said, _ = done.communicate(timeout=180)
        if done.returncode:
            raise AssertionError(f"{line}\n{said[-3000:]}")
        return said

    def begin(self, line: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """Start a command; the caller ends it."""
        return subprocess.Popen(
            ["bash", "-euc", line],
            env=self.variables,
            cwd=self.folder,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
