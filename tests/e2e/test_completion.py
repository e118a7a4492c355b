"""A TAB typed into a real bash: what becomes of words after `tutti`, and after `kubectl tutti`.

Bash reads keys, with readline, and no terminal is needed for that. Further keys make the line that
it has completed the arguments of a `printf`, so nothing of it is ever run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs import commands
from tests.harness.controlplane import build
from tutti import cli

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
TAB, ALL = "\t", "\x1b*"  # complete the word; insert all that it may become
SHOW = "\x01printf '<%s>' \x05; echo\n"  # from the line's begin to its end, as arguments
# The package bash-completion has this; what kubectl's script needs of it, for words without quotes.
STAND_IN = """
_init_completion() {
  words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
  cur=${words[cword]} prev=${words[cword - 1]}
}
"""
# What is typed after the command, and the words that it becomes.
TYPED: Mapping[str, tuple[str, Sequence[str]]] = {
    "a command": (f"pl{TAB}", ["plan"]),
    "an option": (f"plan --strat{TAB}", ["plan", "--strategy"]),
    "a value": (f"status -A --output w{TAB}", ["status", "-A", "--output", "wide"]),
    "a file": (f"plan -f gan{TAB}", ["plan", "-f", "gangs.yaml"]),
    "a namespace, of which files know nothing": (f"top -n gan{TAB}", ["top", "-n", "gan"]),
    "what there is not": (f"paln{TAB}", ["paln"]),
    "every value": (f"top --output {ALL}", ["top", "--output", "json", "table", "wide", "yaml"]),
}


def _profile(command: str) -> str:
    """What a person has in ~/.bashrc to complete the words of this command."""
    if command == "kubectl tutti":
        return f"{STAND_IN}source <(kubectl completion bash)\n"
    lines = (one.line for one in commands.of("docs/plugin.md"))
    return next(line for line in lines if "_TUTTI_COMPLETE" in line)


def _typed(bash: str, home: Path, profile: str, lines: Sequence[str]) -> Sequence[Sequence[str]]:
    """The words that each of these lines has become."""
    (home / "bashrc").write_text(profile)
    done = subprocess.run(
        [bash, "--noprofile", "--rcfile", str(home / "bashrc"), "-i"],
        input="".join(line + SHOW for line in lines),
        cwd=home / "work",
        env={
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "operator"),
            "HOME": str(home),
            "INPUTRC": "/dev/null",
            "TERM": "dumb",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    shown = [re.findall("<(.*?)>", line) for line in done.stdout.splitlines()]
    assert len(shown) == len(lines), done.stderr
    return shown


@pytest.mark.parametrize(
    ("command", "every"),
    [("tutti", set(cli.COMMANDS)), ("kubectl tutti", set(cli.COMMANDS) - {"run"})],
)
def test_a_tab_in_bash_completes_commands_options_values_and_files(
    command: str, every: set[str], tmp_path: Path
) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "there is no bash on this machine, so that completion cannot be typed"
    (tmp_path / "bin").mkdir()
    for name in ("tutti", "kubectl-tutti", "kubectl_complete-tutti"):
        (tmp_path / "bin" / name).symlink_to(Path(sys.executable).parent / name)
    (tmp_path / "bin/kubectl").symlink_to(build.binaries(("kubectl",))["kubectl"])
    (tmp_path / "work").mkdir()
    (tmp_path / "work/gangs.yaml").touch()
    typed = {"every command": (ALL, every), **TYPED}
    lines = [f"{command} {keys}" for keys, _ in typed.values()]
    became = _typed(bash, tmp_path, _profile(command), lines)
    assert {case: sorted(line) for case, line in zip(typed, became, strict=True)} == {
        case: sorted([*command.split(), *words]) for case, (_, words) in typed.items()
    }
