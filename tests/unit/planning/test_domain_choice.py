"""Choices of domains for gangs with several rules: the best first, and few however many rules."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tutti.planning.domain_choice import MOST_CHOICES, LevelRule, choices

if TYPE_CHECKING:
    from collections.abc import Sequence

RACKS_OF_A_ZONE = 4
NODES_OF_A_RACK = 2


def rule(racks: int, groups: Sequence[int], *, of_zone: bool = False) -> LevelRule:
    """A rule that these groups are in one rack, or in one zone, of so many racks in all."""
    rack = np.repeat(np.arange(racks), NODES_OF_A_RACK)
    levels = [rack, rack // RACKS_OF_A_ZONE, np.zeros(rack.size, dtype=np.intp)][of_zone:]
    first_nodes = np.unique(levels[0], return_index=True)[1]
    return LevelRule(
        enclosing=tuple(levels),
        parents=tuple(level[first_nodes] for level in levels),
        named=len(first_nodes),
        is_required=True,
        groups=tuple(groups),
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_first_choice_of_a_zone_with_a_rack_for_each_role_leaves_least_room(seed: int) -> None:
    racks, roles = 12, 3
    rng = np.random.default_rng(seed)
    fits = rng.integers(0, 4, (roles, racks * NODES_OF_A_RACK))
    counts = rng.integers(1, 5, roles)
    zone, own = rule(racks, range(roles), of_zone=True), [rule(racks, [n]) for n in range(roles)]
    in_rack = fits.reshape(roles, racks, NODES_OF_A_RACK).sum(axis=2)

    def room(number: int, chosen: Sequence[int]) -> tuple[int, ...]:
        """The room for members that the choice leaves: in the cluster, the zones, the racks."""
        inside = range(number * RACKS_OF_A_ZONE, (number + 1) * RACKS_OF_A_ZONE)
        of_zone = [int(row[inside].sum()) for row in in_rack]
        in_racks = [int(in_rack[role, rack]) for role, rack in enumerate(chosen)]
        return (int(in_rack.sum()) + sum(of_zone), sum(of_zone) * 2, sum(in_racks))

    possible = [
        (room(number, chosen), chosen)
        for number in range(racks // RACKS_OF_A_ZONE)
        for chosen in product(range(number * 4, number * 4 + 4), repeat=roles)
        if all(in_rack[role, rack] >= counts[role] for role, rack in enumerate(chosen))
    ]
    answer = choices([*own, zone], fits, counts)
    assert bool(answer) == bool(possible)
    if answer:
        nodes = [np.flatnonzero(mask & (fits[n] > 0)) for n, mask in enumerate(answer[0])]
        chosen = [int(rows[0]) // NODES_OF_A_RACK for rows in nodes]
        assert room(chosen[0] // RACKS_OF_A_ZONE, chosen)[1:] == min(possible)[0][1:]


def test_many_rules_have_few_choices() -> None:
    racks, roles = 8, 5
    fits, counts = np.ones((roles, racks * NODES_OF_A_RACK), dtype=np.int64), np.ones(roles)
    answer = choices([rule(racks, [n]) for n in range(roles)], fits, counts.astype(np.int64))
    assert len(answer) == MOST_CHOICES
    for masks in answer:
        assert all(np.unique(np.flatnonzero(mask) // NODES_OF_A_RACK).size == 1 for mask in masks)
