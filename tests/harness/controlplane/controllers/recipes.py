"""What each controller needs before its start, and how it is called.

All of them make gangs for the scheduler "tutti"; none elects a leader where that is a choice, and
each is a user of its own, so that the audit log tells their writes apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pins import pin_called
from ..wiring import LOOPBACK, Component, component
from .manifests import module_directory
from .recipe import BURST, QPS, Recipe, Secret, configured, health, webhooks_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..wiring import Wiring

SCHEDULER = "tutti"
# The PodGroups of scheduling.x-k8s.io, which several controllers make.
_POD_GROUPS = ("scheduler-plugins", "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml")
_VOLCANO_POD_GROUPS = ("volcano", "config/crd/volcano/bases/scheduling.volcano.sh_podgroups.yaml")
_RAY = (
    "kuberay",
    *(f"config/crd/bases/ray.io_{kind}.yaml" for kind in ("rayclusters", "rayjobs", "rayservices")),
)
# As the manifest has it that installs Volcano.
_VOLCANO_ADMISSION = (
    "/jobs/mutate,/jobs/validate,/podgroups/validate,/queues/mutate,/queues/validate,"
    "/hypernodes/validate,/cronjobs/validate"
)


def _pod_group_controller(wiring: Wiring, name: str) -> Component:
    return component(
        wiring,
        name,
        health(wiring, name),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        metricsAddr="0",
        probeAddr=wiring.address(name),
        qps=QPS,
        burst=BURST,
    )


def _mpi_operator(wiring: Wiring, name: str) -> Component:
    return component(
        wiring,
        name,
        health(wiring, name),
        kubeConfig=wiring.file(f"{name}.kubeconfig"),
        gang_scheduling=SCHEDULER,
        lock_namespace="default",
        health_check_port=wiring.ports[name],
        kube_api_qps=QPS,
        kube_api_burst=BURST,
    )


def _vc_controller_manager(wiring: Wiring, name: str, scheduler: str = SCHEDULER) -> Component:
    return component(
        wiring,
        name,
        health(wiring, name),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        scheduler_name=scheduler,
        controllers="+job-controller,+queue-controller,+pg-controller,+gc-controller",
        leader_elect=False,
        enable_healthz=True,
        healthz_address=wiring.address(name),
        kube_api_qps=QPS,
        kube_api_burst=BURST,
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


def _vc_scheduler(wiring: Wiring, name: str) -> Component:
    """With the flags of the manifest that installs Volcano, and the policy of its chart."""
    module = module_directory(pin_called("volcano-scheduler"))
    return component(
        wiring,
        name,
        health(wiring, name),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        scheduler_conf=module / "installer/helm/chart/volcano/config/volcano-scheduler.conf",
        leader_elect=False,
        enable_healthz=True,
        healthz_address=wiring.address(name),
        kube_api_qps=2000,
        kube_api_burst=2000,
        schedule_period="1s",
    )


def _volcano_queue(name: str, *, reclaimable: bool) -> Mapping[str, Any]:
    """A Queue as vc-scheduler makes it at its start."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"reclaimable": reclaimable, "weight": 1},
    }


# Its webhook refuses vcjobs until it has seen that the controller has opened their queue.
_VCJOB: Mapping[str, Any] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "first", "namespace": "default"},
    "spec": {
        "tasks": [
            {
                "name": "main",
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "main", "image": "none"}]}},
            }
        ]
    },
}


def _jobset(wiring: Wiring, name: str) -> Component:
    api = "config.jobset.x-k8s.io/v1alpha1"
    return configured(wiring, name, api, internalCertManagement={"enable": False})


def _trainer(wiring: Wiring, name: str) -> Component:
    api = "config.trainer.kubeflow.org/v1alpha1"
    # It takes no folder of certificates: they are below its TMPDIR.
    webhook = {"host": LOOPBACK, "port": wiring.ports[webhooks_of(name)]}
    return configured(wiring, name, api, webhook=webhook, certManagement={"enable": False})


def _lws(wiring: Wiring, name: str) -> Component:
    component = configured(
        wiring,
        name,
        "config.lws.x-k8s.io/v1alpha1",
        internalCertManagement={"enable": False},
        gangSchedulingManagement={"schedulerProvider": "volcano"},
    )
    # Its readiness does not wait for its webhooks; a webhook answers 200 to an empty request.
    path = "validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
    return replace(component, health=f"https://{wiring.address(webhooks_of(name))}/{path}")


def _kueue(wiring: Wiring, name: str) -> Component:
    return configured(
        wiring,
        name,
        "config.kueue.x-k8s.io/v1beta2",
        namespace=_KUEUE.namespace,
        internalCertManagement={
            "enable": True,
            "webhookServiceName": _KUEUE.service.partition(".")[0],
            "webhookSecretName": _KUEUE.name,
        },
        integrations={"frameworks": ["batch/job", "jobset.x-k8s.io/jobset", "pod"]},
        # An API of its own, about queues that wait, at a port and with files that cannot move.
        featureGates={"VisibilityOnDemand": False},
    )


def _training_operator(wiring: Wiring, name: str) -> Component:
    # It waits for its certificate to be mounted here, but serves the one below TMPDIR.
    mounted = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")
    if not mounted.exists():
        mounted.parent.mkdir(parents=True, exist_ok=True)
        mounted.touch()
    made = component(
        wiring,
        name,
        health(wiring, name, "readyz"),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        gang_scheduler_name=SCHEDULER,
        enable_scheme="pytorchjob",
        metrics_bind_address="0",
        health_probe_bind_address=wiring.address(name),
        webhook_server_port=wiring.ports[webhooks_of(name)],
        kube_api_qps=QPS,
        kube_api_burst=BURST,
    )
    return replace(made, environment={"TMPDIR": str(wiring.own(webhooks_of(name)))})


def _kuberay(wiring: Wiring, name: str, groups: str = "scheduler-plugins") -> Component:
    return component(
        wiring,
        name,
        health(wiring, name),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        batch_scheduler=groups,
        enable_leader_election=False,
        metrics_addr="0",
        health_probe_bind_address=wiring.address(name),
        qps=QPS,
        burst=BURST,
    )


def _dra_kwok_driver(wiring: Wiring, name: str) -> Component:
    return component(
        wiring,
        name,
        health(wiring, name),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        health_probe_bind_address=wiring.address(name),
    )


def _spark_operator(wiring: Wiring, name: str) -> Component:
    """The controller; who uses it puts Spark, or a script that calls it, below its SPARK_HOME."""
    host, port = wiring.address("kube-apiserver").split(":")
    environment = {
        "SPARK_HOME": wiring.file("spark"),
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
    }
    made = _spark_process(
        wiring, name, "controller", enable_batch_scheduler=True, kube_scheduler_names=SCHEDULER
    )
    return replace(made, environment=environment)


def _spark_operator_webhook(wiring: Wiring, name: str) -> Component:
    return _spark_process(
        wiring,
        name,
        "webhook",
        webhook_port=wiring.ports[webhooks_of("spark-operator")],
        webhook_cert_dir=wiring.certificates(webhooks_of("spark-operator")),
        webhook_secret_name=_SPARK.name,
        webhook_secret_namespace=_SPARK.namespace,
        # Otherwise it replaces the certificate by one of its own for a name of the cluster.
        enable_cert_manager=True,
    )


def _spark_process(wiring: Wiring, name: str, part: str, **flags: object) -> Component:
    """One of the two parts of the operator, which are commands of one program."""
    made = component(
        wiring,
        name,
        health(wiring, name, "readyz"),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        namespaces="",
        health_probe_bind_address=wiring.address(name),
        kube_api_qps=QPS,
        kube_api_burst=BURST,
        **flags,
    )
    binary, *arguments = made.command
    return replace(made, command=(binary, part, "start", *arguments))


_SPARK = Secret(
    "spark-operator",
    "spark-operator-webhook-certs",
    "spark-operator-webhook-svc.spark-operator.svc",
    "spark-operator-ca",
)
_TRAINING = Secret(
    "kubeflow",
    "training-operator-webhook-cert",
    "training-operator.kubeflow.svc",
    "training-operator-ca",
)
_KUEUE = Secret(
    "kueue-system",
    "kueue-webhook-server-cert",
    "kueue-webhook-service.kueue-system.svc",
    "kueue-ca",
)

RECIPES: Mapping[str, Recipe] = {
    # It writes the status of PodGroups of scheduling.x-k8s.io, whatever made or placed their pods.
    "pod-group-controller": Recipe(
        processes={"pod-group-controller": _pod_group_controller},
        manifests=(("scheduler-plugins", "config/crd/bases"),),
    ),
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
        admitted=(_VCJOB,),
    ),
    # Volcano as a scheduler of its own; its controllers open its queues.
    "volcano-scheduler": Recipe(
        processes={
            "vc-controller-manager": partial(_vc_controller_manager, scheduler="volcano"),
            "vc-scheduler": _vc_scheduler,
        },
        manifests=(("volcano-scheduler", "installer/volcano-development.yaml"),),
    ),
    "jobset": Recipe(
        processes={"jobset": _jobset},
        manifests=(("jobset", "config/default"),),
        webhooks=webhooks_of("jobset"),
    ),
    "training-operator": Recipe(
        processes={"training-operator": _training_operator},
        # Of its CRDs one: that of MPIJobs has the name of the MPI operator's, and other versions.
        manifests=(
            (
                "training-operator",
                "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
                "manifests/base/webhook",
            ),
            _POD_GROUPS,
        ),
        webhooks=webhooks_of("training-operator"),
        secret=_TRAINING,
    ),
    # It makes JobSets: to be started with their controller.
    "trainer": Recipe(
        processes={"trainer": _trainer},
        manifests=(
            ("trainer", "manifests/base/crds", "manifests/base/webhook"),
            _POD_GROUPS,
            _VOLCANO_POD_GROUPS,
        ),
        webhooks=webhooks_of("trainer"),
    ),
    # Its webhooks are off where it is installed by its own manifests, too.
    "kuberay": Recipe(
        processes={"kuberay": _kuberay},
        manifests=(_RAY, _POD_GROUPS),
    ),
    # The same without groups of others: pods then keep the scheduler of their templates.
    "kuberay-alone": Recipe(
        processes={"kuberay": partial(_kuberay, groups="")},
        manifests=(_RAY,),
    ),
    # The same with Volcano's groups: one of the two at a time.
    "kuberay-volcano": Recipe(
        processes={"kuberay": partial(_kuberay, groups="volcano")},
        manifests=(_RAY, _VOLCANO_POD_GROUPS),
    ),
    "lws": Recipe(
        processes={"lws": _lws},
        manifests=(("lws", "config/default"), _VOLCANO_POD_GROUPS),
        webhooks=webhooks_of("lws"),
    ),
    "kueue": Recipe(
        processes={"kueue": _kueue},
        manifests=(("kueue", "config/default"),),
        webhooks=webhooks_of("kueue"),
        secret=_KUEUE,
    ),
    # A driver of devices of kwok's nodes; what they have, DRAConfigs say.
    "dra-kwok-driver": Recipe(
        processes={"dra-kwok-driver": _dra_kwok_driver},
        manifests=(
            (
                "dra-kwok-driver",
                "dra-kwok-driver/pkg/apis/crds/test.karpenter.sh_draconfigs.yaml",
            ),
        ),
    ),
    "spark-operator": Recipe(
        processes={
            "spark-operator-webhook": _spark_operator_webhook,
            "spark-operator": _spark_operator,
        },
        # Its other manifests call the webhooks for the namespace "default" alone.
        manifests=(
            ("spark-operator", "config/crd/bases", "config/webhook/manifests.yaml"),
            _POD_GROUPS,
            _VOLCANO_POD_GROUPS,
        ),
        webhooks=webhooks_of("spark-operator"),
        secret=_SPARK,
    ),
}
