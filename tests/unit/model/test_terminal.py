"""Words from anywhere are shown on one line, and nothing in them is obeyed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.model.terminal import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("2 members need 8 cpu each; „Größe“ ≥ 3 …", "2 members need 8 cpu each; „Größe“ ≥ 3 …"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\u202eabc\u2028\xa0", r"\u202eabc\u2028\xa0"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_cannot_be_printed_is_spelt_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_all_that_is_left_can_be_printed(text: str) -> None:
    assert visible(text).isprintable()
    assert visible(visible(text)) == visible(text)
