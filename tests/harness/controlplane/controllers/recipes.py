"""What each controller needs before its start, and how it is called.

All of them make gangs for the scheduler "tutti"; none elects a leader where that is a choice, and
each is a user of its own, so that the audit log tells their writes apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..wiring import LOOPBACK, Component, component

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..wiring import Wiring

SCHEDULER = "tutti"
# The PodGroups of scheduling.x-k8s.io, which several controllers make.
_POD_GROUPS = ("scheduler-plugins", "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml")
_QPS, _BURST = 500, 1000
# As the manifest has it that installs Volcano.
_VOLCANO_ADMISSION = (
    "/jobs/mutate,/jobs/validate,/podgroups/validate,/queues/mutate,/queues/validate,"
    "/hypernodes/validate,/cronjobs/validate"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A controller: what must be there before its start, its processes, and what comes after.

    ``manifests`` are pins with paths in their modules; ``webhooks`` is the port of its webhooks.
    """

    processes: Mapping[str, Callable[[Wiring, str], Component]]
    manifests: tuple[tuple[str, ...], ...]
    namespaces: tuple[str, ...] = ()
    webhooks: str = ""
    afterwards: tuple[Mapping[str, Any], ...] = ()

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the ports it listens on: one per process for its health, and webhooks."""
        return (*self.processes, *((self.webhooks,) if self.webhooks else ()))


def _health(wiring: Wiring, name: str, path: str = "healthz", scheme: str = "http") -> str:
    return f"{scheme}://{wiring.address(name)}/{path}"


def _mpi_operator(wiring: Wiring, name: str) -> Component:
    return component(
        wiring,
        name,
        _health(wiring, name),
        kubeConfig=wiring.file(f"{name}.kubeconfig"),
        gang_scheduling=SCHEDULER,
        lock_namespace="default",
        health_check_port=wiring.ports[name],
        kube_api_qps=_QPS,
        kube_api_burst=_BURST,
    )


def _vc_controller_manager(wiring: Wiring, name: str) -> Component:
    return component(
        wiring,
        name,
        _health(wiring, name),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        scheduler_name=SCHEDULER,
        controllers="+job-controller,+queue-controller,+pg-controller,+gc-controller",
        leader_elect=False,
        enable_healthz=True,
        healthz_address=wiring.address(name),
        kube_api_qps=_QPS,
        kube_api_burst=_BURST,
    )


def _vc_webhook_manager(wiring: Wiring, name: str) -> Component:
    webhooks = "vc-webhooks"
    return component(
        wiring,
        name,
        # It answers 200 to what is no admission review; its health is served before this is.
        f"https://{wiring.address(webhooks)}/jobs/validate",
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        scheduler_name=SCHEDULER,
        listen_address=LOOPBACK,
        port=wiring.ports[webhooks],
        webhook_url=f"https://{wiring.address(webhooks)}",
        enabled_admission=_VOLCANO_ADMISSION,
        tls_cert_file=wiring.file("server.crt"),
        tls_private_key_file=wiring.file("server.key"),
        ca_cert_file=wiring.file("ca.crt"),
    )


def _volcano_queue(name: str, *, reclaimable: bool) -> Mapping[str, Any]:
    """A Queue as vc-scheduler makes it at its start."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"reclaimable": reclaimable, "weight": 1},
    }


RECIPES: Mapping[str, Recipe] = {
    "mpi-operator": Recipe(
        processes={"mpi-operator": _mpi_operator},
        manifests=(("mpi-operator", "manifests/base/kubeflow.org_mpijobs.yaml"), _POD_GROUPS),
    ),
    "volcano": Recipe(
        processes={
            "vc-webhook-manager": _vc_webhook_manager,
            "vc-controller-manager": _vc_controller_manager,
        },
        manifests=(("volcano", "installer/volcano-development.yaml"),),
        webhooks="vc-webhooks",
        afterwards=(
            _volcano_queue("root", reclaimable=False),
            _volcano_queue("default", reclaimable=True),
        ),
    ),
}
