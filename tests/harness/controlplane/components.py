"""How each process of the control plane is called, and how it says that it is ready."""

from __future__ import annotations

import itertools
import json
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .controllers import RECIPES
from .nodes import MANAGED
from .pins import NATIVE_COMPOSITE_API, NATIVE_GANG_API
from .wiring import LOOPBACK, component

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .controllers import Recipe
    from .wiring import Component, Wiring

_BINARY = {
    "kwok": "kwok",
    "scheduler": "kube-scheduler",
    "controller-manager": "kube-controller-manager",
    "coscheduling": "coscheduling",
}
# Of the API server and the processes beside it.
_FEATURES = ("native-gang", "native-topology", "workload-with-job")
OPTIONAL = (*_BINARY, *_FEATURES, *RECIPES)
# The names of all ports that somebody listens on.
PORTS = (
    *("etcd", "etcd-peer", "kube-apiserver", *_BINARY.values()),
    *(port for recipe in RECIPES.values() for port in recipe.ports),
)
_HERE = Path(__file__).parent
# Below the ports that Linux gives to connections (net.ipv4.ip_local_port_range).
_SERVED = range(10_000, 32_000)
# Programs that run beside each other begin at different ports; tests seed `random`.
_chosen = itertools.count(secrets.randbelow(len(_SERVED)))
# kwok renews a node's lease four times in this time: cheap for a thousand nodes on two cores.
_LEASE_SECONDS = 200
_NODE_GRACE_SECONDS = 400


def needed_binaries(components: Collection[str]) -> set[str]:
    """The binaries of the servers of a control plane with these components."""
    unknown = sorted(set(components) - set(OPTIONAL))
    if unknown:
        message = f"no such component: {', '.join(unknown)}; there are {', '.join(OPTIONAL)}"
        raise ValueError(message)
    optional = {binary for name, binary in _BINARY.items() if name in components}
    foreign = {name: recipe for name, recipe in RECIPES.items() if name in components}
    # kubectl makes one manifest of many files.
    processes = {*(p for recipe in foreign.values() for p in recipe.processes), "kubectl"}
    return {"etcd", "kube-apiserver"} | optional | (processes if foreign else set())


def free_ports(*names: str) -> dict[str, int]:
    """A port for each purpose that nobody listens on at this moment, all different.

    A server may listen on its port much later: no connection is given one of these ports, and
    this program does not choose one again before it has tried all others.
    """
    return {name: _free_port() for name in names}


def _free_port() -> int:
    while True:
        port = _SERVED[next(_chosen) % len(_SERVED)]
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    """Whether a server could listen on the port at this moment."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("", port))
        except OSError:
            return False
    return True


def base_components(wiring: Wiring) -> list[Component]:
    """The processes of every control plane, in the order of their start."""
    return [_etcd(wiring), _kube_apiserver(wiring)]


def optional_components(wiring: Wiring) -> list[Component]:
    """The processes of Kubernetes that were asked for, in the order of their start."""
    makers = {
        "controller-manager": _controller_manager,
        "scheduler": _scheduler,
        "coscheduling": _coscheduling,
        "kwok": _kwok,
    }
    return [make(wiring) for name, make in makers.items() if name in wiring.names]


def controllers(wiring: Wiring) -> list[Recipe]:
    """The controllers of other projects that were asked for, in the order of their start."""
    return [recipe for name, recipe in RECIPES.items() if name in wiring.names]


def _etcd(wiring: Wiring) -> Component:
    client = f"http://{LOOPBACK}:{wiring.ports['etcd']}"
    peer = f"http://{LOOPBACK}:{wiring.ports['etcd-peer']}"
    return component(
        wiring,
        "etcd",
        f"{client}/health",
        data_dir=wiring.file("etcd"),
        unsafe_no_fsync=True,
        listen_client_urls=client,
        advertise_client_urls=client,
        listen_peer_urls=peer,
        initial_advertise_peer_urls=peer,
        initial_cluster=f"default={peer}",
        quota_backend_bytes=8 << 30,
        log_level="warn",
    )


def _kube_apiserver(wiring: Wiring) -> Component:
    apis = [NATIVE_GANG_API]
    if "native-topology" in wiring.names:
        apis.append(NATIVE_COMPOSITE_API)
    served = [f"{api[wiring.k8s]}=true" for api in apis if wiring.k8s in api]
    flags: dict[str, object] = {"runtime_config": ",".join(served)} if served else {}
    return component(
        wiring,
        "kube-apiserver",
        f"{wiring.server}/readyz",
        etcd_servers=f"http://{LOOPBACK}:{wiring.ports['etcd']}",
        bind_address=LOOPBACK,
        advertise_address=LOOPBACK,
        # The address of the "kubernetes" service may not be a loopback one, so there is none.
        endpoint_reconciler_type="none",
        secure_port=wiring.ports["kube-apiserver"],
        tls_cert_file=wiring.file("server.crt"),
        tls_private_key_file=wiring.file("server.key"),
        client_ca_file=wiring.file("ca.crt"),
        authorization_mode="RBAC",
        service_account_issuer="https://kubernetes.default.svc",
        service_account_key_file=wiring.file("service-accounts.key"),
        service_account_signing_key_file=wiring.file("service-accounts.key"),
        service_cluster_ip_range="10.96.0.0/16",
        allow_privileged=True,
        audit_policy_file=wiring.audit_policy,
        audit_log_path=wiring.file("audit.log"),
        # In the order of the answers, and never rotated: a judge reads it whole.
        audit_log_mode="blocking",
        audit_log_maxsize=1 << 20,
        **(flags if wiring.native_gang else {}),
    )


def _controller_manager(wiring: Wiring) -> Component:
    name = "kube-controller-manager"
    return component(
        wiring,
        name,
        f"https://{LOOPBACK}:{wiring.ports[name]}/healthz",
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        bind_address=LOOPBACK,
        secure_port=wiring.ports[name],
        tls_cert_file=wiring.file("server.crt"),
        tls_private_key_file=wiring.file("server.key"),
        root_ca_file=wiring.file("ca.crt"),
        service_account_private_key_file=wiring.file("service-accounts.key"),
        use_service_account_credentials=True,
        leader_elect=False,
        node_monitor_grace_period=f"{_NODE_GRACE_SECONDS}s",
        kube_api_qps=500,
        kube_api_burst=1000,
    )


def _scheduler(wiring: Wiring) -> Component:
    return _scheduling(wiring, "kube-scheduler", {})


def _coscheduling(wiring: Wiring) -> Component:
    """kube-scheduler as scheduler-plugins builds it, with its gangs; other defaults are its own."""
    plugin = [{"name": "Coscheduling"}]
    profile = {
        "schedulerName": "coscheduling",
        "plugins": {
            "multiPoint": {"enabled": plugin},
            "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]},
        },
    }
    return _scheduling(wiring, "coscheduling", {"profiles": [profile]})


def _scheduling(wiring: Wiring, name: str, settings: Mapping[str, Any]) -> Component:
    configuration: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {
            "kubeconfig": wiring.file(f"{name}.kubeconfig"),
            "qps": 5000,
            "burst": 5000,
        },
        **settings,
    }
    path = wiring.directory / f"{name}.json"
    path.write_text(json.dumps(configuration))
    return component(
        wiring,
        name,
        f"https://{LOOPBACK}:{wiring.ports[name]}/healthz",
        config=path,
        bind_address=LOOPBACK,
        secure_port=wiring.ports[name],
        tls_cert_file=wiring.file("server.crt"),
        tls_private_key_file=wiring.file("server.key"),
    )


def _kwok(wiring: Wiring) -> Component:
    address = f"{LOOPBACK}:{wiring.ports['kwok']}"
    stages = [_HERE / "stages.yaml"]
    if "controller-manager" not in wiring.names:
        stages.append(_HERE / "stage-without-controllers.yaml")
    return component(
        wiring,
        "kwok",
        f"http://{address}/healthz",
        kubeconfig=wiring.file("kwok.kubeconfig"),
        config=",".join(map(str, stages)),
        server_address=address,
        manage_all_nodes=False,
        manage_nodes_with_annotation_selector=",".join(f"{k}={v}" for k, v in MANAGED.items()),
        node_lease_duration_seconds=_LEASE_SECONDS,
    )
