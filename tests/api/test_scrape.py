"""A real Prometheus scrapes the running operator, every second."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..conformance.prometheus import queries
from ..conformance.prometheus.__main__ import main

if TYPE_CHECKING:
    import pytest


def test_all_that_dashboard_and_alerts_ask_for_is_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`python -m tests.conformance.prometheus`: every query has data, every rule is evaluated."""
    code, said = main(), capsys.readouterr().out
    asked, rules = len(queries.all_of_them()), len(list(queries.of_rules()))
    assert said == f"{asked} of {asked} queries return data; {rules} rules run\n"
    assert code == 0
