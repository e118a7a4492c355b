"""What people may do with gangs who have the usual roles, on a real API server."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.api.bodies import held
from tests.harness.controlplane.errors import RequestError
from tests.harness.rig import pod_group

from .places import ROOT, USERS, ShellError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.controlplane import ControlPlane

    from .places import Place

AGGREGATED_SECONDS = 30
IN_FORCE_SECONDS = 60
COUNT_SECONDS = 3  # more than enough, once the controller knows the kind
TEMPLATE = {"resources": {"cpu": "1"}}
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GROUPS = f"/apis/tutti.dev/v1alpha1/namespaces/{USERS}/podgroups"
RESERVATIONS = f"/apis/tutti.dev/v1alpha1/namespaces/{USERS}/reservations"
LOOKS = frozenset({"get", "list", "watch"})
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
RESOURCES = tuple(
    f"{kind}{part}"
    for kind in ("podgroups", "queues", "reservations", "topologies")
    for part in ("", "/status")
)
READS = dict.fromkeys(("queues", "reservations", "topologies"), LOOKS)
MAY: Mapping[str, Mapping[str, frozenset[str]]] = {
    "view": {"podgroups": LOOKS, **READS},
    "edit": {"podgroups": LOOKS | WRITES, **READS},
    "admin": {"podgroups": LOOKS | WRITES, **READS},
}


@pytest.fixture(scope="module")
def people(shell: Place) -> Iterator[Place]:
    """A release, and a tenant of a namespace for each role."""
    shell.install(rest="--set=replicas=0")
    for role in MAY:
        binding = f"kubectl -n {USERS} create rolebinding {role} --clusterrole={role}"
        shell.run(f"{binding} --user=tenant-{role}")
    deadline = time.monotonic() + AGGREGATED_SECONDS
    rights = [(role, "podgroups", verb) for role in MAY for verb in MAY[role]["podgroups"]]
    while not all(_may(shell, *right) for right in rights):
        assert time.monotonic() < deadline, "the roles are not aggregated"
        time.sleep(0.2)
    yield shell
    shell.run(f"kubectl -n {USERS} delete rolebinding {' '.join(MAY)}")
    shell.helm("uninstall")


def _may(shell: Place, role: str, resource: str, verb: str) -> bool:
    resource, _, part = resource.partition("/")
    about = {"group": "tutti.dev", "resource": resource, "subresource": part, "verb": verb}
    spec = {"user": f"tenant-{role}", "resourceAttributes": {"namespace": USERS, **about}}
    answer = shell.plane.request("POST", REVIEWS, {"spec": spec})
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize("role", MAY)
def test_the_usual_roles_hold_for_gangs_and_nobody_writes_what_is_tuttis(
    people: Place, role: str
) -> None:
    """Who may see pods may see gangs, who may make pods may make gangs; none makes Reservations."""
    found = {
        resource: frozenset(verb for verb in LOOKS | WRITES if _may(people, role, resource, verb))
        for resource in RESOURCES
    }
    assert {resource: verbs for resource, verbs in found.items() if verbs} == MAY[role]


def test_whoever_runs_a_namespace_cannot_forge_or_edit_a_reservation(people: Place) -> None:
    """Nor give that right to anybody, nor set a status, nor label the namespace for a queue."""
    plane, standing = people.plane, held()
    path = f"{RESERVATIONS}/{standing['metadata']['name']}"
    made = plane.request("POST", RESERVATIONS, standing)
    group = pod_group("train", 1, namespace=USERS) | {"status": {"phase": "Bound"}}
    tries = (
        f"create -f - <<< '{json.dumps(held())}'",
        f"patch reservation {standing['metadata']['name']} --type=merge -p '{{}}'",
        f"delete reservation {standing['metadata']['name']}",
        "patch ptg train --subresource=status --type=merge -p '{}'",
        f"label namespace {USERS} team=vision",
        "create role forger --verb=create --resource=reservations.tutti.dev",
        "create rolebinding forger --clusterrole=tutti-system.tutti --user=tenant-admin",
    )
    try:
        assert "status" not in plane.request("POST", GROUPS, group)
        for line in tries:
            with pytest.raises(ShellError, match="forbidden"):
                people.run(f"kubectl -n {USERS} --as=tenant-admin {line}")
        assert plane.request("GET", path)["spec"] == made["spec"]
    finally:
        plane.request("DELETE", path)
        plane.request("DELETE", f"{GROUPS}/train")


def test_the_docs_quota_and_policy_tame_a_tenant(people: Place) -> None:
    """As docs/security.md writes them, for a namespace of that name; but for the number."""
    plane, path = people.plane, "/apis/tutti.dev/v1alpha1/namespaces/tenant/podgroups"
    plane.create_namespace("tenant")
    (written,) = re.findall(r"(?ms)^```yaml\n(.*?)^```", (ROOT / "docs/security.md").read_text())
    plane.kubectl("apply", "-f", "-", input=written.replace('"100"', '"1"'))
    _await_counted(plane)
    refused = {
        "let the priority be that of the pods": {"priorityClassName": "high"},
        "room is not held here": {"roles": [{"name": "a", "minMember": 1, "template": TEMPLATE}]},
        "exceeded quota: gangs": {},
    }
    plane.request("POST", path, pod_group("first", 1, namespace="tenant"))
    for number, (said, more) in enumerate(refused.items()):
        group = pod_group(f"more-{number}", 1, namespace="tenant")
        group["spec"] |= more
        deadline = time.monotonic() + IN_FORCE_SECONDS
        while said not in (answer := _dry(plane, path, group)):
            assert time.monotonic() < deadline, answer
            time.sleep(0.2)
    plane.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "--all")


def _await_counted(plane: ControlPlane) -> None:
    """Before that, nobody knows how many there are.

    The controller looks for new kinds every 30 s, and then at no quota that it has seen: the quota
    is made again, under other names, until one counts. The others, of which nobody knows how much
    is used, go: they would refuse all.
    """
    quota = json.loads(plane.kubectl("get", "-n", "tenant", "quota/gangs", "-o", "json"))
    made = {key: quota[key] for key in ("apiVersion", "kind", "spec")}
    path = "/api/v1/namespaces/tenant/resourcequotas"
    deadline = time.monotonic() + IN_FORCE_SECONDS
    names = {"gangs"}
    while (silent := _uncounted(plane, path)) == names:
        assert time.monotonic() < deadline, "the quota does not count"
        time.sleep(COUNT_SECONDS)
        metadata = {"name": f"gangs-{len(names)}", "namespace": "tenant"}
        plane.request("POST", path, {**made, "metadata": metadata})
        names.add(metadata["name"])
    for name in silent:
        plane.request("DELETE", f"{path}/{name}")
    groups = "/apis/tutti.dev/v1alpha1/namespaces/tenant/podgroups"
    while (answer := _dry(plane, groups, pod_group("first", 1, namespace="tenant"))) != "taken":
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)


def _uncounted(plane: ControlPlane, path: str) -> set[str]:
    items = plane.request("GET", path)["items"]
    return {of["metadata"]["name"] for of in items if not of.get("status", {}).get("used")}


def _dry(plane: ControlPlane, path: str, body: object) -> str:
    """What the API server says to an object that it would not take, if it would not."""
    try:
        plane.request("POST", f"{path}?dryRun=All", body)
    except RequestError as refusal:
        return str(refusal)
    return "taken"
