"""What a controller of another project is to a control plane, and how the usual make is called."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..wiring import LOOPBACK, Component, component

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..wiring import Wiring

QPS, BURST = 500, 1000


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a controller keeps a certificate that it renews; for which name, signed by whom."""

    namespace: str
    name: str
    service: str
    authority: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """A controller: what must be there before its start, its processes, and what comes after.

    ``manifests`` are pins with paths in their modules; ``webhooks`` is the port of its webhooks. It
    is ready once it admits the objects ``admitted``, which are not made.
    """

    processes: Mapping[str, Callable[[Wiring, str], Component]]
    manifests: tuple[tuple[str, ...], ...]
    webhooks: str = ""
    secret: Secret | None = None
    afterwards: tuple[Mapping[str, Any], ...] = ()
    admitted: tuple[Mapping[str, Any], ...] = ()

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the ports it listens on: one per process for its health, and webhooks."""
        return (*self.processes, *((self.webhooks,) if self.webhooks else ()))


def health(wiring: Wiring, name: str, path: str = "healthz") -> str:
    """Where a process says whether it is ready."""
    return f"http://{wiring.address(name)}/{path}"


def configured(wiring: Wiring, name: str, api: str, **settings: Any) -> Component:
    """A controller that reads a configuration file."""
    own = wiring.own(webhooks_of(name))
    configuration = {
        "apiVersion": api,
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": wiring.address(name)},
        "metrics": {"bindAddress": "0"},
        "webhook": {
            "host": LOOPBACK,
            "port": wiring.ports[webhooks_of(name)],
            "certDir": str(wiring.certificates(webhooks_of(name))),
        },
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": QPS, "burst": BURST},
        **settings,
    }
    path = wiring.directory / f"{name}.json"
    path.write_text(json.dumps(configuration))
    made = component(
        wiring,
        name,
        health(wiring, name, "readyz"),
        kubeconfig=wiring.file(f"{name}.kubeconfig"),
        config=path,
    )
    return replace(made, environment={"TMPDIR": str(own)})


def webhooks_of(name: str) -> str:
    """The name of the port of a process's webhooks."""
    return f"{name}-webhooks"
