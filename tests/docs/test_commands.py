"""Every command of the docs is executed somewhere; those that need no cluster, here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache

import pytest
from click.testing import CliRunner

from tutti import cli

from . import commands
from .commands import Command, Kind
from .reference import ROOT

EVERY = commands.every()
OFFLINE = [one for one in EVERY if one.kinds == [Kind.OFFLINE]]
TARGETS = sorted({one.line for one in EVERY if one.target})
MODULES = {"bench": "tests.bench.planner", "bench-e2e": "tests.bench.e2e"}


def test_commands_are_read_as_readers_type_them() -> None:
    (example,) = (one for one in EVERY if "CLUSTER=current" in one.text)
    assert example.line == "make load CLUSTER=current GANGS=50 MEMBERS=8 GPUS=1"
    assert (example.target, example.kinds) == ("load", [Kind.MAKE])
    submitted = [one for one in EVERY if one.line.startswith("spark-submit --master")]
    assert "spark.kubernetes.scheduler.name=tutti" in submitted[0].text


def test_every_command_is_executed_in_one_way() -> None:
    assert [one for one in EVERY if len(one.kinds) != 1] == []


def test_an_upgrade_that_sets_a_value_forgets_no_other() -> None:
    """Helm would: the image, first of all, and so nothing would start."""
    upgrades = [one.line for one in EVERY if re.match(r"helm upgrade .* --set ", one.line)]
    assert upgrades
    assert [line for line in upgrades if " --reset-then-reuse-values " not in line] == []


def test_what_is_said_of_commands_is_said_of_some() -> None:
    """No reason outlives its command, and tests that are named read the page."""
    assert {one.target for one in EVERY} - {""} == set(commands.MAKE)
    for begin in commands.NOT_RUN:
        assert any(one.line.startswith(begin) for one in EVERY), begin
    for (page, begin), test in commands.ELSEWHERE.items():
        assert any(one.page == page and one.elsewhere == test for one in EVERY), begin
        assert page.rpartition("/")[2] in (ROOT / test).read_text(), test
    for reason in commands.MAKE.values():
        for test in re.findall(r"tests/\w+/\w+\.py", reason):
            assert (ROOT / test).exists(), test


@pytest.mark.parametrize("command", OFFLINE, ids=lambda one: f"{one.page}: {one.line}")
def test_what_needs_no_cluster_prints_what_its_page_shows(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard output, or else in the one line that says what is wrong."""
    monkeypatch.chdir(ROOT)
    _, *arguments = shlex.split(command.line)
    result = CliRunner().invoke(cli.main, arguments, prog_name="tutti")
    assert result.exit_code in (0, cli.WRONG_INPUT)
    assert (result.stderr if result.exit_code else result.stdout) == command.printed


@cache
def _help(module: str) -> str:
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("line", TARGETS)
def test_make_knows_every_target_and_its_options(line: str) -> None:
    """As far as a dry run and the help can tell."""
    typed = line[line.index("make ") :].removesuffix(')"').partition(" > ")[0]
    _, *arguments = shlex.split(typed)
    done = subprocess.run(
        ["make", "--dry-run", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (target,) = (argument for argument in arguments if argument in commands.MAKE)
    passed = next((argument for argument in arguments if argument.startswith("BENCH=")), "")
    for option in re.findall(r"--[a-z-]+", passed):
        assert option in _help(MODULES[target])
