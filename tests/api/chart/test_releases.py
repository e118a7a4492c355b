"""Helm on a real API server: install, upgrade, roll back, uninstall, and a second release."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.operator_process import OperatorProcess
from tests.harness.rig import members, pod_group

from .places import CHART, HAS_POLICIES, NAMESPACE, ROOT, USERS, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GROUPS = f"/apis/tutti.dev/v1alpha1/namespaces/{USERS}/podgroups"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.tutti.dev"
POLICIES = ",mutatingadmissionpolicies,mutatingadmissionpolicybindings"
KINDS = (
    "deployments,replicasets,pods,serviceaccounts,poddisruptionbudgets,networkpolicies,roles,"
    f"rolebindings,clusterroles,clusterrolebindings,secrets{POLICIES if HAS_POLICIES else ''}"
)


@pytest.fixture(scope="module")
def installed(shell: Place) -> Iterator[Place]:
    """A release with the defaults; every test leaves it so."""
    shell.install()
    yield shell
    shell.helm("uninstall")


def _told(shell: Place, name: str, release: str = "tutti") -> set[str]:
    """What the replicas are told by a variable."""
    return {
        variable["value"]
        for pod in shell.pods(release)
        for variable in pod["spec"]["containers"][0]["env"]
        if variable["name"] == name
    }


def test_what_helm_installs_with_the_defaults_runs(installed: Place) -> None:
    """Admitted by the API server, on two nodes of two zones, before everything of the users."""
    pods = installed.pods()
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    assert {pod["spec"]["priority"] for pod in pods} == {2_000_000_000}
    (budget,) = installed.items(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets")
    assert budget["spec"]["maxUnavailable"] == 1
    mounts = [mount for pod in pods for mount in pod["spec"]["containers"][0]["volumeMounts"]]
    assert any("serviceaccount" in mount["mountPath"] for mount in mounts)


def test_what_users_have_made_survives_the_release(installed: Place) -> None:
    """An upgrade, its rollback, and the end; nothing else of the release stays."""
    made = installed.plane.request("POST", GROUPS, pod_group("kept", 2, namespace=USERS))
    path = f"{GROUPS}/kept"

    def survives() -> bool:
        there: dict[str, Any] = installed.plane.request("GET", path)["metadata"]
        is_same: bool = there["uid"] == made["metadata"]["uid"]
        return is_same and "deletionTimestamp" not in there

    served = f"kubectl -n {USERS} get roles,rolebindings --output=name"
    options = "--set=settings.strategy=bestfit,replicas=1,networkPolicy.enabled=true"
    options += f",settings.namespaces={{{USERS}}}"
    installed.helm("upgrade", rest=f"charts/tutti '{options}'")
    assert (_told(installed, "TUTTI_STRATEGY"), len(installed.pods())) == ({"bestfit"}, 1)
    assert _told(installed, "TUTTI_NAMESPACES") == {USERS}
    assert installed.run(served).count("tutti-served") == 2
    assert survives()
    installed.helm("rollback")  # to the one before
    assert (_told(installed, "TUTTI_STRATEGY"), len(installed.pods())) == ({"ilp"}, 2)
    assert installed.run(served) == ""
    assert survives()
    installed.helm("uninstall", rest="--cascade=foreground")  # what it made for these, too
    label = "--selector=app.kubernetes.io/name=tutti --all-namespaces --output=name"
    assert installed.run(f"kubectl get {KINDS} {label}") == ""
    assert survives()
    installed.install()  # over the CRDs that are there
    assert survives()
    installed.plane.request("DELETE", path)


def test_an_upgrade_keeps_the_values_that_were_set_before(shell: Place) -> None:
    """Without `--set` and `-f`."""
    shell.install("keeps", "--set=settings.schedulerName=kept,replicas=0")
    shell.helm("upgrade", "keeps", CHART)
    told = shell.run(f"helm get values keeps --namespace={NAMESPACE} --output=json")
    assert json.loads(told) == {"settings": {"schedulerName": "kept"}, "replicas": 0}
    shell.helm("uninstall", "keeps")


@pytest.mark.parametrize(("release", "namespace"), [("second", NAMESPACE), ("tutti", "elsewhere")])
def test_a_second_release_serves_another_name_beside_the_first(
    installed: Place, release: str, namespace: str
) -> None:
    """Whatever is on: nothing of one is the other's, and the first outlives the second."""
    second = Place(installed.plane, namespace)
    options = "settings.schedulerName=second,admission.enabled=true,networkPolicy.enabled=true"
    second.install(release, f"--set={options}")
    assert _told(installed, "TUTTI_SCHEDULER_NAME") == {"tutti"}
    assert _told(second, "TUTTI_SCHEDULER_NAME", release) == {"second"}
    second.helm("uninstall", release)
    assert len(installed.pods()) == 2
    for kind in ("clusterroles", "clusterrolebindings"):
        path = f"/apis/rbac.authorization.k8s.io/v1/{kind}/{NAMESPACE}.tutti"
        installed.plane.request("GET", path)


def test_two_releases_speak_each_for_the_pod_groups_of_its_own_pods(installed: Place) -> None:
    """And say nothing of the other's; a release upgraded once more writes nothing either."""
    plane, names = installed.plane, ("tutti", "second")
    installed.install("second", "--set=settings.schedulerName=second")
    operators = [
        OperatorProcess(
            plane,
            environment={"TUTTI_SCHEDULER_NAME": name},
            kubeconfig=plane.kubeconfig_for_service_account(NAMESPACE, account),
        )
        for name, account in zip(names, ("tutti", "second-tutti"), strict=True)
    ]
    try:
        for operator, name in zip(operators, names, strict=True):
            operator.start()
            plane.request("POST", GROUPS, pod_group(f"of-{name}", 1, namespace=USERS))
            for pod in members(f"of-{name}", 1, cpu="10m", scheduler=name, namespace=USERS):
                plane.request("POST", f"/api/v1/namespaces/{USERS}/pods", pod)
        for name in names:
            wait = f"wait ptg/of-{name} --for=condition=Bound --timeout=30s"
            installed.run(f"kubectl -n {USERS} {wait}")
        said = f"kubectl -n {USERS} get ptg -o jsonpath='{{.items[*].status.schedulerName}}'"
        assert installed.run(said) == "second tutti"
    finally:
        for operator in operators:
            operator.stop()
        for name in names:
            installed.run(f"kubectl -n {USERS} delete ptg,pod -l=tutti.dev/pod-group=of-{name}")
        installed.helm("uninstall", "second")


def test_the_next_three_commands_start_a_gang(shell: Place) -> None:
    """As the notes print them, for a name of one's own; the operator has the chart's rights."""
    options = "--set=settings.schedulerName=mine,admission.enabled=true"
    notes = shell.install("next", options).partition("NOTES:")[2]
    ready, gang, look, see, *opt_in = _commands(notes)
    assert see == "TUTTI_SCHEDULER_NAME=mine kubectl tutti ui\n"
    assert "deployment/next-tutti" in ready
    assert "successfully rolled out" in shell.run(ready)
    operator = OperatorProcess(
        shell.plane,
        environment={"TUTTI_SCHEDULER_NAME": "mine"},
        kubeconfig=shell.plane.kubeconfig_for_service_account(NAMESPACE, "next-tutti"),
    )
    operator.start()
    try:
        assert "job.batch/hello created" in shell.run(gang)
        shell.run("kubectl wait ptg/hello --for=condition=Bound --timeout=30s")
        assert re.search(r"hello +(Bound|Running) +2 +2 +2", shell.run(look))
        shell.run("kubectl delete job,ptg hello")
    finally:
        operator.stop()
    assert len(opt_in) == HAS_POLICIES
    assert ("WARNING: admission.enabled has no effect" in notes) == (not HAS_POLICIES)
    shell.run("kubectl create namespace opted")
    for command in opt_in:
        assert "labeled" in shell.run(command.replace("<namespace>", "opted"))
    shell.helm("uninstall", "next")


def _commands(notes: str) -> Sequence[str]:
    """The notes' indented blocks, as typed, without the last, which is the next upgrade's."""
    blocks = re.findall(r"(?m)(?:^  .+\n?)+", notes)
    return [re.sub(r"(?m)^  ", "", block) for block in blocks][:-1]


def _line_of(page: str, begin: str) -> str:
    """The command line of a page of the docs that begins so."""
    (found,) = re.findall(rf"(?m)^\$ ({re.escape(begin)}.*)$", (ROOT / page).read_text())
    return str(found)


@pytest.mark.parametrize("begin", ["helm show crds", "tutti crds"])
def test_the_stated_commands_upgrade_crds_that_helm_has_installed(
    installed: Place, begin: str
) -> None:
    """Helm leaves old ones as they are; afterwards they are the new ones, and nothing else."""
    group = installed.plane.request("POST", GROUPS, pod_group("older", 2, namespace=USERS))
    wanted = installed.plane.request("GET", CRD)
    old = copy.deepcopy(wanted)
    spec = old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["onPartial"]
    spec["properties"]["gone"] = {"type": "string"}
    spec["x-kubernetes-validations"].pop()
    installed.plane.request("PUT", CRD, old)
    installed.helm("upgrade", rest="charts/tutti")
    assert installed.plane.request("GET", CRD)["spec"] == old["spec"]
    line = _line_of("docs/operations.md", begin)
    installed.run(f'PATH="$PATH:{ROOT}/.venv/bin" PYTHONPATH={ROOT}/operator; {line}')
    assert installed.plane.request("GET", CRD)["spec"] == wanted["spec"]
    after = installed.plane.request("GET", f"{GROUPS}/older")
    assert (after["metadata"]["uid"], after["spec"]) == (group["metadata"]["uid"], group["spec"])
    installed.plane.request("DELETE", f"{GROUPS}/older")
