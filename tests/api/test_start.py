"""What the operator finds when it starts: no CRDs yet, for one."""

from __future__ import annotations

from tests.operator_process import ROOT
from tests.rig import Rig, members, pod_group

CRDS = str(ROOT / "crds")


def test_crds_may_come_after_the_operator() -> None:
    """It says what is missing, and serves gangs within seconds once they are there."""
    rig = Rig.start(operator=False)
    rig.plane.kubectl("delete", "-f", CRDS, "--wait=true")
    with rig:
        rig.nodes(1, cpu=8, memory="16Gi")
        operator = rig.operator
        operator.start(ready=False)
        rig.until(lambda: "tutti crds | kubectl apply -f -" in operator.tail(), "it is said")
        assert operator.probe("readyz") == "the cluster is still being listed"
        assert operator.probe("healthz") == "ok"
        rig.plane.kubectl("apply", "-f", CRDS)
        rig.plane.kubectl("wait", "--for=condition=Established", "-f", CRDS)
        operator.await_ready()
        rig.create(pod_group("late", 2), *members("late", 2, cpu=1))
        rig.until_bound("late", 2)
        rig.until(lambda: rig.condition("late", "Bound").get("status") == "True", "said", 10)
