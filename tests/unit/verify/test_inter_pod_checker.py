"""Who leaves is taken off all counts, whatever was asked before.

Apart from the other tests of ``beside``, which run once for every check that it makes.
"""

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from tutti.model.inter_pod import InterPodRules
from tutti.model.keys import NodeName
from tutti.verify.inter_pod import InterPodChecker

from ...harness.builders import gang, node, snapshot_of
from ..planning.neighbours import (
    HOST,
    ZONE,
    apart,
    asking,
    beside,
    even,
    near,
    peers,
    resident,
    zones,
)

A, B = peers(app="a"), peers(app="b")
NODES = (*zones(), node("bare", cpu=8))
RULES = (
    apart(A),
    apart(B, on=ZONE),
    near(A),
    near(A, B, on=(ZONE, HOST)),
    even(A),
    even(B, max_skew=2, min_domains=3),
    InterPodRules(),
)
WHERE = [*(node.made.name for node in NODES), NodeName("nowhere")]


@given(
    members=st.lists(
        st.tuples(st.sampled_from(RULES), st.sampled_from("abc"), st.sampled_from(WHERE)),
        min_size=1,
        max_size=6,
    ),
    there=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(WHERE)), max_size=3),
    leaving=st.sets(st.integers(0, 5)),
    asked_before=st.booleans(),
)
@example(
    members=[(near(A), "a", NodeName("z0-0")), (InterPodRules(), "a", NodeName("bare"))],
    there=[],
    leaving={1},
    asked_before=True,
)
@example(
    members=[(even(A), "a", NodeName("z0-0")), (InterPodRules(), "a", NodeName("z1-0"))],
    there=[("a", NodeName("z2-0"))],
    leaving={1},
    asked_before=True,
)
def test_once_somebody_left_the_others_are_judged_as_if_it_had_never_come(
    members: Sequence[tuple[InterPodRules, str, NodeName]],
    there: Sequence[tuple[str, NodeName]],
    leaving: set[int],
    *,
    asked_before: bool,
) -> None:
    gangs = [
        asking(gang(f"g{i}").of(1, cpu=1), rules, app=app)
        for i, (rules, app, _) in enumerate(members)
    ]
    snapshot = beside(
        snapshot_of(*NODES, *gangs),
        *(resident(f"r{i}", node, app=app) for i, (app, node) in enumerate(there)),
    )
    seats = [(made.members[0], node) for made, (*_, node) in zip(gangs, members, strict=True)]
    bystanders = InterPodChecker(snapshot, seats)
    if asked_before:
        assert [list(bystanders.faults(*seat)) for seat in seats]
    left = [seat for i, seat in enumerate(seats) if i in leaving]
    stayed = [seat for i, seat in enumerate(seats) if i not in leaving]
    for seat in left:
        bystanders.remove(*seat)
    fresh = InterPodChecker(snapshot, stayed)
    for seat in stayed:
        assert list(bystanders.faults(*seat)) == list(fresh.faults(*seat))
