"""Java's properties format, as java.util.Properties and Spark read it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tutti.spark import BadProperties, read


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t \f b", {"a": "b"}),
        ("a  :  = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("  \t\f a=b", {"a": "b"}),
        ("# c\n  ! c=d\n\n \t\na=b", {"a": "b"}),
        ("# never continued \\\na=b", {"a": "b"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\r\n # c", {"a": "b# c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("\\\n\na=b", {"a": "b"}),
        ("a\\ b\\:c\\=d=e", {"a b:c=d": "e"}),
        ("a=\\t\\n\\f\\rb\\z", {"a": "\n\f\rbz"}),
        ("a=x\\u00e4\\uD83D\\uDE00", {"a": "xä😀"}),
        ("a=\\ud83d", {"a": "\ufffd"}),
        ("a=1\na=2", {"a": "2"}),
        ("a= b \t ", {"a": "b"}),
        ("a=b\x85c\u2028d\x0be", {"a": "b\x85c\u2028d\x0be"}),
    ],
)
def test_a_text_is_read_as_java_reads_it(text: str, found: dict[str, str]) -> None:
    assert read(text) == found


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u"])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(BadProperties, match="line 3"):
        read(f"# one\n\n{text}")


def test_a_continued_line_counts_from_its_first() -> None:
    with pytest.raises(BadProperties, match="line 1"):
        read("a=b\\\n\\u1")


@given(st.text())
@example("\\")
@example("\\\r\n\\u")
def test_whatever_the_text_it_is_read_or_refused(text: str) -> None:
    said = ""
    try:
        assert all(isinstance(value, str) for value in read(text).values())
    except BadProperties as problem:
        said = str(problem)
    assert not said or said.startswith("line ")


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_escaped_throughout_is_read_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{_escaped(name)}={_escaped(value)}" for name, value in properties.items())
    stripped = "".join(chr(n) for n in range(0x21) if chr(n) not in "\r\n")
    assert read(text) == {name: value.strip(stripped) for name, value in properties.items()}


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    pairs = (units[i : i + 2] for i in range(0, len(units), 2))
    return "".join(f"\\u{int.from_bytes(pair):04X}" for pair in pairs)
