"""``kubectl tutti``: kubectl is told what a word may become, in the way it asks."""

import pytest
from click.testing import CliRunner

from tutti import cli
from tutti.cli import plugin

COMPLETED = {
    "commands": (["pl"], ["plan", ":4"]),
    "options": (["plan", "--remove"], ["--remove-node", ":4"]),
    "values": (["plan", "--output", "p"], ["picture", ":4"]),
    "strategies": (["plan", "--strategy", "i"], ["ilp", "ilp-highs", ":4"]),
    "files": (["dump", "--output", "x"], [":0"]),
    "manifests": (["plan", "--filename", "x"], [":0"]),
    "more manifests": (["plan", "x"], [":0"]),
    "what only you know": (["status", "--namespace", "x"], [":4"]),
    "nothing more": (["status", ""], [":4"]),
}


@pytest.mark.parametrize("name", COMPLETED)
def test_a_word_is_completed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, expected = COMPLETED[name]
    plugin.complete(words)
    assert capsys.readouterr().out.splitlines() == expected


def test_nothing_yet_may_become_any_command(capsys: pytest.CaptureFixture[str]) -> None:
    plugin.complete([])
    offered = set(capsys.readouterr().out.splitlines())
    assert offered == {*cli.COMMANDS, ":4"} - {"run"}


def test_kubectl_starts_no_operator() -> None:
    for command, code in (("run", 2), ("version", 0)):
        assert CliRunner().invoke(plugin.COMMANDS, [command]).exit_code == code
    assert "run " not in CliRunner().invoke(plugin.COMMANDS, ["--help"]).stdout
    assert "  run " in CliRunner().invoke(cli.main, ["--help"]).stdout


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_that_teaches(command: str) -> None:
    result = CliRunner().invoke(cli.main, [command, "--help"])
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 3


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_help_fits_a_terminal_of_80_columns(command: str) -> None:
    """Under the longer of its two names."""
    words = [*command.split(), "--help"]
    result = CliRunner().invoke(cli.main, words, prog_name=plugin.NAME, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_help_shows_what_to_type() -> None:
    for command in ("plan", "dump"):
        told = CliRunner().invoke(cli.main, [command, "--help"]).stdout
        assert "Examples:" in told
        assert "Exit codes:" in told
    assert "No such command 'paln'" in CliRunner().invoke(cli.main, ["paln"]).stderr
