"""What docs/operations.md says of memory comes from a command that works."""

import re

from click.testing import CliRunner

from ..bench.sizing.__main__ import main


def test_the_command_prints_a_row_for_each_cluster() -> None:
    result = CliRunner().invoke(main, ["--nodes", "3"], catch_exceptions=False)
    row = re.search(r"(?m)^\| 3 \| 30 \| (\d+) \|$", result.stdout)
    assert row is not None, result.output
    assert 20 < int(row.group(1)) < 1000
