"""Spark's properties, read as Spark's own code reads them: references, old names, units.

Source: ConfigReader, ConfigBuilder, SparkConf and JavaUtils of Apache Spark. A value that Spark
would refuse, or that cannot be known here, is a ``BadProperty``; no number is guessed.
"""

import re
from collections.abc import Mapping
from typing import NoReturn

from ..kube.codec.quantity import QuantityError, nanos
from ..model.terminal import visible

INT_LIMIT = 2**31 - 1
LONG_LIMIT = 2**63 - 1
MEBIBYTE = 2**20
SHOWN = 60  # characters of a value that is quoted
DEPTH_LIMIT = 16  # how deep references may be nested
FOLLOWED_LIMIT = 100  # references in one value, nested references included
LENGTH_LIMIT = 8_192  # characters of a value that is read; real values are short

# Names from before Spark 2.3 that SparkConf still accepts.
_OLD_NAMES: Mapping[str, str] = {
    "spark.executor.memoryOverhead": "spark.yarn.executor.memoryOverhead",
    "spark.driver.memoryOverhead": "spark.yarn.driver.memoryOverhead",
}
# spark-submit and the driver also read these without following references, and fail on one.
_WITHOUT_REFERENCES = ("spark.driver.memory", "spark.executor.cores", "spark.executor.memory")
_REFERENCE = re.compile(r"\$\{(?:(\w{1,64}?):)?(\S{1,256}?)\}")
_BYTES = re.compile(r"([0-9]+)([a-z]+)?")
_POWERS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_UNITS = {**_POWERS, **{f"{unit}b": power for unit, power in _POWERS.items() if unit != "b"}}
_INT = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")


class BadProperty(Exception):  # noqa: N818 - named for the situation
    """A property cannot be read; ``name`` and ``value`` are those of the property."""

    def __init__(self, name: str, value: str, why: str) -> None:
        excerpt = value if len(value) <= SHOWN else value[:SHOWN] + "…"
        super().__init__(visible(" ".join(f"{name}={excerpt}: {why}".split())))
        self.name = name
        self.value = value


class Conf:
    """Properties by name, each read with the type that it has in Spark."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._followed_so_far = 0

    def __contains__(self, name: str) -> bool:
        return self._raw(name) is not None

    def text(self, name: str) -> str | None:
        """A text, with its references resolved; None if the property is not set."""
        raw = self._raw(name)
        self._followed_so_far = 0
        return None if raw is None else self._followed(name, raw, 0)

    def under(self, prefix: str) -> Mapping[str, str]:
        """Every property with a prefix, by the rest of its name; references are not resolved."""
        return {
            name.removeprefix(prefix): value
            for name, value in sorted(self._properties.items())
            if name.startswith(prefix)
        }

    def flag(self, name: str) -> bool:
        """A truth value; false if the property is not set."""
        text = (self.text(name) or "false").strip().lower()
        if text not in ("true", "false"):
            self.refuse(name, "is neither true nor false")
        return text == "true"

    def count(self, name: str) -> int | None:
        """A whole number that is not negative; None if the property is not set."""
        text = self.text(name)
        return None if text is None else whole(name, text)

    def factor(self, name: str, *, may_be_zero: bool = False) -> float | None:
        """A factor above zero, or also zero if ``may_be_zero``; None if it is not set."""
        text = self.text(name)
        if text is None:
            return None
        if _DOUBLE.fullmatch(text.strip()) is None:
            self.refuse(name, "is not a number such as 0.2")
        number = float(text.strip().rstrip("dDfF"))
        if not (number > 0 or (may_be_zero and number == 0)) or number > INT_LIMIT:
            self.refuse(name, "is not above zero, or absurdly large")
        return number

    def mebibytes(self, name: str) -> int | None:
        """A size in whole MiB, rounded down; a number without a unit is in MiB."""
        return self._size(name, MEBIBYTE)

    def bytes_as_mebibytes(self, name: str) -> int:
        """A size in whole MiB, rounded down; a number without a unit is in bytes; 0 if not set."""
        return (self._size(name, 1) or 0) // MEBIBYTE

    def quantity(self, name: str) -> str | None:
        """A Kubernetes quantity, as it is written; None if the property is not set."""
        text = self.text(name)
        if text is None:
            return None
        try:
            nanos(text.strip())
        except QuantityError as problem:
            raise BadProperty(name, text, str(problem)) from problem
        return text.strip()

    def refuse(self, name: str, why: str) -> NoReturn:
        """Raise a ``BadProperty`` that says what is wrong with a property."""
        raise BadProperty(name, self._raw(name) or "", why)

    def _raw(self, name: str) -> str | None:
        raw = self._properties.get(name)
        return (
            raw
            if raw is not None or name not in _OLD_NAMES
            else self._properties.get(_OLD_NAMES[name])
        )

    def _size(self, name: str, unit: int) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        match = _BYTES.fullmatch(text.strip().lower())
        if match is None or (match[2] is not None and match[2] not in _UNITS):
            self.refuse(
                name, "is not a size such as 512m or 4g; fractions are written in a smaller unit"
            )
        size = int(match[1][:40])
        size = size if match[2] is None else size * 1024 ** _UNITS[match[2]] // unit
        if size * unit > LONG_LIMIT:
            self.refuse(name, "is more than any node can have")
        return size

    def _followed(self, name: str, text: str, depth: int) -> str:
        if len(text) > LENGTH_LIMIT:
            self.refuse(name, f"is longer than the {LENGTH_LIMIT:,} characters that are read")
        if name in _WITHOUT_REFERENCES and _REFERENCE.search(text):
            self.refuse(name, "Spark follows no reference here")

        def value(match: re.Match[str]) -> str:
            where, what = match.groups()
            if where is not None:
                if where in ("env", "system"):
                    self.refuse(
                        name, f"refers to the driver's own {match[0]}, which is not known here"
                    )
                return match[0]
            referred = self._raw(what) if what.startswith("spark.") else None
            if referred is None:
                self.refuse(name, f"refers to {what}, which is not set here")
            self._followed_so_far += 1
            if depth == DEPTH_LIMIT or self._followed_so_far > FOLLOWED_LIMIT:
                self.refuse(name, "refers to itself, or to very many others")
            return self._followed(name, referred, depth + 1)

        return _REFERENCE.sub(value, text)


def whole(name: str, text: str) -> int:
    """A whole number that is not negative and fits into a Java int.

    Raises:
        BadProperty: the text is no such number.
    """
    stripped = text.strip()
    if _INT.fullmatch(stripped) is None:
        raise BadProperty(name, text, "is not a whole number")
    number = int(stripped[:40])
    if not 0 <= number <= INT_LIMIT:
        raise BadProperty(name, text, "is negative, or above what Spark can count")
    return number
