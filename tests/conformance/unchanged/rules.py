"""What generated pods ask of nodes and of other pods, drawn by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .objects import PREFERRED, REQUIRED, Ask, Object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ZONES, POOLS, APPS, TEAMS = ("z1", "z2", "z3"), ("a", "b"), ("x", "y", "z"), ("red", "blue")
SPACES = ("ml", "etl")


def with_rule(rng: Random, ask: Ask, name: str) -> Ask:
    """The same with one more rule, of the kind that a feature names."""
    rules = {**ask.rules, "affinity": dict(ask.rules.get("affinity", {}))}
    ask = ask.but(rules=rules)
    ask = RULES[name](rng, ask)
    return ask if rules["affinity"] else ask.but(rules=_without(ask.rules, "affinity"))


def _without(rules: Object, name: str) -> Object:
    return {key: value for key, value in rules.items() if key != name}


def _selector(rng: Random, ask: Ask, *, own: float) -> Object:
    """A label selector: of the pod's own application, as often as ``own`` says, or of any."""
    app = ask.labels["app"] if rng.random() < own else rng.choice(APPS)
    operator = rng.choice(("In", "In", "In", "NotIn", "Exists"))
    if operator == "Exists" and rng.random() < 0.5:
        return {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    if operator == "NotIn":
        return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]}
    return {"matchLabels": {"app": app}}


def _term(rng: Random, ask: Ask, *, own: float) -> Object:
    term: Object = {
        "topologyKey": rng.choice((HOST, ZONE)),
        "labelSelector": _selector(rng, ask, own=own),
    }
    space = rng.random()
    if space < 0.15:
        term["namespaces"] = list(SPACES)
    elif space < 0.25:
        term["namespaceSelector"] = {"matchLabels": {"team": rng.choice(TEAMS)}}
    return term


def _affinity(rng: Random, ask: Ask) -> Ask:
    near = ask.rules["affinity"].get("podAffinity", {})
    ask.rules["affinity"]["podAffinity"] = {**near, REQUIRED: [_term(rng, ask, own=0.7)]}
    return ask


def _anti_affinity(rng: Random, ask: Ask) -> Ask:
    anti = ask.rules["affinity"].get("podAntiAffinity", {})
    ask.rules["affinity"]["podAntiAffinity"] = {**anti, REQUIRED: [_term(rng, ask, own=0.6)]}
    return ask


def _spread_constraint(rng: Random, ask: Ask, when: str) -> Object:
    spread: Object = {
        "topologyKey": rng.choice((HOST, ZONE, ZONE)),
        "maxSkew": rng.choice((1, 1, 2)),
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": ask.labels["app"]}},
    }
    if when == "DoNotSchedule" and rng.random() < 0.25:
        spread["minDomains"] = rng.choice((2, 3))
    if rng.random() < 0.25:
        spread["nodeTaintsPolicy"] = "Honor"
    if rng.random() < 0.25:
        spread["nodeAffinityPolicy"] = "Ignore"
    return spread


def _spread(rng: Random, ask: Ask) -> Ask:
    spreads = [*ask.rules.get("topologySpreadConstraints", [])]
    spreads.append(_spread_constraint(rng, ask, "DoNotSchedule"))
    return ask.but(rules={**ask.rules, "topologySpreadConstraints": spreads})


def _preferred(rng: Random, ask: Ask) -> Ask:
    """A preference for nodes, for or against other pods, or for an even spread."""
    weight, affinity = rng.choice((1, 10, 100)), ask.rules["affinity"]
    kind = rng.choice(("node", "near", "apart", "spread"))
    if kind == "node":
        wanted = {"key": "pool", "operator": "In", "values": [rng.choice(POOLS)]}
        term = {"weight": weight, "preference": {"matchExpressions": [wanted]}}
        affinity["nodeAffinity"] = {**affinity.get("nodeAffinity", {}), PREFERRED: [term]}
    elif kind == "spread":
        spreads = [*ask.rules.get("topologySpreadConstraints", [])]
        spreads.append(_spread_constraint(rng, ask, "ScheduleAnyway"))
        return ask.but(rules={**ask.rules, "topologySpreadConstraints": spreads})
    else:
        field = {"near": "podAffinity", "apart": "podAntiAffinity"}[kind]
        term = {"weight": weight, "podAffinityTerm": _term(rng, ask, own=0.6)}
        affinity[field] = {**affinity.get(field, {}), PREFERRED: [term]}
    return ask


def _node_selector(rng: Random, ask: Ask) -> Ask:
    return ask.but(rules={**ask.rules, "nodeSelector": {"pool": rng.choice(POOLS)}})


def _node_affinity(rng: Random, ask: Ask) -> Ask:
    one: Object = rng.choice(
        (
            {"key": ZONE, "operator": "In", "values": rng.sample(ZONES, 2)},
            {"key": ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]},
            {"key": "pool", "operator": "Exists"},
            {"key": "pool", "operator": "DoesNotExist"},
            {"key": "rank", "operator": rng.choice(("Gt", "Lt")), "values": ["2"]},
        )
    )
    terms = [{"matchExpressions": [one]}]
    if rng.random() < 0.3:
        field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
        terms.append({"matchFields": [field]})
    affinity = ask.rules["affinity"]
    required = {REQUIRED: {"nodeSelectorTerms": terms}}
    affinity["nodeAffinity"] = {**affinity.get("nodeAffinity", {}), **required}
    return ask


def _toleration(rng: Random, ask: Ask) -> Ask:
    one = rng.choice(
        (
            {"key": "dedicated", "operator": "Exists"},
            {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
            {"operator": "Exists"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        )
    )
    return ask.but(rules={**ask.rules, "tolerations": [one]})


def _host_port(rng: Random, ask: Ask) -> Ask:
    ports: list[Object] = [
        {"containerPort": 80, "hostPort": 80},
        {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
        {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
        {"containerPort": 90, "hostPort": 90},
    ]
    return ask.but(ports=(rng.choice(ports),))


RULES: Mapping[str, Callable[[Random, Ask], Ask]] = {
    "pod affinity": _affinity,
    "pod anti-affinity": _anti_affinity,
    "topology spread": _spread,
    "preferred rules": _preferred,
    "node selector": _node_selector,
    "node affinity": _node_affinity,
    "tolerations": _toleration,
    "host ports": _host_port,
}
