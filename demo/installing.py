"""Tutti in a cluster of the user's: what is there already, what the demo has to bring.

The CRDs are those of this checkout, and the rights are those of the calls that the code makes: the
demo needs no Helm. A test compares both with the chart.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.harness.controlplane import credentials

from tutti.cli import crd_files
from tutti.kube import kinds
from tutti.kube.calls import Call
from tutti.operator.settings import Settings

from .cluster import Cluster, DemoError, Manifest, RefusedError, place_of
from .stage import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACE = "tutti-demo"
ACCOUNT = "tutti-demo"
LABEL = {"tutti.dev/demo": "true"}
GROUPS_CRD = "podgroups.tutti.dev"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector=app.kubernetes.io/name=tutti"
TOKEN_SECONDS = 2 * 3600
ESTABLISHED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Found:
    """What of Tutti a cluster has already."""

    crds: frozenset[str]
    deployment: str = ""
    scheduler: str = "tutti"

    @property
    def is_running(self) -> bool:
        """Whether somebody's Tutti is at work there."""
        return bool(self.deployment)


def survey(cluster: Cluster) -> Found:
    """Look at the cluster before anything is said or done.

    Raises:
        DemoError: the demo would be in somebody's way.
    """
    if cluster.find(f"/api/v1/namespaces/{NAMESPACE}") is not None:
        raise DemoError(
            f"namespace {NAMESPACE} exists already; if it is left from another demo: "
            f"kubectl delete namespace {NAMESPACE}"
        )
    names = {_name(path) for path in crd_files()}
    crds = frozenset(name for name in names if cluster.find(f"{CRDS}/{name}") is not None)
    for deployment in cluster.items(DEPLOYMENTS):
        if deployment.get("status", {}).get("availableReplicas") and crds == names:
            metadata = deployment["metadata"]
            where = f"Deployment {metadata['namespace']}/{metadata['name']}"
            return Found(crds, where, _scheduler_of(deployment))
    found = Found(crds)
    _refuse_company(cluster, found)
    return found


def _refuse_company(cluster: Cluster, found: Found) -> None:
    """A second Tutti would act on gangs that are not the demo's."""
    groups = []
    if GROUPS_CRD in found.crds:
        groups = cluster.items(f"{GROUPS}/podgroups")
    waiting = cluster.items(
        f"/api/v1/pods?fieldSelector=spec.nodeName=,spec.schedulerName={found.scheduler}"
    )
    if groups or waiting:
        raise DemoError(
            f"there are {len(groups)} PodGroups and {len(waiting)} pods that wait for scheduler "
            f"{found.scheduler}, but no running Deployment with the label "
            "app.kubernetes.io/name=tutti: the demo's Tutti would act on them"
        )


def manifests(found: Found, *, preempts: bool = False) -> list[Manifest]:
    """What the demo creates, in the order in which it is created.

    With ``preempts``, Tutti may also read PodDisruptionBudgets and Jobs, as while preemption is on.
    """
    brought = [] if found.is_running else _crds(found) + _rights(preempts=preempts)
    # The namespace comes last of the cluster-wide ones, so that it is the first to go.
    namespace: Manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE},
    }
    wide = [each for each in brought if "namespace" not in each["metadata"]]
    inside = [each for each in brought if "namespace" in each["metadata"]]
    found_order = [*wide, namespace, *inside]
    for each in found_order:
        each["metadata"]["labels"] = each["metadata"].get("labels", {}) | LABEL
    return found_order


def _crds(found: Found) -> list[Manifest]:
    return [
        yaml.safe_load(path.read_text()) for path in crd_files() if _name(path) not in found.crds
    ]


def _rights(*, preempts: bool) -> list[Manifest]:
    """The ServiceAccount, its roles and their bindings, as the chart makes them."""
    of_preemption = [kind.right(verb) for kind in kinds.PREEMPTION for verb in ("list", "watch")]
    leases = {Call.GET_LEASE, Call.CREATE_LEASE, Call.UPDATE_LEASE}
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in sorted(kinds.rights() - leases | {*(of_preemption if preempts else ())}):
        verbs.setdefault((right.group, right.resource), []).append(right.verb)
    cluster_rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": of_resource}
        for (group, resource), of_resource in verbs.items()
    ]
    lease: Manifest = {"apiGroups": [Call.GET_LEASE.group], "resources": [Call.GET_LEASE.resource]}
    lease_rules = [
        lease | {"verbs": ["create"]},
        lease | {"resourceNames": [Settings().scheduler_name], "verbs": ["get", "update"]},
    ]
    name = f"{NAMESPACE}.{ACCOUNT}"  # of what is cluster-wide: no other namespace has the same
    account: Manifest = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": NAMESPACE},
        "automountServiceAccountToken": False,
    }
    return [
        account,
        *_role("ClusterRole", {"name": name}, cluster_rules),
        *_role("Role", {"name": name, "namespace": NAMESPACE}, lease_rules),
    ]


def _role(kind: str, metadata: Manifest, rules: list[Manifest]) -> list[Manifest]:
    """A role, and its binding to the demo's ServiceAccount."""
    group = "rbac.authorization.k8s.io"
    head: Manifest = {"apiVersion": f"{group}/v1", "metadata": metadata}
    reference = {"apiGroup": group, "kind": kind, "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    return [
        {**head, "kind": kind, "rules": rules},
        {
            **head,
            "metadata": {**metadata},
            "kind": f"{kind}Binding",
            "roleRef": reference,
            "subjects": [subject],
        },
    ]


def is_ours(there: Manifest) -> bool:
    """Whether an object is one that the demo has made."""
    return bool(LABEL.items() <= there["metadata"].get("labels", {}).items())


def await_established(cluster: Cluster, manifests: Iterable[Manifest]) -> None:
    """Wait until the API server serves the kinds that were created."""
    deadline = time.monotonic() + ESTABLISHED_SECONDS
    for manifest in manifests:
        if manifest["kind"] != "CustomResourceDefinition":
            continue
        while not _is_established(cluster.request("GET", place_of(manifest))):
            if time.monotonic() > deadline:
                raise DemoError(f"the API server does not serve {manifest['metadata']['name']}")
            time.sleep(0.1)


def operator_kubeconfig(cluster: Cluster, directory: Path) -> Path:
    """A kubeconfig in this directory with the rights of the demo's ServiceAccount, and no more."""
    configuration = cluster.configuration
    reach: dict[str, Any] = {"server": cluster.server}
    if not configuration.verify_ssl:
        reach["insecure-skip-tls-verify"] = True
    elif configuration.ssl_ca_cert:
        authority = Path(configuration.ssl_ca_cert).read_bytes()
        reach["certificate-authority-data"] = base64.b64encode(authority).decode()
    if configuration.tls_server_name:
        reach["tls-server-name"] = configuration.tls_server_name
    if configuration.proxy:
        reach["proxy-url"] = configuration.proxy
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "demo", "cluster": reach}],
        "users": [{"name": "demo", "user": {"token": _token(cluster)}}],
        "contexts": [{"name": "demo", "context": {"cluster": "demo", "user": "demo"}}],
        "current-context": "demo",
    }
    return credentials.write_private(directory / "operator.kubeconfig", yaml.safe_dump(content))


def _token(cluster: Cluster) -> str:
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_SECONDS},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    try:
        return str(cluster.request("POST", path, request)["status"]["token"])
    except RefusedError as refusal:
        if refusal.status != HTTPStatus.FORBIDDEN:
            raise
        raise DemoError(f"you may not make a token for Tutti's account: {refusal}") from refusal


def _is_established(crd: Manifest) -> bool:
    # A new definition says `conditions: null` until the API server has looked at it.
    conditions = crd.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _name(path: Path) -> str:
    return str(yaml.safe_load(path.read_text())["metadata"]["name"])


def _scheduler_of(deployment: Manifest) -> str:
    """The scheduler name that an installed Tutti serves."""
    for container in deployment["spec"]["template"]["spec"]["containers"]:
        for variable in container.get("env", []):
            if variable["name"] == "TUTTI_SCHEDULER_NAME":
                return str(variable["value"])
    return "tutti"
