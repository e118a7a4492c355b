"""Of the nodes on which a pod may run, Tutti likes those best that kube-scheduler does."""

from __future__ import annotations

import pytest

from ..conformance.differential.choosing import run, sentences, unnoticed
from ..conformance.differential.running import control_plane
from ..conformance.differential.wishing import WISHES

CASES = 200
# Wrong scores that take the hundreds of choices of `make conformance`, where all must be noticed.
RARE = {"terminating pods are spread, too"}


@pytest.mark.timeout(300)
def test_every_pod_is_bound_to_a_node_that_tutti_likes_best() -> None:
    with control_plane() as plane:
        choices = run(plane, CASES, seed=1)
    assert not choices.wrong, "\n".join(sentences(choices))
    assert choices.cases >= CASES
    assert choices.rows.keys() == WISHES.keys()
    assert set(unnoticed(choices.agreed)) <= RARE
