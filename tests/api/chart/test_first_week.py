"""The commands of docs/first-week.md, in their order, on a real API server by the real Helm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.harness.operator_process import container_environment
from tutti import __version__

from .places import NAMESPACE, ROOT

if TYPE_CHECKING:
    from .places import Place

PAGE = ROOT / "docs" / "first-week.md"
WAIT = " --wait --timeout=60s"


def _told(shell: Place) -> tuple[str, str, str]:
    """What the replicas are told of mode and cap, and the image that they run."""
    (pod, *_) = shell.pods()
    variables = container_environment(pod["spec"])
    (container,) = pod["spec"]["containers"]
    return variables["TUTTI_MODE"], variables["TUTTI_BINDINGS_PER_CYCLE"], container["image"]


def test_each_step_does_what_its_command_says(shell: Place) -> None:
    """And forgets nothing; what the operator makes of it is in tests/e2e/test_first_week.py."""
    blocks = re.findall(r"(?ms)^```console\n(.*?)^```", PAGE.read_text())
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    said = []
    for line in lines:
        is_helm = line.startswith("helm ")
        shell.run(line + WAIT * is_helm)
        if is_helm:
            shell.rolled_out()
            said.append(_told(shell))
    shell.run(f"helm uninstall tutti -n {NAMESPACE}{WAIT}")
    steps = [("shadow", "0"), ("active", "16"), ("paused", "16"), ("active", "16")]
    assert said == [(*step, f"registry.example.com/tutti:{__version__}") for step in steps]
