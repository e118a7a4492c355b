"""One application of the real Spark, from its submission by docs/spark.md to its result.

Fetches Spark once, 450 MB from PyPI. The other versions, and the other examples of the page, are
`python -m tests.conformance.spark_jobs`, in `make conformance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.spark_jobs import job
from tests.conformance.spark_sizes import environment
from tests.conformance.spark_sizes.pins import PINS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.spark_sizes.pins import Pin


@pytest.fixture(scope="module")
def newest() -> Pin:
    """The newest Spark, installed."""
    environment.installed(PINS[0])
    return PINS[0]


@pytest.mark.timeout(1800)  # the first time it is fetched
def test_pi_is_computed_by_three_executors_that_were_placed_whole(
    newest: Pin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Driver and executors are real processes, each started once its pod was bound."""
    done = job.done(newest, tmp_path)
    with capsys.disabled():
        print(f"\n{done}")
    done.check()
