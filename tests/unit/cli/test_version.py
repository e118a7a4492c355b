"""``tutti version``: what a bug report has to name."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tutti import __version__, cli


def versions() -> dict[str, str]:
    result = CliRunner().invoke(cli.main, ["version"], catch_exceptions=False)
    assert result.exit_code == 0
    parts = (line.partition(" ") for line in result.stdout.splitlines())
    return {name: version for name, _, version in parts}


def test_the_first_line_is_tuttis_own() -> None:
    told = CliRunner().invoke(cli.main, ["version"]).stdout
    assert told.splitlines()[0] == f"tutti {__version__}"


def test_the_option_says_what_the_command_says() -> None:
    result = CliRunner().invoke(cli.main, ["--version"])
    assert (result.exit_code, result.stdout) == (
        0,
        CliRunner().invoke(cli.main, ["version"]).stdout,
    )


def test_python_the_api_side_and_every_engine_are_named() -> None:
    told = versions()
    assert told["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")
    assert {"kopf", "kubernetes", "numpy", "pulp", "highspy", "ortools"} <= set(told)
    assert all(re.match(r"\d+\.\d+", version) for version in told.values())


def test_cbc_is_asked_by_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another machine's kind, or without the right to be run, it is there and no use."""
    program = tmp_path / "cbc"
    program.write_text("#!/bin/sh\necho 'Version: 9.8.7'\n")
    monkeypatch.setattr("tutti.strategies.ilp.engine.PULP_CBC_CMD.pulp_cbc_path", str(program))
    assert versions()["cbc"].startswith("could not be run")
    program.chmod(0o755)
    assert versions()["cbc"] == "9.8.7"


def test_a_package_that_is_not_there_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tutti.cli.version.PACKAGES", ("no-such-package-of-any-kind",))
    assert versions()["no-such-package-of-any-kind"] == "not installed"
