"""What `helm uninstall` leaves, and what a later installation makes of it: docs/operations.md."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.bodies import held
from tests.harness.operator_process import CRDS, OperatorProcess
from tests.harness.proxy import Proxy, refuse
from tests.harness.rig import Rig, members, pod, pod_group

from .places import NAMESPACE, ROOT, ShellError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.proxy import Call

    from .places import Place

LEFT = "left"
LARGE = 5  # cpu of a member: one fits on each of the three nodes
QUIET_SECONDS = 3.0  # several times what a cycle takes
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/tutti"
TUTTIS = "/apis/tutti.dev/v1alpha1"


def test_who_waits_and_who_is_bound_by_half_are_served_by_a_later_installation(
    shell: Place,
) -> None:
    """Until then everything stays as it is: what runs, promises, and the Lease, too."""
    shell.plane.create_namespace(LEFT)
    shell.install()
    with Proxy(shell.plane.server, shell.plane.authority) as proxy:
        rig = Rig(shell.plane, _operator(shell, "first", proxy))
        rig.is_outlived = True
        with rig, proxy.rule(_binds_the_second, refuse(503)):
            with _running(rig):
                promised = _begin(rig)
            before = _all(rig)
            shell.helm("uninstall")
            assert _all(rig) == before
            _nobody_else_serves(rig, shell)
            shell.install()
            rig.operator = _operator(shell, "later")
            with _running(rig):
                rig.until_bound("waits", 1, LEFT)
                rig.until_bound("partly", 2, LEFT)
                rig.until(lambda: not rig.reservations(LEFT), "the promise is kept")
                lease = shell.plane.request("GET", LEASE)
        assert lease["metadata"]["uid"] in before
        assert lease["spec"]["holderIdentity"] == "later"
        kept = {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in rig.pods("partly", LEFT)
        }
        assert kept == promised
    shell.helm("uninstall")
    shell.run(f"kubectl delete namespace {LEFT}")


@contextmanager
def _running(rig: Rig) -> Iterator[None]:
    """Its operator runs, and is stopped as the pods of a release are."""
    rig.operator.start()
    try:
        yield
    finally:
        assert rig.operator.stop() == 0


def _operator(shell: Place, identity: str, proxy: Proxy | None = None) -> OperatorProcess:
    """A replica of the release, with its account's rights."""
    account = shell.plane.kubeconfig_for_service_account(NAMESPACE, "tutti")
    return OperatorProcess(
        shell.plane,
        environment={"TUTTI_IDENTITY": identity},
        kubeconfig=proxy.kubeconfig(account) if proxy else account,
    )


def _binds_the_second(call: Call) -> bool:
    return call.path.endswith("/partly-1/binding")


def _begin(rig: Rig) -> Mapping[str, str]:
    """One gang runs, one is bound by half, one has no room; answers the second's placement."""
    for name, n in (("runs", 1), ("partly", 2)):
        rig.create(pod_group(name, n, namespace=LEFT))
        rig.create(*members(name, n, namespace=LEFT, cpu=LARGE))
        rig.until_bound(name, 1, LEFT)
    rig.create(pod_group("waits", 1, namespace=LEFT), _job("waits"))
    rig.until_waiting("waits", "NotEnoughRoom", LEFT)
    rig.until(lambda: _running_pods(rig) == 2, "what is bound runs")
    (standing,) = rig.reservations(LEFT)
    return {
        pod["name"]: entry["node"]
        for entry in standing["spec"]["placement"]
        for pod in entry["pods"]
    }


def _running_pods(rig: Rig) -> int:
    return sum(pod["status"]["phase"] == "Running" for pod in rig.pods(namespace=LEFT))


def _job(group: str) -> dict[str, Any]:
    """A Job of one member."""
    one = pod("unnamed", group, namespace=LEFT, cpu=LARGE)
    template = {
        "metadata": {"labels": one["metadata"]["labels"]},
        "spec": one["spec"] | {"restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": group, "namespace": LEFT},
        "spec": {"template": template},
    }


def _all(rig: Rig) -> Mapping[str, object]:
    """What users and Tutti have made, by uid: what is asked of it, and what has become of it."""
    groups = rig.plane.request("GET", f"{TUTTIS}/namespaces/{LEFT}/podgroups")["items"]
    lease = rig.plane.request("GET", LEASE)
    there = (*groups, *rig.pods(namespace=LEFT), *rig.reservations(LEFT), lease)
    return {
        each["metadata"]["uid"]: (each["metadata"]["name"], each["spec"], each.get("status"))
        for each in there
    }


def _nobody_else_serves(rig: Rig, shell: Place) -> None:
    """Though there is room for who waits: and neither a pod nor a Job can be told of another."""
    rig.delete("ptg", "runs", LEFT)
    rig.delete("pod", "runs-0", LEFT)
    time.sleep(QUIET_SECONDS)
    assert (rig.bound("waits", LEFT), rig.bound("partly", LEFT)) == (0, 1)
    (waiting,) = rig.pods("waits", LEFT)
    other = {"schedulerName": "default-scheduler"}
    for kind, name, spec in (
        ("pod", waiting["metadata"]["name"], other),
        ("job", "waits", {"template": {"spec": other}}),
    ):
        patch = f"""-p '{str({"spec": spec}).replace("'", '"')}'"""
        with pytest.raises(ShellError, match=r"may not change|immutable"):
            shell.run(f"kubectl -n {LEFT} patch {kind} {name} {patch}")


def test_with_the_crds_every_pod_group_and_reservation_goes(shell: Place) -> None:
    """By the command of the page; none is there when the CRDs come again."""
    shell.plane.install_crds(CRDS)
    (line,) = re.findall(
        r"(?m)^\$ (kubectl delete crd .*)$", (ROOT / "docs/operations.md").read_text()
    )
    kinds = {"podgroups": pod_group("train", 1, namespace="default"), "reservations": held()}
    for kind, body in kinds.items():
        shell.plane.request("POST", f"{TUTTIS}/namespaces/default/{kind}", body)
    shell.run(line)
    shell.plane.install_crds(CRDS)
    assert shell.run("kubectl get podgroups,reservations --all-namespaces --output=name") == ""
