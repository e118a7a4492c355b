"""Each line of docs/security.md names tests, and these exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    line
    for line in (ROOT / "docs" / "security.md").read_text().splitlines()
    if re.match(r"\| (?!they )", line)
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:60])
def test_a_line_names_tests_that_exist(row: str) -> None:
    """The last column, and nothing but."""
    named = re.findall(r"`(tests/[^`]*)`", row.split("|")[-2])
    assert named
    for one in named:
        path, _, name = one.partition("::")
        begin = rf"{name}\b" if name else "test_"
        assert re.search(rf"^(async )?def {begin}", (ROOT / path).read_text(), re.MULTILINE)


def test_the_lines_are_found() -> None:
    assert len(ROWS) > 20
