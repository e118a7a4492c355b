"""PodDisruptionBudgets, as the eviction API reads them."""

from typing import Any

import pytest

from tutti.kube import kinds, wire
from tutti.model.cluster import DisruptionBudget
from tutti.model.inter_pod import Requirement

APP = {"matchLabels": {"app": "x"}}


def read(selector: Any = APP, generation: int = 2, **status: int) -> DisruptionBudget:
    body = {
        "metadata": {"namespace": "ml", "name": "keep", "uid": "u", "generation": generation},
        "spec": {} if selector is None else {"selector": selector},
        "status": {"observedGeneration": 2, **status},
    }
    return kinds.decode_budget(wire.parse_one(body, kinds.BudgetObject))


def test_what_is_allowed_now_and_once_all_pods_are_healthy() -> None:
    budget = read(disruptionsAllowed=1, expectedPods=4, desiredHealthy=2, currentHealthy=3)
    assert (str(budget), budget.allowed, budget.most) == ("ml/keep", 1, 2)
    assert budget.selector == (Requirement("app", "In", ("x",)),)
    below = read(disruptionsAllowed=-1, expectedPods=1, desiredHealthy=2)
    assert (below.allowed, below.most) == (0, 0)


def test_a_status_that_is_older_than_the_spec_allows_nothing() -> None:
    budget = read(generation=3, disruptionsAllowed=4, expectedPods=4)
    assert (budget.allowed, budget.most) == (0, 0)


@pytest.mark.parametrize(
    ("selector", "requirements"),
    [({}, ()), (None, None), ({"matchExpressions": [{"key": "", "operator": "In"}]}, None)],
    ids=["all", "none", "malformed"],
)
def test_an_empty_selector_selects_all_and_one_that_cannot_be_read_none(
    selector: Any, requirements: Any
) -> None:
    assert read(selector).selector == requirements
