"""Which claims are counted if not all can be: namespaces take turns, each with its oldest first.

The n-th selection, bundle or CEL expression of a namespace comes before the n+1-th of any other,
whether Tutti can evaluate it or not. So a tenant with
any number of them, in one claim or in many, old or new, keeps from being counted only claims of
namespaces that ask for about as many themselves. A tenant with many namespaces has many turns.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ...filters.devices.admin_access import Wanted
from ...filters.devices.bundles import Bundle
from ...model.devices.claims import DeviceClaim, Selection


class Wants(NamedTuple):
    """What a claim asks for; a claim for admin access has nothing but ``administered``."""

    selections: tuple[Selection, ...] = ()  # those of its requests, and the options of its bundles
    whole: frozenset[Selection] = frozenset()  # those of its requests
    bundles: tuple[Bundle, ...] = ()
    loose: frozenset[Selection] = frozenset()  # those of its requests that are in no bundle
    administered: Wanted = ()
    texts: frozenset[str] = frozenset()  # its CEL expressions


class Ask(NamedTuple):
    """What a claim asks for, and the oldest pod that waits for it."""

    claim: DeviceClaim
    created: float  # the pod
    is_gated: bool  # other controllers hold all of its pods back
    wants: Wants


def in_turns(asks: Iterable[Ask]) -> Sequence[Ask]:
    """The asks in the order in which they are counted; those that are gated come last."""
    known: dict[tuple[bool, str], set[object]] = {}
    placed: list[tuple[tuple[object, ...], Ask]] = []
    for ask in sorted(asks, key=_by_age):
        own = known.setdefault((ask.is_gated, ask.claim.key.namespace), set())
        administered = filter(None, [ask.wants.administered])
        own.update(ask.wants.selections, ask.wants.bundles, administered, ask.wants.texts)
        placed.append(((ask.is_gated, len(own), *_by_age(ask)), ask))
    return [ask for _, ask in sorted(placed, key=lambda pair: pair[0])]


def _by_age(ask: Ask) -> tuple[object, ...]:
    return ask.created, ask.claim.key, ask.claim.uid


def within(
    asks: Iterable[Ask], selections: Callable[[Wants], Collection[Selection]], most: int
) -> Iterator[Ask]:
    """The asks, in order, whose selections together are ``most`` or fewer; others are left out."""
    counted: set[Selection] = set()
    for ask in asks:
        new = {*selections(ask.wants)} - counted
        if len(counted) + len(new) <= most:
            counted |= new
            yield ask
