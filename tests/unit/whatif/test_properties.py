"""What is advised works, and what is proved not to work does not, in every Snapshot."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tutti.gang import demand
from tutti.model.cluster import Gang, Node, Snapshot
from tutti.model.decisions import Plan
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.resources import NOTHING, Resources
from tutti.strategies import STRATEGIES
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.whatif import Advice, Planner, advise, advise_all, sentences
from tutti.whatif.baseline import wants
from tutti.whatif.results import Certainty, Diagnosis

from ...harness import generators

# The exact strategy starts an engine's process per plan, and one advice may take dozens.
EFFORTS = [pytest.param("bestfit", 80, id="bestfit"), pytest.param("ilp", 40, id="ilp")]
QUIETLY = (HealthCheck.too_slow, HealthCheck.filter_too_much)
PROVED = Certainty.PROVED


def each_advice(name: str, examples: int, holds) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Try a property on the advice for every gang that waits for room in so many Snapshots."""
    planner = Planner(STRATEGIES[name](), BestFit(), Budget())

    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIETLY, database=None)
    @given(generators.snapshots())
    def tried(snapshot: Snapshot) -> None:
        plan = planner.plan(snapshot)
        for rejection in plan.rejections:
            found = advise(snapshot, plan, rejection.gang, planner)
            assert found is not None
            if found.diagnosis is not None:
                holds(snapshot, planner, found, found.diagnosis)

    tried()


def starts(snapshot: Snapshot, planner: Planner, key: GangKey, members: int) -> bool:
    """Whether the plan places so many members of the gang."""
    return placed(planner.plan(snapshot), key) >= members


def placed(plan: Plan, key: GangKey) -> int:
    return sum(len(p.assignments) for p in plan.placements if p.gang == key)


def goal(snapshot: Snapshot, advice: Advice) -> int:
    """What a gang that has started asks for; one that has not starts whole or not at all."""
    gang = next(gang for gang in snapshot.gangs if gang.key == advice.gang)
    return advice.needed if demand.count_members(gang).is_committed else 1


def with_nodes(snapshot: Snapshot, like: NodeName, number: int) -> Snapshot:
    """The same cluster with so many uncordoned, ready, empty nodes like one that exists."""
    old = next(node for node in snapshot.nodes if node.name == like)
    new = tuple(_fresh(old, f"{like}-new-{i}") for i in range(1, number + 1))
    return replace(snapshot, nodes=(*snapshot.nodes, *new))


def _fresh(old: Node, name: str) -> Node:
    return replace(old, name=NodeName(name), unschedulable=False, ready=True, used=NOTHING)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_the_nodes_advised_start_the_gang_and_proved_one_fewer_does_not(
    name: str, examples: int
) -> None:
    def holds(snapshot: Snapshot, planner: Planner, advice: Advice, diagnosis: Diagnosis) -> None:
        if diagnosis.nodes.count:
            like, n, least = diagnosis.nodes.like, diagnosis.nodes.count, goal(snapshot, advice)
            assert starts(with_nodes(snapshot, like, n), planner, advice.gang, least)
            if diagnosis.nodes.certainty is PROVED:
                fewer = with_nodes(snapshot, like, n - 1)
                assert not starts(fewer, planner, advice.gang, least)
        elif diagnosis.nodes.certainty is PROVED:
            for node in snapshot.nodes:
                more = with_nodes(snapshot, node.name, advice.needed + 2)
                assert not starts(more, planner, advice.gang, goal(snapshot, advice))

    each_advice(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_the_min_member_advised_starts_the_gang_and_proved_one_more_does_not(
    name: str, examples: int
) -> None:
    def holds(snapshot: Snapshot, planner: Planner, found: Advice, said: Diagnosis) -> None:
        if (advised := said.min_member) is None:
            return

        def starts_with(least: int) -> bool:
            changed = (
                replace(gang, min_member=least) if gang.key == found.gang else gang
                for gang in snapshot.gangs
            )
            return starts(replace(snapshot, gangs=tuple(changed)), planner, found.gang, 1)

        if advised.min_member:
            assert advised.floor <= advised.min_member < found.needed
            assert starts_with(advised.min_member)
            if advised.certainty is PROVED:
                assert not starts_with(advised.min_member + 1)
        elif advised.certainty is PROVED:
            assert not starts_with(advised.floor)

    each_advice(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_the_end_of_the_gangs_named_starts_the_gang_and_proved_no_single_one_does(
    name: str, examples: int
) -> None:
    def holds(snapshot: Snapshot, planner: Planner, advice: Advice, diagnosis: Diagnosis) -> None:
        least = goal(snapshot, advice)
        others = [gang.key for gang in snapshot.gangs if gang.key != advice.gang]
        if diagnosis.ended.gangs:
            ended = without(snapshot, set(diagnosis.ended.gangs))
            assert starts(ended, planner, advice.gang, least)
        if diagnosis.ended.certainty is PROVED and len(diagnosis.ended.gangs) != 1:
            reserved = {reservation.gang for reservation in snapshot.reservations}
            for key in (key for key in others if is_bound(snapshot, key) and key not in reserved):
                assert not starts(without(snapshot, {key}), planner, advice.gang, least)

    each_advice(name, examples, holds)


def is_bound(snapshot: Snapshot, key: GangKey) -> bool:
    gang = next(gang for gang in snapshot.gangs if gang.key == key)
    return any(member.node is not None and not member.is_over for member in gang.members)


def without(snapshot: Snapshot, keys: set[GangKey]) -> Snapshot:
    """The same cluster once these gangs have ended."""
    freed: dict[NodeName, Resources] = {}
    for gang in snapshot.gangs:
        for member in gang.members if gang.key in keys else ():
            if member.node is not None and not member.is_over:
                had = freed.get(member.node, NOTHING)
                freed[member.node] = had + member.shape.requests
    return replace(
        snapshot,
        nodes=tuple(replace(n, used=n.used - freed.get(n.name, NOTHING)) for n in snapshot.nodes),
        gangs=tuple(gang for gang in snapshot.gangs if gang.key not in keys),
    )


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_without_the_preferred_gangs_the_gang_starts(name: str, examples: int) -> None:
    def holds(snapshot: Snapshot, planner: Planner, advice: Advice, diagnosis: Diagnosis) -> None:
        names = set(diagnosis.preferred.gangs)
        plan = planner.plan(snapshot)
        assert names <= {placement.gang for placement in plan.placements}
        gangs = tuple(
            replace(gang, members=tuple(m for m in gang.members if not m.is_waiting))
            if gang.key in names
            else gang
            for gang in snapshot.gangs
        )
        if names:
            least = goal(snapshot, advice)
            assert starts(replace(snapshot, gangs=gangs), planner, advice.gang, least)

    each_advice(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_what_fits_now_is_less_than_needed_and_no_more_than_fits_alone(
    name: str, examples: int
) -> None:
    def holds(snapshot: Snapshot, planner: Planner, advice: Advice, diagnosis: Diagnosis) -> None:
        assert 0 <= diagnosis.beside.members <= advice.needed
        if diagnosis.alone.certainty is PROVED:
            assert diagnosis.beside.members <= diagnosis.alone.members
        if planner.plan(snapshot).proved and diagnosis.beside.certainty is PROVED:
            assert diagnosis.beside.members < advice.needed
        for bottleneck in diagnosis.bottlenecks:
            assert bottleneck.admits.members > diagnosis.beside.members

    each_advice(name, examples, holds)


@pytest.mark.parametrize(("name", "examples"), EFFORTS)
def test_so_many_members_alone_fit_as_a_gang_needing_fewer_could_start_with(
    name: str, examples: int
) -> None:
    def holds(snapshot: Snapshot, planner: Planner, advice: Advice, diagnosis: Diagnosis) -> None:
        gang = next(gang for gang in snapshot.gangs if gang.key == advice.gang)
        held = {entry.uid for reservation in snapshot.reservations for entry in reservation.entries}
        others = tuple(one if one is gang else quiet(one, held) for one in snapshot.gangs)
        alone = replace(snapshot, gangs=others)
        for least in range(1, advice.needed + 1):
            asked = replace(gang, min_member=least, roles=())
            smaller = replace(
                alone, gangs=tuple(asked if g.key == gang.key else g for g in alone.gangs)
            )
            fits = starts(smaller, planner, gang.key, 1)
            is_started = demand.count_members(gang).is_committed
            if fits and not gang.roles and not is_started and diagnosis.alone.certainty is PROVED:
                assert least <= diagnosis.alone.members
            if least <= diagnosis.alone.members and not is_started and planner.plan(smaller).proved:
                assert fits

    each_advice(name, examples, holds)


def quiet(gang: Gang, held: set[Uid]) -> Gang:
    """The gang with what is bound or promised to it, and no other member."""
    kept = tuple(m for m in gang.members if not m.is_waiting or m.uid in held)
    return replace(gang, members=kept)


def test_advice_is_the_same_whatever_the_order_of_the_input() -> None:
    planner = Planner(BestFit(), BestFit(), Budget())

    @settings(max_examples=40, deadline=None, suppress_health_check=QUIETLY, database=None)
    @given(generators.snapshots(), st.data())
    def tried(snapshot: Snapshot, chance: st.DataObject) -> None:
        other = chance.draw(generators.shuffled(snapshot))
        assert advise_all(snapshot, planner.plan(snapshot), planner) == advise_all(
            other, planner.plan(other), planner
        )

    tried()


def test_every_waiting_gang_is_in_one_advice_and_each_has_words() -> None:
    planner = Planner(BestFit(), BestFit(), Budget())

    @settings(max_examples=60, deadline=None, suppress_health_check=QUIETLY, database=None)
    @given(generators.snapshots())
    def tried(snapshot: Snapshot) -> None:
        plan = planner.plan(snapshot)
        advices = advise_all(snapshot, plan, planner)
        named = [key for advice in advices for key in (advice.gang, *advice.alike)]
        assert sorted(named) == sorted(rejection.gang for rejection in plan.rejections)
        asking = wants(snapshot, named)
        for advice in advices:
            assert (advice.diagnosis is not None) == (advice.gang in asking)
            lines = sentences.of_advice(advice)
            assert lines[0] == f"{advice.gang} waits: {advice.reason}"
            assert len(lines) > 2 or advice.diagnosis is None

    tried()
