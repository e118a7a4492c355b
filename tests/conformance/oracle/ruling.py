"""Rules between pods for the random Snapshots: zones, others' pods, and what gangs ask of them.

Everyone is one of a few apps in one of two namespaces, so that rules reach across gangs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tutti.model.inter_pod import PodSelector, Requirement

from ...harness.builders import NAMESPACE, peers, space, term

if TYPE_CHECKING:
    from random import Random

    from tutti.model.inter_pod import AffinityTerm

    from ...harness.builders import GangBuilder, NodeBuilder

APPS, TEAMS, ZONES = ("x", "y"), ("red", "blue"), ("a", "b", "c")
OTHER = "data"  # a namespace
SPACES = (space(NAMESPACE, team="red"), space(OTHER, team="blue"))
TOPOLOGIES = ("zone", "zone", "hostname")


def node(chance: Random, node: NodeBuilder) -> NodeBuilder:
    """In a zone, mostly, and now and then with another scheduler's pod, which may want distance."""
    name = str(node.made.name)
    if chance.random() < 0.95:
        node = node.labelled(hostname=name)
    if chance.random() < 0.9:
        node = node.labelled(zone=chance.choice(ZONES))
    for number in range(chance.choice([0, 0, 0, 1, 2])):
        far = [_distance(chance)] if chance.random() < 0.3 else []
        where = chance.choice([NAMESPACE, NAMESPACE, OTHER])
        app = chance.choice(APPS)
        node = node.hosting(f"{name}-guest-{number}", *far, namespace=where, app=app)
        if chance.random() < 0.2:
            *others, last = node.others
            node = replace(node, others=(*others, replace(last, terminating=True)))
    return node


def gang(chance: Random, made: GangBuilder) -> GangBuilder:
    """Of an app, and in three of four cases with a rule or two, for all its members or a role's."""
    made = made.labelled(app=chance.choice(APPS))
    for _ in range(chance.choice([0, 1, 1, 2])):
        by = chance.choice(["", *(role.name for role in made.roles)])
        topology, own = chance.choice(TOPOLOGIES), peers(group=made.key.name)
        match chance.choice(["apart", "near", "even"]):
            case "apart":
                made = made.apart(topology, chance.choice([own, _peers(chance)]), by=by)
            case "near":
                roles = [peers(group=made.key.name, role=role.name) for role in made.roles[:1]]
                made = made.near(topology, chance.choice([own, *roles, _peers(chance)]), by=by)
            case _:
                made = made.even(
                    topology,
                    chance.choice([own, own, peers(app=chance.choice(APPS))]),
                    by=by,
                    skew=chance.choice([1, 1, 2]),
                    min_domains=chance.choice([1, 1, 1, 2, 3]),
                    honors_node_affinity=chance.random() < 0.8,
                    honors_node_taints=chance.random() < 0.3,
                )
    return made


def following(chance: Random, gangs: list[GangBuilder]) -> list[GangBuilder]:
    """Now and then one gang wants another near whose priority is lower, and nobody else is like it.

    So it depends on pods that may be decided on later.
    """
    if len(gangs) < 2 or chance.random() < 0.6:
        return gangs
    first, second = chance.sample(range(len(gangs)), 2)
    made = list(gangs)
    made[first] = gangs[first].near(chance.choice(TOPOLOGIES), peers(app="z")).priority(2)
    made[second] = gangs[second].labelled(app="z").priority(chance.choice([0, 1]))
    return made


def _distance(chance: Random) -> AffinityTerm:
    return term(chance.choice(TOPOLOGIES), _peers(chance))


def _peers(chance: Random) -> PodSelector:
    """Some pods by app and namespace, in any of the ways to name them."""
    app = chance.choice(APPS)
    selector = chance.choice(
        [
            Requirement("app", "In", (app,)),
            Requirement("app", "In", (app,)),
            Requirement("app", "NotIn", (app,)),
            Requirement("app", "Exists"),
            Requirement("tutti.dev/role", "DoesNotExist"),
        ]
    )
    named = chance.choice([(NAMESPACE,), (NAMESPACE,), (OTHER,), ()])
    team = (Requirement("team", "In", (chance.choice(TEAMS),)),)
    return PodSelector((selector,), named, None if named else chance.choice([team, ()]))
