"""docs/spark.md: which of its commands is executed where, so that none is there untried."""

from __future__ import annotations

import pytest

from . import page
from .examples import submitted

# How a command begins, or what it has in it, and where it is executed.
EXECUTED = {
    "tutti plan ": "tests/unit/cli/output/test_spark_gangs.py",
    "helm upgrade ": "tests/api/chart/test_spark.py",
    "--name pi ": "job.py, examples.py",
    "--name etl ": "examples.py",
    "--name nightly ": "examples.py",
    "pyspark ": "examples.py",
    "kubectl get ptg ": "examples.py",
}


@pytest.mark.parametrize("line", page.commands())
def test_each_command_of_the_page_is_executed_somewhere(line: str) -> None:
    assert [words for words in EXECUTED if words in line] != []


@pytest.mark.parametrize("words", list(EXECUTED))
def test_what_is_said_to_be_executed_is_on_the_page(words: str) -> None:
    assert any(words in line for line in page.commands())


def test_what_the_operator_would_submit_is_all_that_the_page_says() -> None:
    """Nothing in its manifest is passed over in silence."""
    shell = page.Shell({"API_SERVER": "https://10.0.0.1:6443"}, page.ROOT)
    app = page.manifest("SparkApplication")
    words = submitted(app, shell)
    assert words[:3] == ["spark-submit", "--master", "k8s://https://10.0.0.1:6443"]
    assert "spark.kubernetes.scheduler.name=tutti" in words
    assert "spark.executor.instances=2" in words
    assert words[-1] == app["spec"]["mainApplicationFile"]
    app["spec"]["driver"]["coreLimit"] = "1200m"
    with pytest.raises(AssertionError, match="coreLimit"):
        submitted(app, shell)
