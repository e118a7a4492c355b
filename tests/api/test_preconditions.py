"""What the API server makes of the preconditions that docs/decisions/0005 stands on."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tutti.kube import errors
from tutti.kube.access import Access
from tutti.kube.client import Client
from tutti.kube.codec import encode
from tutti.model.cluster import Phase
from tutti.model.keys import PodKey

from ..harness.controlplane import node_manifest
from .test_control_plane import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tutti.model.cluster import Member

    from ..harness.controlplane import ControlPlane

NAMESPACE = NODE = "preconditions"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A namespace and a node of these tests' own."""
    control_plane.create_namespace(NAMESPACE)
    control_plane.apply([node_manifest(NODE, cpu=8, memory="32Gi")])
    yield control_plane
    control_plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods")
    control_plane.request("DELETE", f"/api/v1/nodes/{NODE}")


def make(plane: ControlPlane, name: str, *, is_running: bool) -> None:
    """Make a pod that runs, or one without a node."""
    spec: dict[str, Any] = {
        "schedulerName": "nobody",
        "containers": [{"name": "main", "image": "none"}],
    }
    if is_running:
        spec["nodeName"] = NODE
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": name}}
    plane.create([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])
    url = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"
    wanted = Phase.RUNNING if is_running else Phase.PENDING
    until(lambda: plane.request("GET", url)["status"]["phase"] == wanted, "the pod's phase")


def allow_one(plane: ControlPlane, name: str) -> None:
    """Make a disruption budget that allows the eviction of the pod of that name."""
    spec = {"minAvailable": 0, "selector": {"matchLabels": {"app": name}}}
    metadata = {"name": name, "namespace": NAMESPACE}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata}
    plane.create([{**body, "spec": spec}])
    url = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/{name}"
    until(
        lambda: plane.request("GET", url).get("status", {}).get("disruptionsAllowed") == 1,
        "the budget allows it",
    )


async def kept(api: Client, member: Member) -> Member:
    """Change the pod, as whoever keeps it from being evicted does."""
    sentence = f"no eviction of version {member.version} will succeed"
    why = encode.Why("NotEvicted", sentence, time.time(), encode.DISRUPTED)
    return await api.say_of_pod(member, why)


@pytest.mark.parametrize("has_budget", [False, True], ids=["free", "within a budget"])
@pytest.mark.parametrize("is_running", [False, True], ids=["pending", "running"])
async def test_an_eviction_of_a_pod_that_was_changed_since_is_refused(
    plane: ControlPlane, *, is_running: bool, has_budget: bool
) -> None:
    name = f"changed-{int(is_running)}-{int(has_budget)}"
    key = PodKey(NAMESPACE, name)
    make(plane, name, is_running=is_running)
    if has_budget and is_running:
        allow_one(plane, name)
    async with Client(await Access.load(str(plane.kubeconfig))) as api:
        before = await api.read_member(key)
        now = await kept(api, before)
        assert now.version != before.version
        with pytest.raises(errors.Conflict):
            await api.evict(before)
        assert await api.read_member(key) == now, "a refused eviction changes nothing"
        with pytest.raises(errors.Conflict):
            await kept(api, before)


@pytest.mark.parametrize("has_budget", [False, True], ids=["free", "within a budget"])
@pytest.mark.parametrize("is_running", [False, True], ids=["pending", "running"])
async def test_an_eviction_of_a_pod_as_it_is_succeeds(
    plane: ControlPlane, *, is_running: bool, has_budget: bool
) -> None:
    """The API server changes the pod itself before it deletes it, and allows for that."""
    name = f"same-{int(is_running)}-{int(has_budget)}"
    key = PodKey(NAMESPACE, name)
    make(plane, name, is_running=is_running)
    if has_budget and is_running:
        allow_one(plane, name)
    async with Client(await Access.load(str(plane.kubeconfig))) as api:
        await kept(api, await api.read_member(key))
        await api.evict(await api.read_member(key))
        with suppress(errors.Gone):  # it may have ended already
            assert (await api.read_member(key)).terminating
