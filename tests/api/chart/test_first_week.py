"""The commands of docs/first-week.md, in their order, on a real API server by the real Helm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .places import NAMESPACE, ROOT

if TYPE_CHECKING:
    from .places import Place

PAGE = ROOT / "docs" / "first-week.md"
WAIT = " --wait --timeout=60s"


def _told(shell: Place) -> tuple[str, str]:
    """What the replicas are told of mode and cap."""
    (pod, *_) = shell.pods()
    told = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    return told["TUTTI_MODE"], told["TUTTI_BINDINGS_PER_CYCLE"]


def test_each_step_does_what_its_command_says(shell: Place) -> None:
    """What the operator makes of it is in tests/e2e/test_first_week.py."""
    blocks = re.findall(r"(?ms)^```console\n(.*?)^```", PAGE.read_text())
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    told = []
    for line in lines:
        is_helm = line.startswith("helm ")
        shell.run(line + WAIT * is_helm)
        if is_helm:
            told.append(_told(shell))
    shell.run(f"helm uninstall tutti -n {NAMESPACE}{WAIT}")
    assert told == [("shadow", "0"), ("active", "16"), ("paused", "16"), ("active", "16")]
