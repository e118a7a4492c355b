"""No test here waits for a watch: what it shows, and when, each of them says itself."""

from __future__ import annotations

import pytest

from tutti.commit import binding


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "WAIT_SECONDS", 0.0)
