"""Who gets which place, where not everyone fits every place.

Whoever comes first has one if any choice gives it to them and to those before; so as many as can
have one do. Separate from the slots, of which nothing here knows. Sources: augmenting paths (Berge,
1957; Kuhn, 1955); that it is right to take one after the other follows from those who can have a
place together being the independent sets of a matroid (Edmonds and Fulkerson, 1965).
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)  # what makes those who ask alike: they fit the same places
P = TypeVar("P", bound=Hashable)


def matched(
    asking: Sequence[K], fits: Mapping[K, Sequence[P]], room: Mapping[P, int]
) -> Mapping[int, P]:
    """The place of each who has one, by position; the first one that fits where there is a choice.

    Each place is for as many as there is ``room``.
    """
    seats = _Seats(asking, fits, room)
    hopeless: set[K] = set()  # once there is no way, there never is
    for who, kind in enumerate(asking):
        if kind not in hopeless and not seats.seat(who):
            hopeless.add(kind)
    return seats.at


class _Seats(Generic[K, P]):
    """Who is where by now."""

    def __init__(
        self, asking: Sequence[K], fits: Mapping[K, Sequence[P]], room: Mapping[P, int]
    ) -> None:
        self._asking, self._fits, self._room = asking, fits, room
        self._free = {kind: deque(places) for kind, places in fits.items()}
        self._there: dict[P, list[int]] = {place: [] for place in room}
        self.at: dict[int, P] = {}

    def seat(self, who: int) -> bool:
        """Give somebody a place, for which others may move; answers whether there is a way."""
        free = self._free[self._asking[who]]
        while free and self._is_full(free[0]):
            free.popleft()  # what is full stays full, whoever moves
        moves = [(who, free[0])] if free else self._moves(who)
        for one, place in moves:
            if one in self.at:
                self._there[self.at[one]].remove(one)
            self._there[place].append(one)
            self.at[one] = place
        return bool(moves)

    def _is_full(self, place: P) -> bool:
        return len(self._there[place]) >= self._room[place]

    def _moves(self, who: int) -> Sequence[tuple[int, P]]:
        """Who has to move where, the last one first, as few as will do; nobody if there is no way.

        Breadth first over those who could make place; of those who are alike one is enough.
        """
        reached: dict[P, int] = {}  # by whom
        known: set[K] = set()
        line = deque([who])
        while line:
            one = line.popleft()
            if self._asking[one] in known:
                continue
            known.add(self._asking[one])
            for place in self._fits[self._asking[one]]:
                if place in reached:
                    continue
                reached[place] = one
                if not self._is_full(place):
                    moves = [(one, place)]
                    while moves[-1][0] != who:
                        left = self.at[moves[-1][0]]
                        moves.append((reached[left], left))
                    return moves
                line.extend(self._there[place])
        return ()
