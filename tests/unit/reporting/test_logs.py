"""Log lines: for people at a terminal, JSON elsewhere."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tutti.reporting import logs


class Terminal(io.StringIO):
    """A stream at which somebody sits."""

    def isatty(self) -> bool:
        """Somebody does."""
        return True


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave logging as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in (*root.handlers,):
        root.removeHandler(handler)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)
    for name in ("kopf", "aiohttp"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    ("style", "stream", "is_json"),
    [
        ("auto", Terminal(), False),
        ("auto", io.StringIO(), True),
        ("human", io.StringIO(), False),
        ("json", Terminal(), True),
    ],
    ids=["a terminal", "a container", "human anywhere", "JSON anywhere"],
)
def test_lines_suit_whoever_reads_them(
    style: str, stream: io.StringIO, *, is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    logs.configure(style, "warning")
    logging.getLogger("tutti.operator.cycle").warning("gang %s: %s", "ml/a", 'it says "no"')
    logging.getLogger("tutti.operator.cycle").info("nobody reads this")
    (line,) = stream.getvalue().splitlines()
    if not is_json:
        assert line.endswith(' WARNING gang ml/a: it says "no"')
        return
    told = json.loads(line)
    assert datetime.fromisoformat(told.pop("time")).utcoffset() == timedelta(0), "whose time it is"
    assert told == {
        "level": "WARNING",
        "logger": "tutti.operator.cycle",
        "message": 'gang ml/a: it says "no"',
    }


def test_somebody_elses_words_begin_no_line_and_move_no_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What an exception adds keeps its lines."""
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    logs.configure("human", "info")
    logging.getLogger("tutti.operator.cycle").info("gang %s", "a\n12:00:00 INFO forged \x1b[2J")
    (line,) = out.getvalue().splitlines()
    assert line.endswith(r" INFO    gang a\n12:00:00 INFO forged \x1b[2J")
    try:
        int("x")
    except ValueError:
        logging.getLogger("tutti.operator.cycle").exception("failed")
    assert out.getvalue().splitlines()[-1].startswith("ValueError: ")
