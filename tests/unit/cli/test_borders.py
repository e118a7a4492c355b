"""Files in which a member placed in a round of its own once kept a gang waiting that fits."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tutti import cli

FILES = Path(__file__).parent / "borders"


def asked(command: str, name: str) -> Any:
    result = CliRunner().invoke(
        cli.main, [command, "-f", str(FILES / name), "-o", "json"], prog_name="tutti"
    )
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("name", "waiting"),
    [
        ("repair-moved.yaml", []),
        ("extra-moved.yaml", []),
        ("repair-beside.json", ["x/g1", "x/g2", "x/g3", "x/g5"]),
        ("extra-ruled.json", ["x/g0"]),
        ("extra-beside.json", []),
        ("repair-follows.json", []),
    ],
)
def test_who_fits_beside_those_above_starts(name: str, waiting: list[str]) -> None:
    made = asked("plan", name)
    assert made["proved"]
    assert sorted(gang["gang"] for gang in made["gangs"] if gang["answer"] == "waits") == waiting


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir()))
def test_an_explanation_knows_of_no_room_for_who_waits(name: str) -> None:
    for gang in asked("explain", name)["gangs"]:
        advice = gang["advice"]
        assert advice["diagnosis"]["beside"]["members"] < advice["needed"], gang
