"""Pods that ask for what makes no sense, or for a great deal of it, by name.

What the API server refuses by itself stands apart: nobody else ever sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...harness.controlplane.nodes import node_manifest
from .pools import GHOST, HOST, ZONE
from .scenes import SCHEDULER, Scene

if TYPE_CHECKING:
    from collections.abc import Mapping

    Manifest = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MANY = 10_000
TAINT = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}


def _near(topology: str = ZONE, **about: Any) -> Manifest:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": topology, **about}]}}}


def _apart(topology: str = ZONE, **about: Any) -> Manifest:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": topology, **about}]}}}


def _even(topology: str = ZONE, **about: Any) -> Manifest:
    must = {"maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**must, **about}]}


def _selecting(key: str, operator: str, *values: str) -> Manifest:
    one = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return {"labelSelector": {"matchExpressions": [one]}}


def _on(key: str, operator: str, *values: str) -> Manifest:
    """Required node affinity."""
    one = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [one]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: terms}}}


def _asking(**amounts: str) -> Manifest:
    container = {"name": "c0", "image": "pause", "resources": {"requests": amounts}}
    return {"containers": [container]}


ITSELF: Mapping[str, Any] = {"labelSelector": {"matchLabels": {"app": "hostile"}}}
REFUSED: Mapping[str, Mapping[str, Any]] = {
    "a selector of an unknown operator": _near(**_selecting("app", "Near", "a")),
    "In without values": _apart(**_selecting("app", "In")),
    "Exists with values": _even(**_selecting("app", "Exists", "a")),
    "a selector whose key is none": _near(**_selecting("a key!", "Exists")),
    "a label that is too long": _near(labelSelector={"matchLabels": {"app": "a" * 64}}),
    "a namespaceSelector whose value is none": _apart(
        **ITSELF, namespaceSelector={"matchLabels": {"team": "-"}}
    ),
    "an empty topologyKey": _near("", **ITSELF),
    "affinity over a key that is none": _near("no key!", **ITSELF),
    "maxSkew 0": _even(**ITSELF, maxSkew=0),
    "minDomains 0": _even(**ITSELF, minDomains=0),
    "an unknown policy": _even(**ITSELF, nodeTaintsPolicy="Perhaps"),
    "a key that is both matched and mismatched": _near(
        **ITSELF, matchLabelKeys=["rev"], mismatchLabelKeys=["rev"]
    ),
    "node affinity of an unknown operator": _on(ZONE, "Like", "z1"),
    "Gt of two numbers": _on("tier", "Gt", "1", "2"),
    "a toleration of an unknown operator": {
        "tolerations": [{"key": "dedicated", "operator": "In", "value": "a"}]
    },
    "half an exponent": _asking(cpu="1e"),
    "an exponent and a unit": _asking(memory="1e3Mi"),
    "less than nothing": _asking(cpu="-1e0"),
}
TAKEN: Mapping[str, Mapping[str, Any]] = {
    "cpus by exponent": _asking(cpu="25e-1"),
    "one cpu too many, by exponent": _asking(cpu="4001E-3"),
    "bytes by exponent": _asking(memory="1e9"),
    "exponents below anything": _asking(cpu="1e-18", memory="1e-18"),
    "exa by exponent": _asking(memory="9E0"),
    "ten thousand tolerations, the last of which counts": {
        "tolerations": [
            *({"key": f"k{i}", "operator": "Exists"} for i in range(MANY - 1)),
            {"key": "dedicated", "operator": "Equal", "value": "a"},
        ]
    },
    "ten thousand tolerations that do not": {
        "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(MANY)]
    },
    "affinity over a key that no node has": _near(GHOST, **ITSELF),
    "anti-affinity over a key that no node has": _apart(GHOST, **ITSELF),
    "spread over a key that is none": _even("no key!", **ITSELF),
    "spread over a key that no node has": _even(GHOST, **ITSELF),
    "affinity to itself": _near(HOST, **ITSELF),
    "anti-affinity to itself": _apart(HOST, **ITSELF),
    "spread of itself": _even(HOST, **ITSELF, minDomains=9),
    "affinity to nobody in particular": _near(),
    "affinity to everybody": _near(labelSelector={}),
    "anti-affinity to nobody in particular": _apart(),
    "spread of nobody in particular": _even(),
    "spread of everybody": _even(labelSelector={}),
    "a selector that contradicts itself": _near(
        labelSelector={
            "matchLabels": {"app": "hostile"},
            "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}],
        }
    ),
    "a thousand values": _near(**_selecting("app", "In", *(f"a{i}" for i in range(1000)))),
    "keys that the pod has not": _near(**ITSELF, matchLabelKeys=["ghost"]),
    "namespaces that are not there": _apart(**ITSELF, namespaces=["no-such-namespace"]),
    "Gt of a word": _on("tier", "Gt", "many"),
    "Lt of more than 64 bits": _on("tier", "Lt", "9223372036854775808"),
}


def namespace(number: int) -> str:
    """Each pod has one of its own, so that no two mean each other."""
    return f"hostile-{number}"


def pods(scheduler: str = SCHEDULER) -> dict[str, Manifest]:
    """All of them by what they ask for, those that are refused first."""
    return {
        name: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{scheduler}-{number}",
                "namespace": namespace(number),
                "labels": {"app": "hostile", "rev": "1"},
            },
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False,
                "containers": [{"name": "c0", "image": "pause"}],
                **spec,
                "schedulerName": scheduler,
            },
        }
        for number, (name, spec) in enumerate({**REFUSED, **TAKEN}.items())
    }


def cluster() -> Scene:
    """Three zones of one node each, of which one is tainted."""
    nodes = [
        node_manifest(
            f"n{i}",
            cpu=4,
            memory="8Gi",
            labels={ZONE: f"z{i}", "tier": f"{5 * i}"},
            taints=[TAINT] if i == 0 else (),
        )
        for i in range(3)
    ]
    return Scene(0, tuple(nodes), (), (), ())
