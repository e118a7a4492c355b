"""``kubectl tutti``: kubectl is told what a word may become, in the way it asks."""

import pytest
from click.testing import CliRunner

from tutti import cli
from tutti.cli import plugin

COMPLETED = {
    "commands": (["pl"], ["plan", ":4"]),
    "options": (["plan", "--remove"], ["--remove-node", ":4"]),
    "values": (["plan", "--output", "p"], ["picture", ":4"]),
    "files": (["dump", "--output", "x"], [":0"]),
}


@pytest.mark.parametrize("name", COMPLETED)
def test_a_word_is_completed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, expected = COMPLETED[name]
    plugin.complete(words)
    assert capsys.readouterr().out.splitlines() == expected


def test_nothing_yet_may_become_any_command(capsys: pytest.CaptureFixture[str]) -> None:
    plugin.complete([])
    assert {"run", "plan", "dump"} <= set(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help_that_teaches(command: str) -> None:
    told = CliRunner().invoke(cli.main, [command, "--help"])
    assert told.exit_code == 0
    assert len(told.stdout.splitlines()) > 3


def test_help_shows_what_to_type() -> None:
    for command in ("plan", "dump"):
        told = CliRunner().invoke(cli.main, [command, "--help"]).stdout
        assert "Examples:" in told
        assert "Exit codes:" in told
    assert "No such command 'paln'" in CliRunner().invoke(cli.main, ["paln"]).stderr
