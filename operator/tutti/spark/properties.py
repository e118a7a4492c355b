"""The reader of texts in the format of Java's properties files, as Spark reads them.

The format is that of java.util.Properties.load; values are trimmed as in Spark's
Utils.getPropertiesFromFile. Sixty lines here save every installation a dependency.
"""

import re
from collections.abc import Iterator, Mapping

_BLANK = " \t\f"
_COMMENT = "#!"
_SEPARATOR = "=:"
_LETTERS: Mapping[str, str] = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINES = re.compile(r"\r\n|\n|\r")  # only these end a line in Java
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
# The characters that Spark strips from a value: those of Java's trim() except line ends.
_STRIPPED = "".join(chr(n) for n in range(0x21) if chr(n) not in "\r\n")


class BadProperties(Exception):  # noqa: N818 - named for the situation
    """A text is not a properties file; the sentence says why."""


def read(text: str) -> Mapping[str, str]:
    """Every property by name; if a property is given twice, the last value counts.

    Raises:
        BadProperties: an escaped character does not have its four hexadecimal digits.
    """
    raw_properties: dict[str, str] = {}
    for number, line in _logical(text):
        name, value = _halves(line)
        raw_properties[_plain(name, number)] = _plain(value, number).strip(_STRIPPED)
    return _joined(raw_properties)


def _joined(raw_properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties with each escaped surrogate pair combined into one character."""
    return {_whole(name): _whole(value) for name, value in raw_properties.items()}


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first line, without comments and blank lines."""
    lines = iter(enumerate(_LINES.split(text), start=1))
    for number, line in lines:
        whole = line.lstrip(_BLANK)
        if not whole or whole[0] in _COMMENT:
            continue
        parts = [whole]
        while _goes_on(parts[-1]):
            _, more = next(lines, (0, ""))
            parts[-1] = parts[-1][:-1]
            parts.append(more.lstrip(_BLANK))
        if whole := "".join(parts):
            yield number, whole


def _goes_on(line: str) -> bool:
    """Whether a line ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _halves(line: str) -> tuple[str, str]:
    """Name and value, both still escaped, split at the first ``=``, ``:`` or blank."""
    end = 0
    while end < len(line) and line[end] not in _SEPARATOR + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] and rest[0] in _SEPARATOR:
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _plain(text: str, number: int) -> str:
    """The text with its escapes resolved."""
    parts, at = [], 0
    while (backslash := text.find("\\", at)) >= 0:
        parts.append(text[at:backslash])
        letter = text[backslash + 1 : backslash + 2]
        at = backslash + 2
        if letter == "u":
            digits = text[at : at + 4]
            if _HEX.fullmatch(digits) is None:
                raise BadProperties(rf"line {number}: \u{digits} is no character")
            parts.append(chr(int(digits, 16)))
            at += 4
        else:
            parts.append(_LETTERS.get(letter, letter))
    return "".join([*parts, text[at:]])
