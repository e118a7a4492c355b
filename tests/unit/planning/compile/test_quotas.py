"""Limits of queues as caps: what counts, in which unit, and what a plan has started under them."""

from dataclasses import replace

import numpy as np
import pytest

from tutti.gang import demand
from tutti.gang.demand import PlacementRequest
from tutti.model.resources import Resources
from tutti.planning.compile import grids, problems
from tutti.planning.compile.grids import Grid
from tutti.planning.compile.quotas import NO_QUOTAS, Quotas, Started
from tutti.queues.limits import QueueLimit

from ....harness.builders import GangBuilder, gang, node, resources, shape, snapshot_of

GPU = "nvidia.com/gpu"
A = gang("a").of(3, gpu=2)
B = gang("b").of(1, gpu=1).of(1, gpu=4).needing(1)
C = gang("c").of(2, cpu=1)


def limit(resource: str, most: int, *gangs: GangBuilder, in_use: int = 0) -> QueueLimit:
    keys = frozenset(builder.key for builder in gangs)
    return QueueLimit("vision", resource, most, in_use, keys)


def compiled(*gangs: GangBuilder) -> tuple[Grid, list[PlacementRequest]]:
    snapshot = snapshot_of(node("n1", cpu=100, gpu=100, memory=2**40), *gangs)
    shapes = [member.shape for builder in snapshot.gangs for member in builder.members]
    requests = [demand.start_request(demand.count_members(builder)) for builder in snapshot.gangs]
    return grids.grid(snapshot, shapes), [request for request in requests if request is not None]


def rooms(quotas: Quotas, *gangs: GangBuilder) -> list[tuple[set[int], int]]:
    caps = [row.cap for row in quotas.caps(*compiled(*gangs))]
    return [({*cap.demands}, cap.room) for cap in caps]


def test_a_limit_is_a_cap_over_the_requests_of_its_gangs() -> None:
    quotas = Quotas.of([limit(GPU, 9, A, B, in_use=1), limit("pods", 3, A, C)])
    assert rooms(quotas, A, B, C) == [({0, 1}, 8), ({0, 2}, 3)]
    base, requests = compiled(A, B, C)
    gpus, pods = (row.cap for row in quotas.caps(base, requests))
    assert gpus.amount.tolist() == [2, 1, 4, 0]
    assert pods.amount.tolist() == [1, 1, 1, 1]


def test_a_limit_that_nothing_could_exceed_is_no_cap() -> None:
    """It would keep equal gangs apart for nothing. Of gang b one member is needed."""
    assert rooms(Quotas.of([limit(GPU, 10, A, B)]), A, B) == []
    assert rooms(Quotas.of([limit(GPU, 9, A, B)]), A, B) == [({0, 1}, 9)]
    assert rooms(Quotas.of([limit(GPU, 0, C)]), A, C) == []
    assert rooms(NO_QUOTAS, A, B) == []


def test_a_limit_below_what_is_in_use_leaves_nothing() -> None:
    assert rooms(Quotas.of([limit(GPU, 2, A, in_use=5)]), A) == [({0}, 0)]


def test_what_is_started_counts_at_every_limit_above_the_gang() -> None:
    quotas = Quotas.of([limit(GPU, 9, A, B), limit("pods", 9, A), limit(GPU, 9, B)])
    member = A.made.members[0]
    after = quotas.with_started([Started(A.key, member.shape, 2), Started(C.key, member.shape, 2)])
    assert [one.in_use for one in after.limits] == [4, 2, 0]
    assert [one.in_use for one in after.without_use().limits] == [0, 0, 0]
    assert NO_QUOTAS.with_started([Started(A.key, member.shape, 2)]) is NO_QUOTAS


@pytest.mark.parametrize(
    ("memory", "excess", "is_exceeded"),
    [(2**60, 0, False), (2**60, 1, True), (2**55 + 1, 1, True), (2**55 + 1, 0, True)],
)
def test_amounts_that_could_overflow_are_rounded_up(
    memory: int, excess: int, *, is_exceeded: bool
) -> None:
    """Nothing starts that a limit does not leave; a limit that it just meets may stop it."""
    asks = replace(shape(), requests=Resources.of({"memory": memory}))
    large = gang("d").of(3).each(shape=asks)
    quotas = Quotas.of([limit("memory", 3 * memory - excess, large)])
    base, requests = compiled(large, C)
    caps = [row.cap for row in quotas.caps(base, requests)]
    assert [cap.amount.dtype for cap in caps] == [np.dtype(np.int64)] * is_exceeded
    assert all(3 * int(cap.amount.max()) > cap.room for cap in caps)
    (request,) = (one for one in requests if one.gang.key == large.key)
    exceeded = problems.exceeded(base, request, quotas)
    assert [found.wanted >= 3 * memory for found in exceeded] == [True] * is_exceeded


def test_a_request_exceeds_a_limit_if_its_cheapest_members_do() -> None:
    base, requests = compiled(B)
    assert not problems.exceeded(base, requests[0], Quotas.of([limit(GPU, 1, B)]))
    (found,) = problems.exceeded(base, requests[0], Quotas.of([limit(GPU, 0, B)]))
    assert (found.limit.limit, found.wanted) == (0, 1)
    mixed = gang("m").of(1, gpu=1).of(1, gpu=4)
    base, requests = compiled(mixed)
    (found,) = problems.exceeded(base, requests[0], Quotas.of([limit(GPU, 4, mixed)]))
    assert found.wanted == 5
    assert not problems.exceeded(base, requests[0], NO_QUOTAS)


def repairing(*gangs: GangBuilder) -> list[PlacementRequest]:
    return [
        PlacementRequest(gang.made, 1, (member,), is_repair=True)
        for gang in gangs
        for member in gang.made.members
    ]


def test_repairs_within_the_credit_of_their_gang_are_in_no_row() -> None:
    quotas = Quotas.of([limit(GPU, 9, A, in_use=9)], {A.key: resources(gpu=6)})
    base, _ = compiled(A)
    assert [*quotas.caps(base, repairing(A))] == []
    started = Started(A.key, A.made.members[0].shape, 2, is_repair=True)
    quotas = quotas.with_started([started])
    assert (quotas.limits[0].in_use, quotas.credit_of) == (9, {A.key: resources(gpu=2)})
    (row,) = quotas.caps(base, repairing(A))
    assert ({*row.cap.demands}, row.cap.room) == ({0, 1, 2}, 2)
    quotas = quotas.with_started([started])
    assert (quotas.limits[0].in_use, quotas.credit_of) == (11, {A.key: resources()})


def test_no_row_gives_a_gang_the_credit_of_another() -> None:
    credit_of = {A.key: resources(gpu=2), B.key: resources(gpu=4)}
    quotas = Quotas.of([limit(GPU, 9, A, B, in_use=8)], credit_of)
    base, requests = compiled(A, B)
    rows = [*quotas.caps(base, [*repairing(A, B), requests[0]])]
    found = [({*row.cap.demands}, row.cap.room) for row in rows]
    everyone = {0, 1, 2, 3, 4, 5}
    assert found == [({5}, 1), (everyone, 3), (everyone, 5)]


def test_members_that_are_no_repair_use_no_credit() -> None:
    quotas = Quotas.of([limit(GPU, 9, A, in_use=9)], {A.key: resources(gpu=6)})
    base, requests = compiled(A)
    assert [row.cap.room for row in quotas.caps(base, requests)] == [0]
    after = quotas.with_started([Started(A.key, A.made.members[0].shape, 1)])
    assert (after.limits[0].in_use, after.credit_of) == (11, quotas.credit_of)
