"""The oracle's own reading of rules between pods: what a person can work out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.model.decisions import Objective, Policy
from tutti.model.inter_pod import PodSelector, Requirement
from tutti.model.shapes import Toleration
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit

from ...harness.builders import (
    AMPLE_BUDGET,
    NAMESPACE,
    gang,
    node,
    peers,
    reservation,
    snapshot_of,
    space,
    term,
)
from . import snapshots
from .__main__ import on_snapshot
from .admission import Reading
from .comparing import judged
from .optimum import optimum

if TYPE_CHECKING:
    from ...harness.builders import NodeBuilder, Part

X = peers(app="x")


def place(name: str, zone: str = "", cpu: int = 9) -> NodeBuilder:
    """A node, in a zone or in none."""
    made = node(name, cpu=cpu).labelled(hostname=name)
    return made.labelled(zone=zone) if zone else made


def admitted(*parts: Part) -> int:
    """How many gangs can start."""
    ((_, value),) = optimum(Reading(snapshot_of(*parts), Policy(Objective.GANGS)).case())
    return value


def test_members_keep_apart_from_each_other_and_from_those_who_are_there() -> None:
    train = gang("train").of(3, cpu=1).labelled(app="x")
    nodes = [place("n1"), place("n2"), place("n3")]
    assert admitted(*nodes, train.apart("hostname")) == 1
    assert admitted(*nodes[:2], train.apart("hostname")) == 0
    node = place("n3").hosting("guest", app="x")
    assert admitted(*nodes[:2], node, train.apart("hostname")) == 1
    assert admitted(*nodes[:2], node, train.apart("hostname", X)) == 0


def test_others_keep_members_away_in_their_whole_domain_if_they_have_one() -> None:
    train = gang("train").of(1, cpu=1).labelled(app="x")
    shy = [term("zone", X)]
    assert admitted(place("n1", "a").hosting("guest", *shy), place("n2", "a"), train) == 0
    assert admitted(place("n1", "a").hosting("guest", *shy), place("n2", "b"), train) == 1
    assert admitted(place("n1").hosting("guest", *shy), train) == 1
    assert admitted(place("n1", "a").hosting("guest", term("zone", peers(app="y"))), train) == 1


def test_company_is_asked_of_one_pod_in_every_topology_or_of_nobody_at_all() -> None:
    train = gang("train").of(2, cpu=5).labelled(app="x").near("zone")
    assert admitted(place("n1", "a"), place("n2", "a"), train) == 1
    assert admitted(place("n1", "a"), place("n2", "b"), train) == 0
    assert admitted(place("n1"), place("n2"), train) == 0
    lonely = gang("train").of(1, cpu=5).labelled(app="x").near("zone", peers(app="y"))
    assert admitted(place("n1", "a"), lonely) == 0
    assert admitted(place("n1", "a").hosting("guest", app="y"), place("n2", "a"), lonely) == 1
    both = lonely.near("hostname", peers(role="r"))
    assert admitted(place("n1", "a").hosting("g", app="y").hosting("h", role="r"), both) == 0
    assert admitted(place("n1", "a").hosting("g", app="y", role="r"), both) == 1


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        (PodSelector((Requirement("app", "NotIn", ("y",)),), ("data",)), 1),
        (PodSelector((Requirement("app", "NotIn", ("x",)),), ("data",)), 0),
        (PodSelector((Requirement("app", "Exists"),), ("data",)), 1),
        (PodSelector((Requirement("role", "DoesNotExist"),), ("data",)), 1),
        (PodSelector((), ("data",)), 1),
        (PodSelector(None, ("data",)), 0),
        (PodSelector((), (NAMESPACE,)), 0),
        (PodSelector((), (), ()), 1),
        (PodSelector((), (), (Requirement("team", "In", ("blue",)),)), 1),
        (PodSelector((), (), (Requirement("team", "In", ("red",)),)), 0),
    ],
)
def test_selectors_and_namespaces_say_who_is_meant(asked: PodSelector, count: int) -> None:
    guest = place("n1", "a").hosting("guest", namespace="data", app="x")
    train = gang("train").of(1, cpu=1).apart("zone", asked)
    spaces = space(NAMESPACE, team="red"), space("data", team="blue")
    assert admitted(guest, train, *spaces) == 1 - count


def test_members_spread_evenly_over_the_domains_that_count() -> None:
    train = gang("train").of(4, cpu=1).labelled(app="x").even("zone", X)
    assert admitted(place("n1", "a", cpu=2), place("n2", "b", cpu=2), train) == 1
    assert admitted(place("n1", "a", cpu=3), place("n2", "b", cpu=1), train) == 0
    assert admitted(place("n1", "a", cpu=1), place("n2", cpu=9), train) == 0
    crowded = place("n2", "b").hosting("g", app="x").hosting("h", app="x")
    assert admitted(place("n1", "a"), crowded, train) == 1
    assert admitted(place("n1", "a", cpu=2), crowded, train) == 0
    left = replace(crowded, others=tuple(replace(o, terminating=True) for o in crowded.others))
    assert admitted(place("n1", "a", cpu=2), left, train) == 1


def test_too_few_domains_count_as_one_that_is_empty() -> None:
    train = gang("train").of(4, cpu=1).labelled(app="x")
    nodes = place("n1", "a"), place("n2", "b")
    assert admitted(*nodes, train.even("zone", X, min_domains=2)) == 1
    assert admitted(*nodes, train.even("zone", X, min_domains=3)) == 0


def test_policies_say_which_nodes_count() -> None:
    tainted = place("n2", "b").tainted("dedicated")
    train = gang("train").of(2, cpu=1).labelled(app="x")
    assert admitted(place("n1", "a"), tainted, train.even("zone", X)) == 0
    assert admitted(place("n1", "a"), tainted, train.even("zone", X, honors_node_taints=True)) == 1
    tolerant = train.even("zone", X, honors_node_taints=True).shaped(
        tolerations=(Toleration("dedicated", "Exists"),)
    )
    assert admitted(place("n1", "a", cpu=1), tainted, tolerant) == 1
    chosen = train.shaped(node_selector=(("zone", "a"),))
    nodes = place("n1", "a"), place("n2", "b")
    assert admitted(*nodes, chosen.even("zone", X)) == 1
    assert admitted(*nodes, chosen.even("zone", X, honors_node_affinity=False)) == 0


def test_a_constraint_on_everyone_only_wants_the_label() -> None:
    everyone = PodSelector((), (NAMESPACE,))
    train = gang("train").of(4, cpu=1).even("zone", everyone)
    assert admitted(place("n1", "a", cpu=4), place("n2", "b", cpu=0), train) == 1
    assert admitted(place("n1"), train) == 0


def test_whom_a_reservation_holds_a_node_for_is_there() -> None:
    held = gang("held").of(1, cpu=1).labelled(app="x")
    train = gang("train").of(1, cpu=1).apart("zone", X)
    promise = reservation(held, ("held-0", "n1"))
    assert admitted(place("n1", "a"), held, promise, train) == 0
    assert admitted(place("n1", "a"), place("n2", "b"), held, promise, train) == 1


def test_a_heuristic_is_seen_to_miss_the_best_of_snapshots_with_rules() -> None:
    found = [on_snapshot(seed, BestFit()).wrong for seed in range(61, 121, 2)]
    assert sum("the optimum is" in " ".join(wrong) for wrong in found) >= 2


def test_a_proof_that_pods_of_a_later_round_refute_is_caught() -> None:
    grown = gang("e").of(2, gpu=1).needing(1).priority(2)
    follower = gang("w").of(1, cpu=6).near("zone", peers(app="x")).priority(2)
    leader = gang("b").of(1, cpu=1).labelled(app="x")
    nodes = place("n1", "a", cpu=1), place("n2", "b", cpu=7), node("n3", gpu=2)
    seen, policy = snapshot_of(*nodes, grown, follower, leader), Policy(Objective.GANGS)
    made = plan(seen, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, policy)
    assert judged(seen, policy, made).wrong == ()
    said = judged(seen, policy, replace(made, proved=True)).wrong
    assert said == ("it is proved, and beside all that came later the optimum is 2 on level 2",)


@pytest.mark.parametrize("seed", [41, 97, 299])
def test_random_pictures_have_proofs_that_would_be_refuted(seed: int) -> None:
    seen, policy = snapshots.cluster(seed), snapshots.policy(seed)
    made = plan(seen, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, policy)
    assert not made.proved
    assert judged(seen, policy, made).wrong == ()
    assert judged(seen, policy, replace(made, proved=True)).wrong
