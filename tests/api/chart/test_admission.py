"""The admission policy on a real API server: which pods become Tutti's, and which do not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.harness.rig import PAUSE, pod

from .places import HAS_POLICIES, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .places import Place

pytestmark = pytest.mark.skipif(not HAS_POLICIES, reason="the API of the policy is 1.36's")

IN_FORCE_SECONDS = 60
OPTED, OTHER, SECOND = "for-tutti", "for-neither", "for-second"


@pytest.fixture(scope="module")
def server(shell: Place) -> Iterator[Place]:
    """Two releases with their policies in force, and namespaces for each and for neither."""
    for namespace in (OPTED, OTHER, SECOND):
        shell.plane.create_namespace(namespace)
    for namespace, scheduler in ((OPTED, "tutti"), (SECOND, "second")):
        shell.run(f"kubectl label namespace {namespace} tutti.dev/scheduler={scheduler}")
    policy = "admission.enabled=true,replicas=0"
    replaced = "admission.replacedSchedulers={volcano,scheduler-plugins-scheduler}"
    shell.install(rest=f"--set={policy} --set='{replaced}'")
    shell.install("second", f"--set={policy},settings.schedulerName=second")
    deadline = time.monotonic() + IN_FORCE_SECONDS
    while [*_in_force(shell)] != ["tutti", "second", "tutti"]:
        assert time.monotonic() < deadline, "the policies are not in force"
        time.sleep(0.2)
    yield shell
    for release in ("tutti", "second"):
        shell.helm("uninstall", release)


def _in_force(shell: Place) -> Iterator[str]:
    yield _became(shell, OPTED)
    yield _became(shell, SECOND)
    yield _became(shell, OPTED, schedulerName="volcano")


def _became(shell: Place, namespace: str, group: str = "train", **spec: str) -> str:
    """The scheduler that the API server gives to a pod of a group that names none, or this one."""
    body = pod("p", group, namespace=namespace, cpu=1)
    del body["spec"]["schedulerName"]
    body["spec"] |= spec
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    return str(shell.plane.request("POST", path, body)["spec"]["schedulerName"])


UNTOUCHED: Mapping[str, tuple[str, str, Mapping[str, str], str]] = {
    "a namespace that has not opted in": (OTHER, "train", {}, "default-scheduler"),
    "Tutti's own namespace": (NAMESPACE, "train", {}, "default-scheduler"),
    "a pod without a group": (OPTED, "", {}, "default-scheduler"),
    "a pod that names another": (OPTED, "train", {"schedulerName": "yunikorn"}, "yunikorn"),
    "a replaced name elsewhere": (OTHER, "", {"schedulerName": "volcano"}, "volcano"),
    "a replaced name of another release": (SECOND, "", {"schedulerName": "volcano"}, "volcano"),
    "a replaced name with its node": (
        OPTED,
        "",
        {"schedulerName": "volcano", "nodeName": "node-0"},
        "volcano",
    ),
    "a pod that names the second": (OPTED, "train", {"schedulerName": "second"}, "second"),
    "a pod that has its node": (OPTED, "train", {"nodeName": "node-0"}, "default-scheduler"),
}


@pytest.mark.parametrize(("namespace", "group", "spec", "kept"), UNTOUCHED.values(), ids=UNTOUCHED)
def test_all_other_pods_stay_as_they_are(
    server: Place, namespace: str, group: str, spec: Mapping[str, str], kept: str
) -> None:
    assert _became(server, namespace, group, **spec) == kept


@pytest.mark.parametrize("name", ["volcano", "scheduler-plugins-scheduler"])
@pytest.mark.parametrize("group", ["", "train"])
def test_a_name_that_a_controller_hard_codes_is_replaced(
    server: Place, name: str, group: str
) -> None:
    assert _became(server, OPTED, group, schedulerName=name) == "tutti"


def test_the_pods_of_a_job_need_the_label_alone(server: Place) -> None:
    """Those that a controller makes, too."""
    template = {
        "metadata": {"labels": {"tutti.dev/pod-group": "train"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": PAUSE}]},
    }
    body = {"metadata": {"name": "train"}, "spec": {"parallelism": 2, "template": template}}
    server.plane.request("POST", f"/apis/batch/v1/namespaces/{OPTED}/jobs", body)
    path = f"/api/v1/namespaces/{OPTED}/pods"
    deadline = time.monotonic() + IN_FORCE_SECONDS
    while len(pods := server.items(path)) < 2:
        assert time.monotonic() < deadline, "the Job's pods are not made"
        time.sleep(0.2)
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"tutti"}
    assert not any(pod["spec"].get("nodeName") for pod in pods)
    server.run(f"kubectl --namespace={OPTED} delete job train")
