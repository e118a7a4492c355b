"""What the tests against a real API server share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..harness.controlplane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One API server for all tests of this tier, with kwok and kube-controller-manager."""
    with ControlPlane.start(components=("kwok", "controller-manager")) as plane:
        yield plane
