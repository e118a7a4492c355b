"""Plans are as recorded: a fixed sample of the cases, and every file; the check itself can fail.

``python -m tests.conformance.unchanged check`` compares all 5,000.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

import tutti.cli

from . import __main__ as command
from . import cases, planner, record
from .planner import Answer, Outcome
from .record import Defect, Record, Verdict

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = record.read(record.RECORD)
SAMPLE = range(0, cases.NUMBER, 20)
EXPLAINED = range(0, cases.NUMBER, 200)
FILES = [name for name in KNOWN.cases if not cases.is_generated(name)]
BUSY = "0073"  # a case with placements, slots and rejections; a test says so


def compared(*outcomes: Outcome) -> Verdict:
    return record.judged(KNOWN, record.defects(record.DELIBERATE), outcomes)


@pytest.mark.parametrize("first", range(0, len(SAMPLE), 25))
def test_plans_are_as_recorded(first: int) -> None:
    outcomes = [planner.outcome(f"{number:04}") for number in SAMPLE[first : first + 25]]
    assert compared(*outcomes) == Verdict()


def test_explanations_are_as_recorded() -> None:
    outcomes = [planner.outcome(f"{number:04}.explain") for number in EXPLAINED]
    assert compared(*outcomes) == Verdict()


def test_files_are_planned_as_recorded() -> None:
    outcomes = []
    for name in FILES:
        case = cases.file_case(name, KNOWN.cases[name].input)
        assert case is not None, name
        found = planner.outcome(case)
        outcomes.append(Outcome(name, found.input, found.parts))
    assert len(outcomes) > 30
    assert compared(*outcomes) == Verdict()


def test_the_record_is_whole() -> None:
    assert set(cases.numbered(range(cases.NUMBER))) == set(KNOWN.cases) - set(FILES)
    meant = record.defects(record.DELIBERATE)
    for defect in meant:
        assert defect.because
        assert {name for name, _ in defect.digests} <= set(KNOWN.cases)
        assert {part for _, part in defect.digests} <= set(planner.PARTS)
    listed = [key for defect in meant for key in defect.digests]
    assert len(listed) == len(set(listed)), "two defects list the same: accept"


# The check itself.


def changed(*path: str | int, to: Any) -> dict[str, bool]:
    """Which parts of the busy case's answer differ once one value of it is another."""
    before = planner.answer(BUSY)
    data = copy.deepcopy(before.data)
    inner = data
    for step in path[:-1]:
        inner = inner[step]
    assert inner[path[-1]] != to
    inner[path[-1]] = to
    after = Answer(0, data)
    return {part: before.digest(part) != after.digest(part) for part in planner.PARTS}


def test_the_busy_case_shows_what_can_change() -> None:
    plan = planner.answer(BUSY).data
    assert plan["levels"]
    assert any("slots" in one for gang in plan["gangs"] for one in gang["placement"])
    assert {gang["answer"] for gang in plan["gangs"]} > {"starts", "waits"}


def test_each_change_of_a_plan_is_seen_in_its_part() -> None:
    gangs = planner.answer(BUSY).data["gangs"]
    placed, held = next(
        (i, j)
        for i, gang in enumerate(gangs)
        for j, one in enumerate(gang["placement"])
        if "slots" in one
    )
    waiting = next(i for i, gang in enumerate(gangs) if gang["answer"] == "waits")
    where = ("gangs", placed, "placement", held)
    choice = {"choice": True, "figures": False, "words": False}
    assert changed(*where, "node", to="elsewhere") == choice
    assert changed(*where, "pods", to=["another"]) == choice
    assert changed(*where, "slots", to={"worker": 9}) == choice
    assert changed("gangs", waiting, "answer", to="evicted") == choice
    assert changed("gangs", waiting, "reason", to="Paused") == choice
    assert changed("proved", to=None) == choice
    sentence = changed("gangs", waiting, "sentence", to="in other words")
    assert sentence == {"choice": False, "figures": False, "words": True}
    figure = changed("levels", 0, "admitted", to=-1)
    assert figure == {"choice": False, "figures": True, "words": False}


def test_another_plan_by_the_command_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planner.answer(BUSY).data
    plan["gangs"].reverse()

    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    def main(words: tuple[str, ...]) -> None:
        assert words[0] == "plan"
        click.echo(json.dumps(plan))

    assert compared(planner.outcome(BUSY)) == Verdict()
    monkeypatch.setattr(tutti.cli, "main", main)
    verdict = compared(planner.outcome(BUSY))
    assert "choice" in {part for (_, part), _ in verdict.differing}
    assert not verdict.is_good


def test_a_command_that_breaks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command(context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1)
    def main(words: tuple[str, ...]) -> None:
        raise ValueError(words)

    monkeypatch.setattr(tutti.cli, "main", main)
    assert not compared(planner.outcome(BUSY)).is_good
    assert "ValueError" in planner.answer(BUSY).pretty()


def test_another_input_is_no_other_plan() -> None:
    case = cases.by_name(BUSY)
    found = planner.outcome(cases.Case(BUSY, case.text + b" "))
    assert compared(found) == Verdict(inputs=[BUSY])
    assert compared(Outcome("no such case", "", {})) == Verdict(inputs=["no such case"])


ZERO = {"choice": "00", "figures": "0", "words": "0"}
SMALL = Record("r", {"0001": Outcome("0001", "i", ZERO), "0002": Outcome("0002", "i", ZERO)})
KEY = ("0001", "choice")


def small(digest: str, name: str = "0001") -> Outcome:
    return Outcome(name, "i", ZERO | {"choice": digest})


def test_a_change_that_is_meant_is_listed_with_what_it_comes_to() -> None:
    meant = [Defect("units", "why", {KEY: "11"})]
    assert record.judged(SMALL, meant, [small("11")]).is_good
    assert record.judged(SMALL, meant, [small("22")]).differing == [(KEY, "22")]
    assert record.judged(SMALL, [], [small("11")]).differing == [(KEY, "11")]


def test_a_listed_change_that_is_gone_is_noticed() -> None:
    meant = [Defect("units", "why", {KEY: "11"})]
    assert record.judged(SMALL, meant, [small("00")]).stale == [(KEY, "units")]
    assert record.judged(SMALL, meant, [small("00", "0002")]).is_good


def test_accepting_lists_what_differs_once_and_drops_what_is_gone() -> None:
    other = ("0002", "choice")
    meant = [Defect("units", "why", {KEY: "11", other: "11"})]
    outcomes = [small("22"), small("00", "0002")]
    verdict = record.judged(SMALL, meant, outcomes)
    units, moves = record.accept(meant, Defect("moves", "because"), verdict)
    assert (units.name, units.digests) == ("units", {})
    assert (moves.name, moves.because, moves.digests) == ("moves", "because", {KEY: "22"})
    assert record.judged(SMALL, [units, moves], outcomes).is_good
    (kept,) = record.accept(meant, Defect("units", ""), Verdict())
    assert kept.because == "why"


def test_defects_and_records_are_read_as_they_are_written(tmp_path: Path) -> None:
    record.write("r", [*SMALL.cases.values()], tmp_path / "record.txt")
    assert record.read(tmp_path / "record.txt") == SMALL
    defect = Defect("units", "a scale that grows", {KEY: "11"})
    record.write_defect(defect, tmp_path / "meant")
    assert record.defects(tmp_path / "meant") == [defect]
    record.write_defect(Defect("units", ""), tmp_path / "meant")
    assert record.defects(tmp_path / "meant") == []


def test_a_file_that_has_moved_is_found_by_what_it_holds() -> None:
    case = next(cases.files())
    assert cases.file_case("gone.yaml", case.digest) == case
    assert cases.file_case("gone.yaml", "none") is None
    explained = cases.file_case("gone.yaml.explain", case.digest)
    assert explained is not None
    assert explained.command == "explain"


def test_a_difference_is_shown_with_both_plans_and_an_input_to_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = KNOWN.cases["0000"]
    other = Outcome("0000", before.input, {**before.parts, "choice": "0" * 8})
    planted = {"0000": other, "0000.explain": KNOWN.cases["0000.explain"]}
    record.write("HEAD", [*planted.values()], tmp_path / "record.txt")
    monkeypatch.syspath_prepend(str(cases.ROOT))  # where processes find the tests
    monkeypatch.setattr(record, "RECORD", tmp_path / "record.txt")
    monkeypatch.setattr(command, "mkdtemp", lambda **_: str(tmp_path))
    result = CliRunner().invoke(command.main, ["check", "--cases", "1", "--jobs", "1"])
    assert result.exit_code == 1, result.output
    assert "1 cases differ, 1 in choice: 0000" in result.stdout
    replayed = tmp_path / "0000.yaml"
    assert f"0000: tutti plan -o json -f {replayed}" in result.stdout
    assert replayed.read_bytes() == cases.generated(0).text


def test_show_prints_the_input() -> None:
    result = CliRunner().invoke(command.main, ["show", "0012"])
    assert result.stdout.encode() == cases.generated(12).text
