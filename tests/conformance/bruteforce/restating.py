"""The same objects with amounts in other words: nothing may change; or with one byte less."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from . import quantities

if TYPE_CHECKING:
    from collections.abc import Iterator

Raw = dict[str, Any]
MANY = 10**6  # units, of which one less is next to nothing
Place = tuple[Raw, str]  # a mapping, and the key of an amount in it


def restated(whole: Raw, seed: int) -> Raw:
    """Every amount, or by chance one alone, in other words."""
    random, other = Random(seed), copy.deepcopy(whole)
    places = list(_amounts(other))
    if random.random() < 0.3:
        places = random.sample(places, min(len(places), 1))
    for mapping, name in places:
        mapping[name] = quantities.in_other_words(mapping[name], random)
    return other


def nudged(whole: Raw, seed: int) -> Raw | None:
    """One pod that waits asks for one byte less; None if none asks for many."""
    random, other = Random(seed), copy.deepcopy(whole)
    waiting = [item for item in other["items"] if item["kind"] == "Pod"]
    places = [
        (mapping, name)
        for mapping, name in _amounts({"items": waiting})
        if quantities.units(name, quantities.amount(mapping[name])) >= MANY
    ]
    if not places:
        return None
    mapping, name = random.choice(places)
    mapping[name] = str(quantities.units(name, quantities.amount(mapping[name])) - 1)
    return other


def _amounts(whole: Raw) -> Iterator[Place]:
    for item in whole["items"]:
        if item["kind"] == "Node":
            status = item.get("status") or {}
            offers = status.get("allocatable") or status.get("capacity") or {}
            yield from ((offers, name) for name in offers)
        if item["kind"] == "Pod":
            for container in item["spec"].get("containers") or []:
                requests = (container.get("resources") or {}).get("requests") or {}
                yield from ((requests, name) for name in requests)
