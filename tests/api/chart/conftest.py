"""One control plane for all tests of the chart that need one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .places import place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Place


@pytest.fixture(scope="package")
def shell() -> Iterator[Place]:
    """A person's shell on a cluster where nothing is installed but what tests have left."""
    yield from place()
