"""A sample of `python -m tests.conformance.spark_sizes`: what real Spark asks for is computed.

The newest Spark and the cases in which versions differ first; all of them in `make conformance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..conformance.spark_sizes.asked import Door
from ..conformance.spark_sizes.comparing import sampled
from ..conformance.spark_sizes.pins import PINS
from ..harness.controlplane import ControlPlane

if TYPE_CHECKING:
    from pathlib import Path

CASES = (
    "nothing set",
    "Python, its memory, off-heap",
    "dynamic: the largest of three",
    "request, limit, devices",
)


@pytest.mark.timeout(1800)  # the first time Spark is fetched, 450 MB
def test_what_is_computed_of_properties_is_what_spark_asks_for(tmp_path: Path) -> None:
    """Executors of one SparkContext after another, in one JVM."""
    with ControlPlane.start(components=()) as plane:
        found = list(sampled(PINS[0], CASES, Door(plane), tmp_path))
    assert [one.case for one in found] == list(CASES)
    assert [one for one in found if not one.is_equal] == []
