"""What the operator finds when it starts: no CRDs yet, for one."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

from tests.harness.operator_process import CRDS, ROOT, USER
from tests.harness.rig import Rig, members, pod, pod_group, remove_queues
from tutti.kube import kinds
from tutti.operator.main import STORAGE_LOOK_SECONDS

from .bodies import queue

CLAIMED = {kind.plural for kind in (*kinds.STORAGE, *kinds.DEVICES)}
HELP = "use helm install or tutti crds | kubectl apply -f -"
NOT_INSTALLED = (1, "", f"tutti status: this cluster has no Tutti: {HELP}\n")


def plugin(rig: Rig, *words: str) -> tuple[int, str, str]:
    """What `tutti …` ends with, and prints on standard output and error."""
    given = {**rig.plane.environment, "PYTHONPATH": str(ROOT / "operator")}
    command = [sys.executable, "-m", "tutti", *words]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def begin(rig: Rig, mode: str, *, ready: bool = True) -> None:
    """Start the operator again, in this mode."""
    rig.operator.stop()
    rig.operator._environment = {"TUTTI_MODE": mode}
    rig.operator.start(ready=ready)


def test_crds_may_come_after_the_operator() -> None:
    """It says what is missing, as the plugin does; and serves gangs once they are there."""
    with Rig.start(operator=False, crds=False) as rig:
        rig.nodes(1, cpu=8, memory="16Gi")
        assert plugin(rig, "status", "-A") == NOT_INSTALLED
        operator = rig.operator
        operator.start(ready=False)
        rig.until(lambda: "tutti crds | kubectl apply -f -" in operator.tail(), "it is said")
        assert operator.probe("readyz") == "Tutti is still listing the cluster"
        assert operator.probe("healthz") == "ok"
        rig.plane.install_crds(CRDS)
        operator.await_ready()
        rig.create(pod_group("late", 2), *members("late", 2, cpu=1))
        rig.until_bound("late", 2)
        rig.until(lambda: rig.condition("late", "Bound").get("status") == "True", "said")


def test_without_the_crd_of_queues_there_are_none_and_it_may_come_later() -> None:
    """Helm installs no new CRD when it upgrades a release."""
    with Rig.start(operator=False) as rig:
        rig.nodes(1, cpu=8, memory="16Gi")
        rig.plane.kubectl("delete", "crd", "queues.tutti.dev")
        rig.operator.start()
        rig.create(pod_group("early", 2), *members("early", 2, cpu=1))
        rig.until_bound("early", 2)
        rig.plane.install_crds(CRDS)
        limit = {"name": "cpu", "limit": 4}
        rig.create(queue({"resources": [limit], "namespaces": {}, "defaultFor": {}}, "all"))
        rig.until_queue_is_known("all")
        rig.create(pod_group("late", 3), *members("late", 3, cpu=1))
        rig.until_says("late", "Reserved", "QueueAtLimit", "2 of 4 cpu are in use, 3 wanted")
        remove_queues(rig.plane.request)


def test_a_name_whose_scheduler_lives_is_refused_until_it_is_gone() -> None:
    """Volcano's scheduler holds a Lease of its name, as every Tutti does."""
    with Rig.start(operator=False) as rig:
        rig.plane.create_namespace("volcano-system")
        spec = {"holderIdentity": "vc-0", "leaseDurationSeconds": 86_400}
        spec["renewTime"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        body = {"metadata": {"name": "tutti"}, "spec": spec}
        leases = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases"
        rig.plane.request("POST", leases, body)
        rig.operator.start(ready=False)
        rig.until(lambda: rig.operator.is_down, "it ends")
        assert (
            "tutti run: another scheduler named tutti runs: vc-0 holds the Lease "
            "volcano-system/tutti; stop it, or give Tutti another name (TUTTI_SCHEDULER_NAME)"
        ) in rig.operator.tail()
        assert rig.operator.stop() == 1
        rig.plane.request("PATCH", f"{leases}/tutti", {"spec": {"holderIdentity": ""}})
        rig.operator.start()


def test_a_lease_that_a_tenant_renews_keeps_no_tutti_from_going_on_and_a_shadow_is_none() -> None:
    """The roles ``edit`` and ``admin`` may write Leases in their own namespaces."""
    with Rig.start(operator=False) as rig:
        begin(rig, "shadow")
        rig.plane.create_namespace("tenant")
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        spec = {"holderIdentity": "x", "leaseDurationSeconds": 86_400, "renewTime": now}
        leases = "/apis/coordination.k8s.io/v1/namespaces/tenant/leases"
        rig.plane.request("POST", leases, {"metadata": {"name": "tutti"}, "spec": spec})
        begin(rig, "active", ready=False)
        rig.until(lambda: rig.operator.is_down, "it ends, as nothing but a shadow led here")

        rig.plane.request("DELETE", f"{leases}/tutti")
        begin(rig, "active")
        rig.plane.request("POST", leases, {"metadata": {"name": "tutti"}, "spec": spec})
        begin(rig, "active")
        assert "x holds the Lease tenant/tutti" in rig.operator.tail()


def test_what_pods_claim_is_watched_only_once_a_pod_has_a_claim() -> None:
    """A cluster without claims pays no watch of volumes and devices, with GPUs that nodes list."""

    def watched() -> set[str]:
        lines = (line for line in rig.plane.audited() if line["user"]["username"] == USER)
        return CLAIMED & {line["objectRef"]["resource"] for line in lines if "objectRef" in line}

    with Rig.start() as rig:
        rig.nodes(1, cpu=8, memory="16Gi", gpus=2)
        rig.create(pod_group("plain", 2), *members("plain", 2, cpu=1, gpu=1))
        rig.until_bound("plain", 2)
        rig.until(lambda: rig.condition("plain", "Bound").get("status") == "True", "said")
        rig.quiet(2 * STORAGE_LOOK_SECONDS)
        assert not watched()
        claiming = pod("claims", cpu=1)
        claiming["spec"]["volumes"] = [
            {"name": "data", "persistentVolumeClaim": {"claimName": "absent"}}
        ]
        claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "absent"}]
        rig.create(claiming)
        rig.until(lambda: watched() == CLAIMED, "claims, volumes and devices are watched")
