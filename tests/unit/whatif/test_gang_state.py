"""What has become of a gang, as data and in a sentence."""

from dataclasses import replace

import pytest

from tutti.cli import explain
from tutti.model.cluster import Phase
from tutti.model.keys import GangKey
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget
from tutti.whatif import sentences
from tutti.whatif.gang_state import GangOutcome, GangStanding, standing

from ...harness.builders import (
    NAMESPACE,
    GangBuilder,
    Part,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
    topology,
)

NODES = [node("n1", cpu=4), node("n2", cpu=4)]
PAIR = gang("a").of(2, cpu=1)


def found(*parts: Part, name: str = "a") -> GangStanding | None:
    snapshot = snapshot_of(*NODES, *parts)
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    keys = [gang.key for gang in snapshot.gangs if gang.key.name == name]
    return standing(snapshot, made, keys[0] if keys else GangKey(NAMESPACE, name))


def said(*parts: Part) -> tuple[GangOutcome, str]:
    answer = found(*parts)
    assert answer is not None
    return answer.state, sentences.of_standing(answer)


def test_a_gang_in_more_domains_than_it_prefers_says_so() -> None:
    racks = [node(f"r{i}", cpu=2).labelled(rack=f"r{i}") for i in range(2)]
    wide = gang("a").of(3, cpu=1).preferring("rack")
    snapshot = snapshot_of(*racks, topology("rack"), wide)
    made = plan(snapshot, BestFit(), BestFit(), Budget())
    answer = standing(snapshot, made, wide.key)
    assert answer is not None
    assert answer.preference == "in 2 domains of rack; 1 was preferred"
    assert sentences.of_standing(answer).endswith(
        " on r1; 2 in r0 and 1 in r1 of rack; in 2 domains of rack; 1 was preferred"
    )
    (told,) = explain.data([explain.Explained(answer, None)])["gangs"]
    assert told["standing"]["preference"] == "in 2 domains of rack; 1 was preferred"
    own = [{"values": ["r0"], "members": 2}, {"values": ["r1"], "members": 1}]
    assert told["standing"]["domains"] == [{"level": "rack", "roles": [], "domains": own}]
    plain = explain.Explained(replace(answer, preference="", domains=()), None)
    assert not {"preference", "domains"} & set(explain.data([plain])["gangs"][0]["standing"])


def test_a_gang_that_does_not_exist_has_no_standing() -> None:
    assert found(PAIR, name="b") is None


@pytest.mark.parametrize(
    ("made", "state", "sentence"),
    [
        (gang("a").of(2, cpu=9), GangOutcome.WAITS, "ml/a waits"),
        (PAIR, GangOutcome.STARTS, "ml/a starts in the next cycle: 2 on n1"),
        (
            PAIR.bound_on("n1", "n2"),
            GangOutcome.BOUND,
            "ml/a is bound, 2 of 2 members: 1 on n1, 1 on n2; healthy",
        ),
        (
            gang("a").of(3, cpu=1).bound_on("n1", "n1").last(1, gates=("hold",)),
            GangOutcome.PARTIAL,
            (
                "ml/a has started and lost members, 2 of 3 members bound: 2 on n1; "
                "MemberLost: 2 of 3 members are bound, 1 missing"
            ),
        ),
        (
            PAIR.bound_on("n1", "gone"),
            GangOutcome.BOUND,
            (
                "ml/a is bound, 2 of 2 members: 1 on gone, 1 on n1; "
                "NodeLost: 1 of 2 members are bound, 1 missing: a-1 on node gone, which is gone"
            ),
        ),
        (PAIR.each(phase=Phase.SUCCEEDED), GangOutcome.FINISHED, "ml/a has finished"),
        (
            gang("a").needing(2).but(finished=("", "")).of(1, cpu=1).bound_on("n2"),
            GangOutcome.BOUND,
            "ml/a is bound, 3 of 2 members: 1 on n2; healthy",
        ),
        (
            single("a", cpu=1).bound_on("n1"),
            GangOutcome.BOUND,
            "ml/a is bound, 1 of 1 member: 1 on n1; healthy",
        ),
    ],
)
def test_a_gang_stands_somewhere(made: GangBuilder, state: GangOutcome, sentence: str) -> None:
    assert said(made) == (state, sentence)


def test_a_reserved_gang_is_where_its_reservation_says() -> None:
    half = PAIR.bound_on("n1")
    held = reservation(half, ("a-0", "n1"), ("a-1", "n2"))
    assert said(half, held) == (
        GangOutcome.RESERVED,
        "ml/a is reserved and being bound, 1 of 2 members so far: 1 on n1, 1 on n2",
    )


def test_a_long_list_of_nodes_is_cut() -> None:
    names = [f"m{i:02}" for i in range(10)]
    made = gang("a").of(11, cpu=1).bound_on(*names, names[-1])
    _, sentence = said(*(node(name, cpu=4) for name in names), made)
    assert sentence.endswith("1 on m07, 3 on 2 more nodes; healthy")
