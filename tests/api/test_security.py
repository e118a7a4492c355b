"""What a malicious author of pods or PodGroups achieves: docs/security.md, line by line.

What roles forbid them is in `chart/test_roles`, what the CRDs refuse in `test_crds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ..chaos.soak import flood
from ..harness.controlplane.errors import RequestError
from ..harness.rig import Rig, members, pod, pod_group

if TYPE_CHECKING:
    from collections.abc import Iterator

EVIL = "evil"
GROUPS = "/apis/tutti.dev/v1alpha1/namespaces/{}/podgroups"
FLOOD = 1_000  # ten times as many in `python -m tests.chaos.soak flood`
BALLAST = "x" * 200_000  # of the 262,144 bytes that annotations may have
FAT = 20  # objects of that size
SECRET = "do-not-tell-anybody"
BAD_WORDS = ("Traceback", "Error:", "Exception")
EVERYBODY: dict[str, Any] = {"namespaceSelector": {}, "labelSelector": {}}


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A tenant who means no harm, in ml, and one who does; the operator says all that it can."""
    with Rig.start(environment={"TUTTI_LOG_LEVEL": "debug"}) as started:
        started.plane.create_namespace(EVIL)
        started.nodes(1, cpu=16, memory="64Gi")
        yield started
        log = started.operator.log.read_text()
        assert not [line for line in log.splitlines() if any(word in line for word in BAD_WORDS)]


def test_a_label_joins_no_group_of_another_namespace(rig: Rig) -> None:
    """Neither does a PodGroup of that name count the pods of another."""
    rig.create(pod_group("train", 2), *members("train", 1, cpu=1))
    rig.create(pod("train-1", "train", namespace=EVIL, cpu=1))
    rig.until_waiting("train", "WaitingForMembers")
    rig.until(lambda: rig.events("train-1", EVIL), "the pod is told that it has no group")
    (event,) = rig.events("train-1", EVIL)
    assert event["reason"] == "PodGroupNotFound"
    rig.create(pod_group("train", 2, namespace=EVIL))
    for namespace in (EVIL, "ml"):
        rig.until_says("train", "Reserved", "WaitingForMembers", "1 of 2 members", namespace)
    assert rig.bound("train") == rig.bound("train", EVIL) == 0
    rig.create(pod("train-1", "train", cpu=1))
    rig.until_bound("train", 2)
    assert rig.bound("train", EVIL) == 0


def test_anti_affinity_reaches_over_namespaces_as_with_kube_scheduler(rig: Rig) -> None:
    """Who may be run beside anybody's pods is Kubernetes' to limit, by a quota of that scope."""
    rig.nodes(1, "alone", cpu=16, memory="64Gi", labels={"pool": "alone"})
    term = {"topologyKey": "kubernetes.io/hostname", **EVERYBODY}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    there = {"nodeSelector": {"pool": "alone"}}
    hermit = pod(
        "hermit", namespace=EVIL, cpu=1, spec={**there, "affinity": {"podAntiAffinity": rules}}
    )
    rig.create(hermit)
    rig.until(lambda: "nodeName" in rig.pod("hermit", EVIL)["spec"], "the hermit has its node")
    rig.create(pod_group("kept-off", 2), *members("kept-off", 2, cpu=1, spec=there))
    rig.until_waiting("kept-off", "NotEnoughRoom")
    rig.delete("pod", "hermit", EVIL)
    rig.until_bound("kept-off", 2)


def test_objects_as_large_as_the_api_server_takes_keep_nobody_from_starting(rig: Rig) -> None:
    """It refuses larger ones; what no decision uses is never kept."""
    huge = pod_group("huge", 1, namespace=EVIL)
    huge["metadata"]["annotations"] = {"ballast": 2 * BALLAST}
    with pytest.raises(RequestError, match="Too long"):
        rig.plane.request("POST", GROUPS.format(EVIL), huge)
    for number in range(FAT):
        name = f"fat-{number}"
        pods = members(name, 1, namespace=EVIL, cpu=1000)
        fat = [pod_group(name, 1, namespace=EVIL), *pods]
        for each in fat:
            each["metadata"]["annotations"] = {"ballast": BALLAST}
        rig.create(*fat)
    rig.create(pod_group("beside", 2), *members("beside", 2, cpu=1))
    rig.until_bound("beside", 2)
    assert "no node of the kinds present" in rig.until_waiting("fat-0", "NoNodeFits", EVIL)


def test_nothing_secret_is_logged_or_measured(rig: Rig) -> None:
    """Not what pods carry, nor the operator's own token; dumps are in `test_dump`."""
    told = members("hush", 2, cpu=1)
    for each in told:
        each["metadata"]["annotations"] = {"note": SECRET}
        (container,) = each["spec"]["containers"]
        container |= {"args": [SECRET], "env": [{"name": "TOKEN", "value": SECRET}]}
        container["envFrom"] = [{"secretRef": {"name": SECRET, "optional": True}}]
    rig.create(pod_group("hush", 3), *told[:1])
    rig.until_waiting("hush", "WaitingForMembers")
    rig.create(told[1], pod("hush-2", "hush", cpu=1))
    rig.until_bound("hush", 3)
    (user,) = yaml.safe_load(rig.operator._kubeconfig.read_text())["users"]
    log, measured = rig.operator.log.read_text(), rig.operator.probe("metrics")
    assert "ml/hush" in log
    assert "tutti_gangs" in measured
    for secret in (SECRET, user["user"]["token"]):
        assert secret not in log
        assert secret not in measured


def test_a_flood_of_pod_groups_keeps_nobody_from_starting() -> None:
    """Nor waiting long, while it comes, is told why it waits, and waits."""
    with Rig.start() as rig:
        found = flood.run(rig, FLOOD)
    assert found.longest < flood.WAIT, found
    assert found.growth < flood.GROWTH, found
