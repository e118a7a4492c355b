"""Advice in words: every sentence says what is proved and what was only tried."""

from dataclasses import replace

import pytest

from tutti.model.decisions import Reason
from tutti.model.keys import GangKey, NodeName
from tutti.model.ports import HostPort
from tutti.whatif import sentences
from tutti.whatif.results import (
    Advice,
    Bottleneck,
    Certainty,
    Diagnosis,
    EndedGangs,
    MoreNodes,
    Obstacle,
    Placeable,
    ShortShape,
    SmallerNeed,
)
from tutti.whatif.sentences import WOULD, WOULD_NOT

from ...harness.builders import GPU, resources

PROVED, TRIED = Certainty.PROVED, Certainty.TRIED
N1 = NodeName("n1")
NOBODY = EndedGangs((), PROVED)
EIGHT_GPUS = Diagnosis(
    beside=Placeable(6, PROVED),
    alone=Placeable(6, PROVED),
    short=ShortShape(resources(pods=1, cpu=4, gpu=1), ("worker",), 8, 6),
    bottlenecks=(Bottleneck(Obstacle.RESOURCE, GPU, Placeable(8, PROVED)),),
    nodes=MoreNodes(1, N1, 2, PROVED),
    min_member=SmallerNeed(6, 1, PROVED),
    ended=EndedGangs((GangKey("ml", "x"),), PROVED),
    preferred=NOBODY,
    plans=4,
)


def keys(number: int) -> tuple[GangKey, ...]:
    return tuple(GangKey("ml", f"g{i}") for i in range(number))


def lines(said: Diagnosis | None = EIGHT_GPUS, alike: int = 0) -> list[str]:
    advice = Advice(
        GangKey("ml", "a"), 8, Reason.NOT_ENOUGH_ROOM, "short 2", said, alike=keys(alike)
    )
    return [line.strip() for line in sentences.of_advice(advice)]


def change(**changes: object) -> str:
    """The one line about a change, and whether it is said to help."""
    (field,) = changes
    nothing = {"nodes": MoreNodes(0, N1, 1, PROVED), "min_member": None, "ended": NOBODY}
    said = lines(replace(EIGHT_GPUS, **{**nothing, **changes}))  # type: ignore[arg-type]
    place = {
        "nodes": "node",
        "min_member": "minMember",
        "ended": "end of",
        "preferred": "giving up",
    }
    (line,) = (line for line in said if line.startswith("- ") and place[field] in line)
    would = said.index(WOULD) if WOULD in said else len(said)
    would_not = said.index(WOULD_NOT) if WOULD_NOT in said else len(said)
    helps = would < said.index(line) < would_not
    return f"{'+' if helps else '-'} {line.removeprefix('- ')}"


def test_the_whole_of_it() -> None:
    assert lines() == [
        "ml/a waits: NotEnoughRoom",
        "short 2",
        "room now for 6 of the 8 members needed (proved)",
        "role worker: 8 members must start with 1 nvidia.com/gpu, 4 cpu, and 6 of them have room",
        "short of nvidia.com/gpu: with plenty of it, room for 8",
        "each of these would start it:",
        "- 1 more node like n1 (proved: it does not start without)",
        "- minMember 6 (proved: with 7 it does not start)",
        "- the end of ml/x (proved: fewer are not enough)",
    ]


def test_a_host_port_that_is_short_is_said_as_people_write_it() -> None:
    scarce = (Bottleneck(Obstacle.RESOURCE, HostPort(80).resource, Placeable(8, PROVED)),)
    said = lines(replace(EIGHT_GPUS, bottlenecks=scarce))
    assert "short of host port 80/TCP: with plenty of it, room for 8" in said


def test_a_gang_that_waits_for_members_is_told_no_more_than_its_sentence() -> None:
    assert lines(None) == ["ml/a waits: NotEnoughRoom", "short 2"]


def test_where_nothing_would_start_it_only_that_is_said() -> None:
    hopeless = replace(EIGHT_GPUS, nodes=MoreNodes(0, N1, 1, PROVED), min_member=None, ended=NOBODY)
    assert lines(hopeless)[-3:] == [
        "these would not:",
        "- more nodes of the 1 kind present (proved)",
        "- the end of any gangs that Tutti has bound (proved)",
    ]
    assert WOULD not in lines(hopeless)


def test_gangs_that_wait_for_the_same_are_named() -> None:
    assert lines(None, 1)[-1] == "ml/g0 waits for the same"
    assert lines(None, 2)[-1] == "ml/g0 and ml/g1 wait for the same"
    assert lines(None, 10)[-1].endswith("ml/g6, ml/g7 and 2 more wait for the same")


def test_room_that_others_want_is_told_apart() -> None:
    said = replace(EIGHT_GPUS, beside=Placeable(1, TRIED), short=None, bottlenecks=())
    assert lines(said)[2:5] == [
        "room now for 1 of the 8 members needed (as far as tried)",
        "without the other waiting gangs, room for 6 of the 8 members needed (proved)",
        "no single resource is the only obstacle",
    ]


@pytest.mark.parametrize(
    ("room", "end"), [(0, "none of them have room"), (1, "1 of them has room")]
)
def test_the_room_of_the_short_shape_agrees_with_its_number(room: int, end: str) -> None:
    short = ShortShape(resources(pods=1, cpu=1), (), 2, room)
    assert (
        lines(replace(EIGHT_GPUS, short=short))[3] == f"2 members must start with 1 cpu, and {end}"
    )


def test_rules_are_named_as_a_bottleneck() -> None:
    rules = Bottleneck(Obstacle.RULES, "cordoned", Placeable(7, TRIED))
    said = lines(replace(EIGHT_GPUS, bottlenecks=(rules,)))
    assert (
        said[4] == "short of node rules (cordoned): with plenty of it, room for 7, as far as tried"
    )


@pytest.mark.parametrize(
    ("nodes", "sentence"),
    [
        (MoreNodes(3, N1, 2, PROVED), "+ 3 more nodes like n1 (proved: with 2 it does not start)"),
        (
            MoreNodes(3, N1, 2, TRIED),
            "+ 3 more nodes like n1 (not proved: fewer may be enough)",
        ),
        (
            MoreNodes(1, N1, 2, TRIED, cut=True),
            "+ 1 more node like n1 (not proved: fewer may be enough; the search ended early)",
        ),
        (MoreNodes(0, N1, 1, PROVED), "- more nodes of the 1 kind present (proved)"),
        (
            MoreNodes(0, N1, 2, PROVED),
            "- more nodes of any one of the 2 kinds present (proved)",
        ),
        (
            MoreNodes(0, N1, 1, TRIED, cut=True),
            "- more nodes of the 1 kind present (as far as tried; the search ended early)",
        ),
    ],
)
def test_more_nodes(nodes: MoreNodes, sentence: str) -> None:
    assert change(nodes=nodes) == sentence


@pytest.mark.parametrize(
    ("need", "sentence"),
    [
        (SmallerNeed(6, 1, TRIED), "+ minMember 6 (not proved: a larger one may be enough)"),
        (SmallerNeed(0, 2, PROVED), "- a smaller minMember, down to 2 (proved)"),
        (SmallerNeed(0, 2, TRIED), "- a smaller minMember, down to 2 (as far as tried)"),
        (
            SmallerNeed(0, 2, TRIED, cut=True),
            "- a smaller minMember, down to 2 (as far as tried; the search ended early)",
        ),
    ],
)
def test_a_smaller_need(need: SmallerNeed, sentence: str) -> None:
    assert change(min_member=need) == sentence


def test_where_the_need_cannot_be_smaller_nothing_is_said_of_it() -> None:
    assert not any("minMember" in line for line in lines(replace(EIGHT_GPUS, min_member=None)))


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (NOBODY, "- the end of any gangs that Tutti has bound (proved)"),
        (EndedGangs((), TRIED), "- the end of a few gangs that Tutti has bound (as far as tried)"),
        (
            EndedGangs((), TRIED, cut=True),
            (
                "- the end of a few gangs that Tutti has bound "
                "(as far as tried; the search ended early)"
            ),
        ),
        (
            EndedGangs(keys(3), TRIED),
            "+ the end of ml/g0, ml/g1 and ml/g2 (not proved: fewer may be enough)",
        ),
        (
            EndedGangs(keys(1), PROVED, domain="b1/r17 of rack"),
            "+ the end of ml/g0: it then starts in b1/r17 of rack (proved: fewer are not enough)",
        ),
    ],
)
def test_gangs_that_would_have_to_end(ended: EndedGangs, sentence: str) -> None:
    assert change(ended=ended) == sentence


def test_gangs_that_the_plan_prefers() -> None:
    one, more = EndedGangs(keys(1), PROVED), EndedGangs(keys(2), TRIED)
    assert change(preferred=one) == (
        "+ ml/g0 giving up the room that the plan gives it (proved: fewer are not enough)"
    )
    assert change(preferred=more) == (
        "+ ml/g0 and ml/g1 giving up the room that the plan gives them "
        "(not proved: fewer may be enough)"
    )
