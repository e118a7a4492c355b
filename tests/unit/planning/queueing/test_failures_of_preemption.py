"""Known failures of other schedulers that end pods, each as a scene of ours, by the issue's number.

Plans follow one another, and each is carried out whole: victims end and wait again, claimants run.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tutti.model.cluster import Gang, Reservation, Snapshot
from tutti.model.decisions import Claim, Placement, Plan
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.queues import Preemption
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.verify.plan_checks import violations
from tutti.verify.preemption import checks as preemption_checks

from ....harness.builders import (
    AMPLE_BUDGET,
    GangBuilder,
    Part,
    applied,
    node,
    peers,
    reservation,
)
from .test_failures_of_others import NOW, PATIENT, cluster, quota, runs, waits

FULL = replace(PATIENT, preemption=Preemption.FULL)
MOST_PLANS = 12


def planned(snapshot: Snapshot) -> Plan:
    made = plan(snapshot, STRATEGIES["ilp"](), BestFit(), AMPLE_BUDGET, FULL)
    assert violations(snapshot, made) == ()
    assert preemption_checks.faults(snapshot, made, FULL.preemption) == ()
    return made


def history(snapshot: Snapshot) -> Iterator[Plan]:
    """Plans that follow one another, until one changes nothing."""
    for _ in range(MOST_PLANS):
        made = planned(snapshot)
        if not (made.placements or made.claims):
            return
        yield made
        snapshot = carried_out(snapshot, made)
    raise AssertionError("the plans do not come to rest")


def carried_out(before: Snapshot, made: Plan) -> Snapshot:
    """The Snapshot once the victims of all claims have ended and wait, and all claimants run."""
    after = applied(before, made)
    ended = {m.uid for claim in made.claims for v in claim.victims for m in v.members}
    whole = {v.uid for claim in made.claims for v in claim.victims if v.is_whole}
    nodes = {a.uid: a.node for claim in made.claims for a in claim.assignments}
    gangs = tuple(_moved(gang, ended, nodes) for gang in after.gangs)
    starts: list[Placement | Claim] = [*made.placements, *made.claims]
    records = {start.uid: start.record for start in starts}
    standing = [held for held in after.reservations if held.uid not in whole | records.keys()]
    standing += [
        replace(reservation(GangBuilder(gang.key)), uid=gang.uid, record=records[gang.uid])
        for gang in gangs
        if gang.uid in records
    ]
    return replace(after, gangs=gangs, reservations=tuple(sorted(standing, key=_by_gang)))


def _moved(gang: Gang, ended: set[Uid], nodes: dict[Uid, NodeName]) -> Gang:
    members = [replace(m, node=None) if m.uid in ended else m for m in gang.members]
    members = [replace(m, node=nodes[m.uid]) if m.uid in nodes else m for m in members]
    return replace(gang, members=tuple(members))


def _by_gang(held: Reservation) -> GangKey:
    return held.gang


def ends(made: Plan) -> dict[str, dict[str, int]]:
    """By claimant, how many members of each victim end."""
    return {
        claim.gang.name: {victim.gang.name: len(victim.members) for victim in claim.victims}
        for claim in made.claims
    }


def all_ends(snapshot: Snapshot) -> list[str]:
    """The names of the gangs that end, plan after plan."""
    claims = [claim for made in history(snapshot) for claim in made.claims]
    return [victim.gang.name for claim in claims for victim in claim.victims]


@pytest.mark.parametrize("issue", ["kueue 13662", "kueue 7101"])
def test_a_gang_that_borrows_ends_once_for_all_gangs_of_the_guarantee(issue: str) -> None:
    """It waits again at once, and no plan starts it in room that the guarantee has taken back."""
    own, other = quota("a", gpu=8), quota("b")
    borrows = runs(waits("r", "b", 8), other, *["n1"] * 8)
    some = [waits(f"x{n}", "a", 2) for n in range(4)]
    assert all_ends(cluster(node("n1", gpu=8), own, other, *borrows, *some)) == ["r"], issue


def test_kueue_14543_no_victim_is_spared_that_the_claimant_needs() -> None:
    """Two small gangs would not suffice beside the large one: what ends makes room, or stays."""
    own, other = quota("a", gpu=6), quota("b")
    running = [
        part
        for name, members in (("large", 4), ("x", 1), ("y", 1))
        for part in runs(waits(name, "b", members), other, *["n1"] * members)
    ]
    snapshot = cluster(node("n1", gpu=6), own, other, *running, waits("new", "a", 5))
    assert ends(planned(snapshot)) == {"new": {"large": 4, "x": 1}}
    assert all_ends(snapshot) == ["large", "x"]


def test_kueue_3779_two_queues_within_their_guarantees_do_not_end_each_other() -> None:
    queues = quota("org", gpu=4), quota("a", "org", gpu=2), quota("b", "org", gpu=2)
    running = [
        part
        for name, into in (("r", queues[1]), ("s", queues[2]))
        for part in runs(waits(name, into.name, 2), into, "n1", "n1")
    ]
    more = waits("x", "a", 2, 0), waits("y", "b", 2, 0)
    assert all_ends(cluster(node("n1", gpu=4), *queues, *running, *more)) == []


def test_volcano_3729_two_elastic_gangs_do_not_take_from_each_other_for_ever() -> None:
    queues = quota("a", gpu=2), quota("b", gpu=2)
    full = runs(waits("r", "a", 4).needing(1), queues[0], *["n1"] * 4)
    snapshot = cluster(node("n1", gpu=4), *queues, *full, waits("s", "b", 4).needing(2))
    first, *later = history(snapshot)
    assert ends(first) == {"s": {"r": 2}}
    assert all(not made.claims for made in later)


@pytest.mark.parametrize("issue", ["volcano 4925", "kueue 5243"])
def test_nothing_ends_if_amounts_would_suffice_and_no_node_would(issue: str) -> None:
    own, other = quota("a", gpu=6), quota("b")
    running = [part for n in (1, 2, 3) for part in runs(waits(f"r{n}", "b", gpu=2), other, f"n{n}")]
    nodes = [node(f"n{n}", gpu=2) for n in (1, 2, 3)]
    assert all_ends(cluster(*nodes, own, other, *running, waits("x", "a", gpu=3))) == [], issue


def test_volcano_5984_one_pod_ends_where_one_is_enough() -> None:
    own, other = quota("a", gpu=8), quota("b")
    running = [part for n in range(10) for part in runs(waits(f"r{n}", "b"), other, "n1")]
    snapshot = cluster(node("n1", gpu=10), own, other, *running, waits("x", "a"))
    assert list(ends(planned(snapshot)).values()) == [{"r0": 1}]


def test_kai_1565_so_many_devices_end_as_are_asked_for_across_nodes() -> None:
    own, other = quota("a", gpu=16), quota("b")
    running = [
        part for n in range(8) for part in runs(waits(f"r{n}", "b", 4), other, *[f"n{n}"] * 4)
    ]
    nodes = [node(f"n{n}", gpu=4) for n in range(8)]
    snapshot = cluster(*nodes, own, other, *running, waits("x", "a", 4, gpu=4))
    (claim,) = planned(snapshot).claims
    assert sum(len(victim.members) for victim in claim.victims) == 16
    assert claim.is_proved


def test_volcano_4607_a_gang_that_needs_all_of_its_members_ends_whole() -> None:
    own, other = quota("a", gpu=1), quota("b")
    running = runs(waits("r", "b", 4), other, *["n1"] * 4)
    snapshot = cluster(node("n1", gpu=4), own, other, *running, waits("x", "a"))
    assert ends(planned(snapshot)) == {"x": {"r": 4}}


def test_kueue_10131_of_one_queue_the_lowest_priority_ends_in_any_order_of_names() -> None:
    own = quota("a", gpu=3)
    for names in (("p", "q", "r"), ("r", "p", "q"), ("q", "r", "p")):
        running = [
            part
            for priority, name in enumerate(names)
            for part in runs(waits(name, "a", 1, priority), own, "n1")
        ]
        snapshot = cluster(node("n1", gpu=3), own, *running, waits("x", "a", 1, 9))
        assert ends(planned(snapshot)) == {"x": {names[0]: 1}}


def test_kueue_8902_only_gangs_on_devices_that_the_claimant_accepts_end() -> None:
    own, other = quota("a", gpu=1), quota("b")
    running = [part for n in (1, 2) for part in runs(waits(f"r{n}", "b"), other, f"n{n}")]
    nodes = (
        node("n1", gpu=1).labelled(product="T4"),
        node("n2", gpu=1).labelled(product="A100"),
    )
    wants = waits("x", "a").shaped(node_selector=(("product", "A100"),))
    assert ends(planned(cluster(*nodes, own, other, *running, wants))) == {"x": {"r2": 1}}


def test_kueue_9406_what_borrows_one_resource_ends_and_what_is_covered_stays() -> None:
    own, other = quota("a", cpu=4000, gpu=2), quota("b", cpu=4000, gpu=6)
    stays = runs(waits("r", "a", 1, cpu=4, gpu=2), own, "n1")
    borrows = runs(waits("s", "a", 1, cpu=0, gpu=6), own, "n1")
    snapshot = cluster(
        node("n1", cpu=8, gpu=8), own, other, *stays, *borrows, waits("x", "b", 1, cpu=1, gpu=6)
    )
    assert ends(planned(snapshot)) == {"x": {"s": 1}}


@pytest.mark.parametrize("issue", ["volcano 4679", "volcano 4817"])
def test_a_full_cluster_does_not_hide_a_gang_that_may_claim(issue: str) -> None:
    own, other = quota("a", gpu=4), quota("b", gpu=4)
    full = runs(waits("r", "b", 8), other, *["n1"] * 8)
    snapshot = cluster(node("n1", gpu=8), own, other, *full, waits("x", "a", 4))
    assert ends(planned(snapshot)) == {"x": {"r": 8}}, issue


def test_kai_1750_a_queue_within_its_guarantee_does_not_hide_another_that_borrows() -> None:
    queues = quota("own", gpu=2), quota("protected", gpu=2), quota("batch")
    running = (
        *runs(waits("p", "protected", 2), queues[1], "n1", "n1"),
        *runs(waits("r", "batch", 2), queues[2], "n1", "n1"),
    )
    snapshot = cluster(node("n1", gpu=4), *queues, *running, waits("x", "own", 2))
    assert ends(planned(snapshot)) == {"x": {"r": 2}}


@pytest.mark.parametrize("issue", ["kueue 6489", "kueue 6143"])
def test_a_pod_that_never_ends_does_not_keep_a_queue_from_claiming(issue: str) -> None:
    """It should have gone long ago, so its room counts as taken, and another gang ends."""
    own, other = quota("a", gpu=4), quota("b")
    stuck, record = runs(waits("r", "b", 2), other, "n1", "n1")
    assert isinstance(stuck, GangBuilder)
    stays = stuck.each(terminating=True, gone_by=NOW - 3600.0)
    running = runs(waits("s", "b", 4), other, *["n1"] * 4)
    snapshot = cluster(node("n1", gpu=6), own, other, stays, record, *running, waits("x", "a", 4))
    assert ends(planned(snapshot)) == {"x": {"s": 4}}, issue


def test_kueue_14477_one_plan_has_the_claims_of_many_gangs_of_a_queue() -> None:
    own, other = quota("a", gpu=20), quota("b")
    running = [part for n in range(20) for part in runs(waits(f"r{n}", "b"), other, "n1")]
    some = [waits(f"x{n}", "a") for n in range(20)]
    made = planned(cluster(node("n1", gpu=20), own, other, *running, *some))
    assert len(made.claims) == 20
    assert len({victim for claim in ends(made).values() for victim in claim}) == 20


def test_kai_2115_who_must_stay_apart_from_a_pod_that_leaves_waits_until_it_is_gone() -> None:
    """Rules between pods count what is there; a gang under such a rule has nobody ended."""
    own, other = quota("a", gpu=4), quota("b")
    away = waits("x", "a").apart("hostname", peers(group="r"))
    room = node("n1", gpu=1).labelled(hostname="n1")
    running = runs(waits("r", "b"), other, "n1")
    assert planned(cluster(room, own, other, *running, away)).claims == ()
    assert {p.gang.name for p in planned(cluster(room, own, other, away)).placements} == {"x"}


@pytest.mark.parametrize("issue", ["kueue 9876", "kueue 8522"])
def test_a_gang_runs_for_as_long_as_its_queue_says(issue: str) -> None:
    own, other = quota("a", gpu=4), replace(quota("b"), min_run_seconds=600)
    running, held = runs(waits("r", "b", 4), other, *["n1"] * 4)
    assert isinstance(held, Reservation)
    assert held.record is not None
    young = replace(held, record=replace(held.record, started=NOW - 599.0))
    old = replace(held, record=replace(held.record, started=NOW - 600.0))
    parts: tuple[Part, ...] = node("n1", gpu=4), own, other, running, waits("x", "a", 4)
    assert planned(cluster(*parts, young)).claims == (), issue
    assert ends(planned(cluster(*parts, old))) == {"x": {"r": 4}}, issue
