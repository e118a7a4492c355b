"""Rules between pods, and pods that have a node, in few words; zones are the label ``zone``."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tutti.model.cluster import Namespace, PlacedPod, Snapshot
from tutti.model.inter_pod import (
    AffinityTerm,
    InterPodRules,
    Labels,
    PodSelector,
    Requirement,
    TopologySpread,
)
from tutti.model.keys import NodeName, Uid

from ...harness.builders import NAMESPACE, GangBuilder, NodeBuilder, node

ZONE, HOST = "zone", "host"


def labels(**values: str) -> Labels:
    """Labels as members and residents carry them."""
    return tuple(sorted(values.items()))


def peers(*, namespace: str = NAMESPACE, **values: str) -> PodSelector:
    """Whoever has these labels in one namespace."""
    selector = tuple(Requirement(key, "In", (value,)) for key, value in labels(**values))
    return PodSelector(selector, (namespace,))


def apart(*who: PodSelector, on: str = HOST) -> InterPodRules:
    """Required anti-affinity to these."""
    return InterPodRules(anti_affinity=tuple(AffinityTerm(on, each) for each in who))


def near(*who: PodSelector, on: Sequence[str] = (ZONE,)) -> InterPodRules:
    """Required affinity to these, one term for each and a topology for each."""
    topologies = on if len(on) == len(who) else [on[0]] * len(who)
    return InterPodRules(
        affinity=tuple(AffinityTerm(key, each) for key, each in zip(topologies, who, strict=True))
    )


def even(who: PodSelector, max_skew: int = 1, on: str = ZONE, **changes: Any) -> InterPodRules:
    """A spread that must hold."""
    return InterPodRules(spread=(replace(TopologySpread(on, who, max_skew), **changes),))


def host(name: str, zone: str = "", **amounts: Any) -> NodeBuilder:
    """A node of its own host, in a zone if one is named."""
    made = node(name, **(amounts or {"cpu": 8})).labelled(host=name)
    return made.labelled(zone=zone) if zone else made


def zones(count: int = 3, each: int = 2, **amounts: Any) -> Sequence[NodeBuilder]:
    """Nodes ``z0-0``, ``z0-1``, ``z1-0`` … in zones ``z0``, ``z1`` …."""
    return [host(f"z{z}-{i}", f"z{z}", **amounts) for z in range(count) for i in range(each)]


def asking(gang: GangBuilder, rules: InterPodRules, **values: str) -> GangBuilder:
    """The gang with these rules for all its members, and these labels."""
    return gang.shaped(rules=rules).each(labels=labels(**values))


def resident(name: str, on: str, *, namespace: str = NAMESPACE, **values: str) -> PlacedPod:
    """A pod that has a node, with these labels."""
    return PlacedPod(Uid(name), NodeName(on), namespace, labels(**values))


def beside(snapshot: Snapshot, *residents: PlacedPod, spaces: Sequence[Namespace] = ()) -> Snapshot:
    """The Snapshot with these pods there, and with all members that have a node."""
    own = [
        PlacedPod(
            member.uid,
            member.node,
            member.key.namespace,
            member.labels,
            member.shape.rules.anti_affinity,
            member.terminating,
        )
        for gang in snapshot.gangs
        for member in gang.members
        if member.node is not None and not member.is_over
    ]
    return replace(
        snapshot,
        placed_pods=tuple(sorted((*own, *residents), key=lambda one: one.uid)),
        namespaces=tuple(spaces),
    )
