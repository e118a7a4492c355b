"""Exchanges single members with waiting ones, as long as the value grows.

This is local search for gangs with one member, for nodes that can be filled in too many ways for a
program. Node by node, up to two members leave and up to two come in; the exchange that gains most
comes first. The result is an answer and never a proof; the bound says how good it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..capacity import CapUsage
from ..problem import Demand, DemandLevel, Problem, Share, Shares
from ..shape_demand import Array, Flags
from ..work import Work

MOST_WAITING = 96  # gangs that are tried on a node: the highest value per price
MOST_LEAVING = 16  # for exchanges of two: the members of a node with the least value
MOST_LEFT = 2**62  # room of a cap; more counts as this much
TINY = 1e-9  # added to prices to avoid division by zero


class _Swap(NamedTuple):
    """The gangs that leave a node, the gangs that come, and the gain in value."""

    gone: tuple[int, ...]
    come: tuple[int, ...]
    gain: int


class Exchange:
    """The single members of one level, placed and waiting; lower levels are left out."""

    def __init__(
        self,
        problem: Problem,
        candidates: Sequence[int],
        level: DemandLevel,
        best: Shares,
        prices: Mapping[int, float],
    ) -> None:
        """Start from an answer; ``prices`` has the price of a member of each shape."""
        demands = problem.demands
        self._problem = problem
        self._shares = [own if demands[i].level >= level else () for i, own in enumerate(best)]
        self._indices = [i for i in candidates if _is_single(demands[i], level)]
        own = [demands[i] for i in self._indices]
        self._shape = np.array([demand.parts[0].shape for demand in own], dtype=np.int64)
        self._value = np.array([demand.value for demand in own], dtype=np.int64)
        self._cap_left, uses = _cap_columns(problem, self._indices, self._shares)
        self._asks = np.hstack([problem.requests[self._shape], uses])
        price = np.array([prices.get(int(shape), 0.0) for shape in self._shape])
        self._by_ratio = np.argsort(-self._value / (price + TINY), kind="stable")
        own_shares = [self._shares[i] for i in self._indices]
        self._node = np.array(
            [shares[0].node if shares else -1 for shares in own_shares], dtype=np.int64
        )
        self._left = problem.free.copy()
        for demand, shares in zip(demands, self._shares, strict=True):
            for share in shares:
                ask = problem.requests[demand.parts[share.part].shape]
                self._left[share.node] -= share.count * ask

    @property
    def is_choice(self) -> bool:
        """Whether a gang waits that could be exchanged."""
        return bool((self._node < 0).any())

    def run(self, enough: int, work: Work) -> None:
        """Exchange until ``enough`` is gained, no exchange gains, or the work is used up."""
        before = enough + 1
        while before > enough > 0 and not work.is_over:
            before = enough
            for node in range(len(self._left)):
                enough -= self._gained(node, enough, work)

    def shares(self) -> Shares:
        """The current shares of this level and the levels above."""
        for i, node in zip(self._indices, self._node.tolist(), strict=True):
            self._shares[i] = (Share(0, node, 1),) if node >= 0 else ()
        return tuple(self._shares)

    def _gained(self, node: int, enough: int, work: Work) -> int:
        """Exchange on one node until ``enough`` is gained or no exchange gains; return the gain."""
        gained = 0
        while gained < enough and not work.is_over and (swap := self._best_swap(node, work)):
            self._move(swap.gone, -1)
            self._move(swap.come, node)
            gained += swap.gain
        return gained

    def _best_swap(self, node: int, work: Work) -> _Swap | None:
        """The exchange on this node that gains most; None if none gains anything."""
        own = np.flatnonzero(self._node == node)
        own = own[np.argsort(self._value[own], kind="stable")]
        room = np.concatenate([self._left[node], self._cap_left])
        waiting = self._waiting(node, room + self._asks[own].sum(axis=0))
        work.spend(self._asks.size)
        if not len(waiting):
            return None
        come = _Coming(waiting, self._value, self._asks)
        best: _Swap | None = None
        for gone in _leaving(own.tolist()):
            loss = int(self._value[list(gone)].sum())
            least = loss + (best.gain if best else 0)
            into = come.most_valuable(room + self._asks[list(gone)].sum(axis=0), least, work)
            if into:
                gain = int(self._value[list(into)].sum()) - loss
                best = _Swap(gone, into, gain)
        return best

    def _waiting(self, node: int, most: Array) -> Array:
        """The best waiting gangs that could go to the node if all others left it."""
        waiting = self._by_ratio[self._node[self._by_ratio] < 0]
        waiting = waiting[self._problem.allowed[self._shape[waiting], node]]
        fitting: Array = waiting[_holds(most, self._asks[waiting].T)]
        return fitting[:MOST_WAITING]

    def _move(self, singles: Sequence[int], node: int) -> None:
        """Take these gangs off their nodes if ``node`` is negative, else put them on the node."""
        resources = self._left.shape[1]
        for at in singles:
            sign, where = (1, self._node[at]) if node < 0 else (-1, node)
            self._left[where] += sign * self._asks[at, :resources]
            self._cap_left += sign * self._asks[at, resources:]
            self._node[at] = node


class _Coming:
    """All sets of one or two waiting gangs, the most valuable first."""

    def __init__(self, waiting: Array, value: Array, asks: Array) -> None:
        first, second = (waiting[positions] for positions in np.triu_indices(len(waiting), 1))
        values = np.concatenate([value[waiting], value[first] + value[second]])
        order = np.argsort(-values, kind="stable")
        self._values = values[order]
        sums = np.concatenate([asks[waiting], asks[first] + asks[second]])[order]
        self._sums = np.ascontiguousarray(sums.T)
        self._first = np.concatenate([waiting, first])[order]
        self._second = np.concatenate([np.full(len(waiting), -1), second])[order]

    def most_valuable(self, room: Array, least: int, work: Work) -> tuple[int, ...]:
        """The most valuable set that fits and is worth more than ``least``; else empty."""
        end = int(np.searchsorted(-self._values, -least, side="left"))
        work.spend(end * len(room))
        fits = _holds(room, self._sums[:, :end])
        at = int(fits.argmax()) if fits.any() else -1
        chosen = (int(self._first[at]), int(self._second[at])) if at >= 0 else ()
        return tuple(index for index in chosen if index >= 0)


def _cap_columns(
    problem: Problem, singles: Sequence[int], shares: Sequence[Sequence[Share]]
) -> tuple[Array, Array]:
    """The room below caps beside these shares, and [single, cap] what single members use of it.

    In an exchange, a cap is one more resource, which all nodes share. Caps that waiting gangs
    cannot exceed are left out.
    """
    usage = CapUsage(problem)
    for index, own in enumerate(shares):
        usage.take_shares(index, own)
    room: list[int] = []
    columns: list[Array] = []
    rows = {index: row for row, index in enumerate(singles)}
    for cap, free in zip(problem.caps, usage.left, strict=True):
        column, waiting = np.zeros(len(singles), dtype=np.int64), 0
        for index in cap.demands & rows.keys():
            amount = int(cap.amount[problem.demands[index].parts[0].shape])
            column[rows[index]] = amount
            waiting += 0 if shares[index] else amount
        if waiting > free:
            room.append(min(free, MOST_LEFT))
            columns.append(column)
    uses = np.stack(columns, axis=1) if columns else np.zeros((len(singles), 0), dtype=np.int64)
    return np.array(room, dtype=np.int64), uses


def _leaving(own: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The sets of gangs that may leave: none, each gang alone, and pairs of the first gangs."""
    yield ()
    for size in (1, 2):
        yield from combinations(own[:MOST_LEAVING] if size > 1 else own, size)


def _holds(room: Array, asks: Array) -> Flags:
    """[column]: whether a column of ``asks`` fits; a request of zero always fits."""
    most: Array = np.maximum(room, 0).reshape(-1, 1)
    holds: Flags = np.all(asks <= most, axis=0)
    return holds


def _is_single(demand: Demand, level: DemandLevel) -> bool:
    """Whether the demand is of the level, and needs one member of one shape."""
    return demand.level == level and demand.need == 1 and len(demand.parts) == 1
