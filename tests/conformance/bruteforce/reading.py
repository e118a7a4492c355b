"""Manifests to a cluster, read without the project's code.

What is not understood here raises, so that nothing is judged by half a picture.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import yaml

from . import quantities, wishes
from .cluster import PODS, Cluster, Gang, Node, Pod, Raw, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUP, ROLE = "tutti.dev/pod-group", "tutti.dev/role"
HEADER = "Header"  # the annotations of a List, as if they were an object
READ = {"Node", "Pod", "PodGroup", "Namespace", "Job"}
UNREADY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
EVERYWHERE = "0.0.0.0"  # the address of a host port that names none
Port = tuple[int, str, str]
_UNKNOWN_SPEC = ("volumes", "schedulingGates", "resourceClaims")


class NotUnderstoodError(ValueError):
    """The manifests hold something that this brute force does not read."""


def documents(text: str) -> list[Raw]:
    """The objects of a file, Lists opened; the List's annotations come as a kind of their own."""
    try:
        found: list[Any] = [json.loads(text)]
    except json.JSONDecodeError:
        found = [one for one in yaml.safe_load_all(text) if one]
    objects: list[Raw] = []
    for one in found:
        if one.get("kind") == "List":
            objects += one["items"]
            notes = (one.get("metadata") or {}).get("annotations")
            objects += [{"kind": HEADER, "metadata": {"annotations": notes}}] if notes else []
        else:
            objects.append(one)
    return objects


def cluster(objects: Sequence[Raw], now: float) -> Cluster:
    """The cluster of these objects; ``now`` is the moment that the plan says.

    Raises:
        NotUnderstoodError: something in them is not read here.
    """
    if unread := {item["kind"] for item in objects} - READ - {HEADER}:
        raise NotUnderstoodError(f"kind {', '.join(sorted(unread))}")
    objects = [made for item in objects for made in _expanded(item)]
    by_kind = {kind: [item for item in objects if item["kind"] == kind] for kind in READ}
    living = [one for one in by_kind["Pod"] if not _is_over(one)]
    addresses = frozenset(port for one in living for port in _ports(one["spec"]))
    pods = [(_pod(one, now, addresses), one) for one in living]
    groups = {_name(one): one for one in by_kind["PodGroup"]}
    gangs = tuple(_gangs(groups, pods, now))
    members = frozenset(_full(pod) for gang in gangs for pod in (*gang.bound, *gang.waiting))
    there = tuple(pod for pod, _ in pods if pod.node is not None)
    policy = _policy(objects)
    asked = [pod.request for gang in gangs for pod in gang.waiting]
    mine = [pod.spec for pod, raw in pods if _is_ours(raw)]
    return Cluster(
        nodes=tuple(sorted(map(_node, by_kind["Node"]), key=lambda node: node.name)),
        gangs=gangs,
        there=there,
        ours=members,
        namespaces={
            one["metadata"]["name"]: {
                "kubernetes.io/metadata.name": one["metadata"]["name"],
                **(one["metadata"].get("labels") or {}),
            }
            for one in by_kind["Namespace"]
        },
        now=now,
        objective=policy.get("objective", "resources"),
        age_seconds=Fraction(policy.get("age_seconds", 3600)),
        starvation_seconds=Fraction(policy.get("starvation_seconds", 3600)),
        has_wishes=wishes.present(objects),
        has_rules=any(wishes.has_rules(spec) for spec in mine),
        resources=frozenset(name for one in asked for name in one),
    )


def _full(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _name(one: Raw) -> str:
    metadata = one["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def _expanded(one: Raw) -> Iterable[Raw]:
    if one["kind"] != "Job":
        return (one,)
    metadata, spec = one["metadata"], one["spec"]
    template = spec["template"]
    return [
        {
            **template,
            "kind": "Pod",
            "metadata": {
                **template.get("metadata", {}),
                "name": f"{metadata['name']}-{i}",
                "namespace": metadata.get("namespace"),
            },
        }
        for i in range(spec.get("parallelism", 1))
    ]


def _policy(objects: Iterable[Raw]) -> Raw:
    for item in objects:
        if item["kind"] == HEADER:
            words = item["metadata"]["annotations"].get("tutti.dev/settings")
            return json.loads(words)["policy"] if words else {}
    return {}


def _time(metadata: Raw, now: float) -> float:
    text = metadata.get("creationTimestamp") if metadata.get("uid") else None
    return now if text is None else moment(text)


def moment(text: object) -> float:
    """Seconds since 1970 of an RFC 3339 text."""
    if isinstance(text, datetime):
        return text.replace(tzinfo=text.tzinfo or UTC).timestamp()
    return datetime.fromisoformat(str(text)).timestamp()


def _is_over(one: Raw) -> bool:
    return (one.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _is_ours(one: Raw) -> bool:
    return bool(one["spec"].get("schedulerName") == "tutti")


def _node(one: Raw) -> Node:
    metadata, status = one["metadata"], one.get("status") or {}
    spec, is_new = one.get("spec") or {}, not metadata.get("uid")
    offers = dict(status.get("allocatable") or status.get("capacity") or {})
    labels = dict(metadata.get("labels") or {})
    taints = list(spec.get("taints") or [])
    conditions = {c["type"]: c["status"] for c in status.get("conditions") or []}
    if is_new:
        offers.setdefault(PODS, "110")
        labels.setdefault("kubernetes.io/hostname", metadata["name"])
    elif conditions.get("Ready") != "True":
        taints.append({"key": "unready", "effect": "NoSchedule"})
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    room = {name: quantities.units(name, quantities.amount(n)) for name, n in offers.items()}
    return Node(metadata["name"], labels, taints, room)


def _pod(one: Raw, now: float, addresses: Iterable[Port]) -> Pod:
    metadata, spec = one["metadata"], one["spec"]
    if unknown := [name for name in _UNKNOWN_SPEC if spec.get(name)]:
        raise NotUnderstoodError(f"pod field {', '.join(unknown)}")
    labels = dict(metadata.get("labels") or {})
    return Pod(
        name=metadata["name"],
        namespace=metadata.get("namespace") or "default",
        labels=labels,
        spec=spec,
        request={**_request(spec), **_host_ports(spec, addresses)},
        created=_time(metadata, now),
        role=labels.get(ROLE, ""),
        node=spec.get("nodeName"),
        is_terminating="deletionTimestamp" in metadata,
    )


def _request(spec: Raw) -> dict[str, int]:
    """What kube-scheduler counts for a pod."""
    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or []:
        for name, n in _asked(container).items():
            total[name] = total.get(name, Fraction(0)) + n
    if spec.get("initContainers"):
        raise NotUnderstoodError("initContainers")
    for name, n in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Fraction(0)) + quantities.amount(n)
    request = {name: quantities.units(name, n) for name, n in total.items() if n > 0}
    return {**request, PODS: 1}


def _ports(spec: Raw) -> Iterable[Port]:
    for container in spec.get("containers") or []:
        for port in container.get("ports") or []:
            if port.get("hostPort"):
                address = port.get("hostIP") or EVERYWHERE
                yield (port["hostPort"], port.get("protocol") or "TCP", address)


def _host_ports(spec: Raw, addresses: Iterable[Port]) -> dict[str, int]:
    """One of a resource for each address and port that the pod keeps others from."""
    return {
        f"port {other[0]}/{other[1]} {other[2]}": 1
        for port in _ports(spec)
        for other in addresses
        if other[:2] == port[:2] and (EVERYWHERE in (port[2], other[2]) or port == other)
    }


def _asked(container: Raw) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    words = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantities.amount(n) for name, n in words.items()}


def _gangs(groups: dict[str, Raw], pods: Sequence[tuple[Pod, Raw]], now: float) -> Iterable[Gang]:
    members: dict[str, list[tuple[Pod, int]]] = {name: [] for name in groups}
    for pod, raw in pods:
        if not _is_ours(raw):
            continue
        group, priority = pod.labels.get(GROUP), int(raw["spec"].get("priority") or 0)
        if group is not None:
            # Pods whose PodGroup does not exist wait for it.
            members.setdefault(f"{pod.namespace}/{group}", []).append((pod, priority))
        elif not pod.is_terminating:
            waiting, bound = ((pod,), ()) if pod.node is None else ((), (pod,))
            name = f"{pod.namespace}/{pod.name}"
            yield Gang(name, "Pod", priority, pod.created, 1, (), bound, waiting)
    for name, one in groups.items():
        yield _group(name, one, members[name], now)


def _group(name: str, raw: Raw, members: Sequence[tuple[Pod, int]], now: float) -> Gang:
    spec = raw.get("spec") or {}
    known = {"minMember", "roles"}
    if unknown := set(spec) - known:
        raise NotUnderstoodError(f"PodGroup field {', '.join(sorted(unknown))}")
    if any("template" in one for one in spec.get("roles") or []):
        raise NotUnderstoodError("template of a role")
    roles = tuple(
        Role(one["name"], one.get("minMember", 0), one.get("maxMember"))
        for one in spec.get("roles") or []
    )
    pods = sorted((pod for pod, _ in members if not pod.is_terminating), key=lambda p: p.key)
    if roles:
        pods = [pod for pod in pods if pod.role in {role.name for role in roles}]
    least = sum(role.least for role in roles)
    need = max(spec.get("minMember") or 0, least, 1)
    return Gang(
        name=name,
        kind="PodGroup",
        priority=max((priority for _, priority in members), default=0),
        created=_time(raw["metadata"], now),
        need=need,
        roles=roles,
        bound=tuple(pod for pod in pods if pod.node is not None),
        waiting=tuple(pod for pod in pods if pod.node is None),
    )
