"""What the commands of the processes need to know of each other, and what a process is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
AUDIT_POLICY = Path(__file__).with_name("audit-policy.yaml")
# Partitions of devices, distinct attributes, and extended resources that devices back: on by
# default since 1.36.
_DEVICES = {
    "1.35": "DRAConsumableCapacity=true,DRAExtendedResource=true,DRAPartitionableDevices=true"
}
# Gates that are off by default, and with them the API of kube-scheduler's own gang scheduling.
_NATIVE_GANG = {"1.37": "GenericWorkload=true", "1.36": "GenericWorkload=true,GangScheduling=true"}
# Of further names, more gates.
_NATIVE_FURTHER = {
    "native-topology": {  # a group may need one domain, and have groups within it
        "1.37": "TopologyAwareWorkloadScheduling=true,CompositePodGroup=true",
        "1.36": "TopologyAwareWorkloadScheduling=true",
    },
    # kube-controller-manager makes PodGroups for Jobs.
    "workload-with-job": {"1.37": "WorkloadWithJob=true", "1.36": "WorkloadWithJob=true"},
}


@dataclass(frozen=True, slots=True)
class Component:
    """One process: its command, and the address that answers 200 when it is ready."""

    name: str
    command: tuple[str, ...]
    health: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the commands need to know of each other."""

    directory: Path
    binaries: Mapping[str, Path]
    ports: Mapping[str, int]
    k8s: str
    names: frozenset[str]
    audit_policy: Path = AUDIT_POLICY

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://{self.address('kube-apiserver')}"

    def address(self, port: str) -> str:
        """Where the server with the port of this name listens."""
        return f"{LOOPBACK}:{self.ports[port]}"

    def file(self, name: str) -> str:
        """The path of a file of this control plane."""
        return str(self.directory / name)

    def own(self, process: str) -> Path:
        """The folder of a process: its TMPDIR, with the certificates of its webhooks."""
        return self.directory / process

    def certificates(self, process: str) -> Path:
        """Where controllers of the usual make look for these certificates: below TMPDIR."""
        return self.own(process) / "k8s-webhook-server" / "serving-certs"

    def gates(self) -> list[str]:
        """The feature gates that are not on by default."""
        gates = [_DEVICES[self.k8s]] if self.k8s in _DEVICES else []
        if self.native_gang:
            if self.k8s not in _NATIVE_GANG:
                having = ", ".join(_NATIVE_GANG)
                message = f"Kubernetes {self.k8s} has no PodGroups of its own; {having} have them"
                raise StartError(message)
            further = [_NATIVE_FURTHER[n][self.k8s] for n in _NATIVE_FURTHER if n in self.names]
            gates += [_NATIVE_GANG[self.k8s], *further]
        return [f"--feature-gates={','.join(gates)}"] if gates else []

    @property
    def native_gang(self) -> bool:
        """Whether the API of kube-scheduler's own gang scheduling was asked for."""
        return not self.names.isdisjoint(("native-gang", *_NATIVE_FURTHER))


def component(wiring: Wiring, name: str, health: str, **flags: object) -> Component:
    """The process of the binary of this name, with flags as keywords."""
    arguments = [f"--{flag.replace('_', '-')}={_text(value)}" for flag, value in flags.items()]
    gates = wiring.gates() if name.startswith("kube-") else []
    return Component(name, (str(wiring.binaries[name]), *arguments, *gates), health)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
