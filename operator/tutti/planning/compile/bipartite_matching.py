"""A maximum matching of candidates to places, where not every candidate fits every place.

Candidates are matched in order. A candidate is matched if some matching contains it and all
candidates matched before it, so the result is maximum. Sources: augmenting paths (Berge, 1957;
Kuhn, 1955). The sets of candidates that can be matched together are the independent sets of a
matroid (Edmonds and Fulkerson, 1965), so matching in order is right.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)  # candidates of one kind fit the same places
P = TypeVar("P", bound=Hashable)


def matched(
    kinds: Sequence[K], fits: Mapping[K, Sequence[P]], room: Mapping[P, int]
) -> Mapping[int, P]:
    """The places of matched candidates, by position; the first fitting place is preferred.

    ``kinds`` has the kind of each candidate. ``room`` says how many candidates a place can have.
    """
    matching = _Matching(kinds, fits, room)
    unmatchable: set[K] = set()  # a kind that cannot be matched now never can
    for candidate, kind in enumerate(kinds):
        if kind not in unmatchable and not matching.match(candidate):
            unmatchable.add(kind)
    return matching.at


class _Matching(Generic[K, P]):
    """The matching so far."""

    def __init__(
        self, kinds: Sequence[K], fits: Mapping[K, Sequence[P]], room: Mapping[P, int]
    ) -> None:
        self._kinds, self._fits, self._room = kinds, fits, room
        self._free = {kind: deque(places) for kind, places in fits.items()}
        self._matched_at: dict[P, list[int]] = {place: [] for place in room}
        self.at: dict[int, P] = {}

    def match(self, candidate: int) -> bool:
        """Match the candidate, moving others if needed; return whether that is possible."""
        free = self._free[self._kinds[candidate]]
        while free and self._is_full(free[0]):
            free.popleft()  # a full place stays full: a move only replaces
        moves = [(candidate, free[0])] if free else self._moves(candidate)
        for mover, place in moves:
            if mover in self.at:
                self._matched_at[self.at[mover]].remove(mover)
            self._matched_at[place].append(mover)
            self.at[mover] = place
        return bool(moves)

    def _is_full(self, place: P) -> bool:
        return len(self._matched_at[place]) >= self._room[place]

    def _moves(self, candidate: int) -> Sequence[tuple[int, P]]:
        """The fewest moves that give the candidate a place, the last move first; else none.

        Breadth-first search over the candidates that could move; one candidate of each kind is
        enough.
        """
        reached_by: dict[P, int] = {}
        tried_kinds: set[K] = set()
        queue = deque([candidate])
        while queue:
            current = queue.popleft()
            if self._kinds[current] in tried_kinds:
                continue
            tried_kinds.add(self._kinds[current])
            for place in self._fits[self._kinds[current]]:
                if place in reached_by:
                    continue
                reached_by[place] = current
                if not self._is_full(place):
                    moves = [(current, place)]
                    while moves[-1][0] != candidate:
                        vacated = self.at[moves[-1][0]]
                        moves.append((reached_by[vacated], vacated))
                    return moves
                queue.extend(self._matched_at[place])
        return ()
