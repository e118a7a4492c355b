"""Contradictory and bad objects of other projects, on a real API server: said, and nothing lost."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tutti.operator.kopf_lists import CHECK_SECONDS

from ..harness.controlplane.pins import chosen_k8s
from ..harness.rig import Rig, pod, pod_group
from .bodies import crd_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.operator_process import Process

ROOT = Path(__file__).parents[1]
KUBERNETES, PLUGINS, VOLCANO = (
    "scheduling.k8s.io/v1beta1",
    "scheduling.x-k8s.io/v1alpha1",
    "scheduling.volcano.sh/v1beta1",
)
CRDS = {
    PLUGINS: ROOT / "bench" / "e2e" / "coscheduling-crd.yaml",
    VOLCANO: ROOT / "chaos" / "faults" / "volcano-crd.yaml",
}
SOURCES = ",".join(
    f"podgroups.{version.partition('/')[0]}" for version in (KUBERNETES, PLUGINS, VOLCANO)
)
VALUES = [f"settings.gangSources={{{SOURCES}}}"]
ENVIRONMENT = {"TUTTI_GANG_SOURCES": SOURCES}
BAD_WORDS = ("Traceback", "Exception")
# The gangs that a pod may name, in the order in which they count, by the versions of their APIs.
KINDS = {"tutti": "", "kubernetes": KUBERNETES, "volcano": VOLCANO, "plugins": PLUGINS}
IS_NATIVE = chosen_k8s() == "1.37"  # whether the API server has the version that Tutti reads


def group(version: str, name: str, least: int) -> dict[str, Any]:
    """A PodGroup of this API; without one, of Tutti's."""
    if not version:
        return pod_group(name, least)
    spec: dict[str, Any] = {"minMember": least}
    if version == KUBERNETES:
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, **groups: str) -> dict[str, Any]:
    """A pod of one CPU; keywords are names of groups by the source, which may be several."""
    body = pod(name, groups.get("tutti", ""), cpu=1)
    if "kubernetes" in groups:
        body["spec"]["schedulingGroup"] = {"podGroupName": groups["kubernetes"]}
    if "plugins" in groups:
        body["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = groups["plugins"]
    if "volcano" in groups:
        body["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = groups["volcano"]
    return body


def address(version: str, name: str) -> str:
    """Where a PodGroup is."""
    return f"/apis/{version}/namespaces/ml/podgroups/{name}"


def says(rig: Rig, name: str) -> str:
    """What the pod says of why it waits."""
    line = rig.pod_says(name)
    return f"{line.get('reason', '')}: {line.get('message', '')}"


def until_says(rig: Rig, name: str, *words: str) -> None:
    """Wait until a pod says all of these words."""
    rig.until(lambda: all(word in says(rig, name) for word in words), f"{name} says {words}")


def bound(rig: Rig, *names: str) -> list[bool]:
    """Whether each of these pods has a node."""
    return ["nodeName" in rig.pod(name)["spec"] for name in names]


def running(rig: Rig) -> Process:
    """The process of the operator, which is running."""
    process = rig.operator.process
    assert process is not None
    assert process.poll() is None, rig.operator.tail()
    return process


def assert_undisturbed(rig: Rig, started: Process) -> None:
    """The operator is still the process that was started, and nothing went wrong in it."""
    assert running(rig) is started
    log = rig.operator.log.read_text()
    assert not [line for line in log.splitlines() if any(word in line for word in BAD_WORDS)]


@contextmanager
def contradicted(cpu: int) -> Iterator[Rig]:
    """A node, and Tutti with all these sources."""
    features = ("native-gang",) if IS_NATIVE else ()
    with Rig.start(*features, operator=False, values=VALUES, environment=ENVIRONMENT) as rig:
        for crd in CRDS.values():
            rig.plane.install_crds(crd)
        rig.operator.start()
        rig.nodes(1, cpu=cpu, memory="16Gi")
        yield rig


def test_groups_of_one_name_and_of_different_kinds_are_different_gangs() -> None:
    """A pod that names several is in the first of the written order, and an Event says so."""
    of = [source for source in KINDS if IS_NATIVE or source != "kubernetes"]
    with contradicted(cpu=12) as rig:
        started = running(rig)
        rig.create(*(group(KINDS[source], "same", 2) for source in of))
        rig.create(*(member(f"{source}-0", **{source: "same"}) for source in of))
        for source in of:
            until_says(rig, f"{source}-0", "1 of 2 members exist")
        rig.create(member("volcano-1", volcano="same"))
        rig.until(lambda: rig.bound() == 2, "one of the gangs is whole")
        rest = [source for source in of if source != "volcano"]
        assert bound(rig, *(f"{source}-0" for source in rest)) == [False] * len(rest)
        rig.create(*(member(f"{source}-1", **{source: "same"}) for source in rest))
        rig.until(lambda: rig.bound() == 2 * len(of), "all of them are whole")

        rig.create(member("both", plugins="same", volcano="same"))
        (event,) = rig.until(lambda: rig.events("both"), "it is said")
        assert event["reason"] == "SeveralGangs"
        assert event["message"] == (
            "The pod is a member of PodGroup same of scheduling.volcano.sh. It also names PodGroup "
            "same of scheduling.x-k8s.io, which does not count it: a pod is in one gang."
        )
        assert_undisturbed(rig, started)


@pytest.mark.skipif(not IS_NATIVE, reason="the API is 1.37's")
def test_a_group_of_kubernetes_that_is_forged_or_deleted_starts_nobody() -> None:
    """Kubernetes keeps such a group while a pod names it (podgroup-protection)."""
    with contradicted(cpu=3) as rig:
        started = running(rig)
        rig.create(group(KUBERNETES, "forged", 2), member("forged-0", kubernetes="forged"))
        until_says(rig, "forged-0", "1 of 2 members exist")
        line = {
            "type": "PodGroupInitiallyScheduled",
            "status": "True",
            "reason": "Scheduled",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"status": {"conditions": [line]}}
        rig.plane.request("PATCH", f"{address(KUBERNETES, 'forged')}/status", status)
        rig.create(pod("other", cpu=1))
        rig.until(lambda: bound(rig, "other") == [True], "other pods are served")
        assert bound(rig, "forged-0") == [False]
        rig.plane.request("DELETE", address(KUBERNETES, "forged"))
        rig.create(member("forged-1", kubernetes="forged"))  # too late: two could start
        for name in ("forged-0", "forged-1"):
            until_says(rig, name, "the PodGroup is being deleted")
        assert bound(rig, "forged-0", "forged-1") == [False, False]
        rig.plane.kubectl("delete", "pods", "--all", "-n", "ml")
        assert_undisturbed(rig, started)


def test_bad_groups_hurt_only_themselves() -> None:
    """Absurd sizes, a forged phase, and a group that is deleted while its pods wait or run."""
    with contradicted(cpu=3) as rig:
        started = running(rig)
        for source in ("plugins", "volcano"):
            body = group(KINDS[source], "vast", 10**9)
            rig.create(body, member(f"vast-{source}", **{source: "vast"}))
            until_says(rig, f"vast-{source}", "1 of 1000000000 members exist")

        rig.create(group(VOLCANO, "phased", 2), member("phased-0", volcano="phased"))
        until_says(rig, "phased-0", "1 of 2 members exist")
        for phase in ("Running", "Completed", "Unknown", "nonsense"):
            body = {"status": {"phase": phase}}
            rig.plane.request("PATCH", address(VOLCANO, "phased"), body)
        rig.create(pod("other", cpu=1))
        rig.until(lambda: bound(rig, "other") == [True], "other pods are served")
        assert bound(rig, "phased-0") == [False]

        for version, name in ((VOLCANO, "phased"), (PLUGINS, "vast")):
            rig.plane.request("DELETE", address(version, name))
        for name in ("phased-0", "vast-plugins"):
            until_says(rig, name, "PodGroupNotFound")
        rig.create(group(PLUGINS, "whole", 2))
        rig.create(*(member(f"whole-{i}", plugins="whole") for i in range(2)))
        rig.until(lambda: bound(rig, "whole-0", "whole-1") == [True] * 2, "it starts whole")
        rig.plane.request("DELETE", address(PLUGINS, "whole"))
        rig.quiet(2.0)
        assert bound(rig, "whole-0", "whole-1") == [True] * 2
        rig.plane.kubectl("delete", "pods", "--all", "-n", "ml")
        assert_undisturbed(rig, started)


def test_an_api_that_is_served_in_another_version_alone_is_no_such_api() -> None:
    """Once the version that Tutti reads is served, gangs start, also with unknown fields."""
    name, unknown = "podgroups.scheduling.x-k8s.io", {"spec": {"spread": {"every": "rack"}}}
    values = [f"settings.gangSources={{{name}}}"]
    with Rig.start(values=values, environment={"TUTTI_GANG_SOURCES": name}) as rig:
        started = running(rig)
        rig.nodes(1, cpu=3, memory="16Gi")
        newer = crd_of(name, "PodGroup", "v1beta2")
        rig.plane.install([newer])
        body = group("scheduling.x-k8s.io/v1beta2", "sum", 2)
        rig.create(body | {"spec": body["spec"] | unknown["spec"]})
        rig.create(*(member(f"sum-{i}", plugins="sum") for i in range(2)), pod("other", cpu=1))
        until_says(rig, "sum-0", "PodGroupNotFound")
        rig.until(lambda: bound(rig, "other") == [True], "other pods are served")
        older = newer["spec"]["versions"][0] | {"name": "v1alpha1", "storage": False}
        versions = [*newer["spec"]["versions"], older]
        crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        rig.plane.request("PATCH", crd, {"spec": {"versions": versions}})
        rig.until(lambda: rig.bound() == 3, "the gang starts whole", 2 * CHECK_SECONDS)
        assert_undisturbed(rig, started)
