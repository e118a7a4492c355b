"""The table of calls: every request is made from it, so its rights are the ones used."""

from pathlib import Path

import pytest

from tutti.kube import calls, client
from tutti.kube.calls import Call


@pytest.mark.parametrize(
    ("call", "place", "method", "path"),
    [
        (Call.LIST_NODES, (), "GET", "/api/v1/nodes"),
        (Call.GET_POD, ("ml", "a-0"), "GET", "/api/v1/namespaces/ml/pods/a-0"),
        (Call.BIND, ("ml", "a-0"), "POST", "/api/v1/namespaces/ml/pods/a-0/binding"),
        (Call.EVICT, ("ml", "a-0"), "POST", "/api/v1/namespaces/ml/pods/a-0/eviction"),
        (Call.GET_JOB, ("ml", "a"), "GET", "/apis/batch/v1/namespaces/ml/jobs/a"),
        (Call.GET_CONFIG_MAP, ("ml", "c"), "GET", "/api/v1/namespaces/ml/configmaps/c"),
        (Call.CREATE_EVENT, ("ml",), "POST", "/api/v1/namespaces/ml/events"),
        (
            Call.PATCH_POD_GROUP_STATUS,
            ("ml", "a"),
            "PATCH",
            "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups/a/status",
        ),
        (
            Call.DELETE_RESERVATION,
            ("ml", "uid"),
            "DELETE",
            "/apis/tutti.dev/v1alpha1/namespaces/ml/reservations/uid",
        ),
    ],
)
def test_a_call_knows_its_method_and_path(
    call: Call, place: tuple[str, ...], method: str, path: str
) -> None:
    assert (call.method, call.path(*place)) == (method, path)


@pytest.mark.parametrize("call", Call)
def test_no_right_is_named_that_no_call_uses(call: Call) -> None:
    used = [Path(str(module.__file__)).read_text() for module in (calls, client)]
    assert any(f"Call.{call.name}" in text for text in used)
