"""What the claims of waiting pods ask for, as far as it can be counted.

If claims ask for too much, some are left out as ``turns`` says, and only these wait
for that reason.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ...filters.devices import admin_access, bundles, requests, rows
from ...filters.devices.admin_access import Wanted
from ...model.devices.claims import MOST_RESULTS, DeviceClaim, Selection, WantedDevices
from ...model.devices.inventory import DeviceClass
from . import admin_rows, bundle_rows, turns
from .bundle_rows import NOTHING_TIED, Tie, Tied
from .claim_users import ClaimUsers
from .turns import Ask, Wants

T = TypeVar("T")

# Selections that are compared with every device, with those that are no resources of their own.
MOST_SELECTIONS = 1024


class Asked(NamedTuple):
    """What is counted, what is left out of it, and in which order more is left out."""

    selections: tuple[Selection, ...] = ()  # sorted
    tied: Tied = NOTHING_TIED
    administered: tuple[Wanted, ...] = ()  # what claims for admin access ask for; sorted
    left_out: frozenset[Selection] = frozenset()
    # What the requests of claims select that are left out, and those of no claim that is counted.
    without_rows: frozenset[Selection] = frozenset()
    left_out_administered: frozenset[Wanted] = frozenset()
    turns: tuple[tuple[Selection, ...], ...] = ()  # the selections, each in its first turn
    ties: tuple[Tie, ...] = ()  # the bundles and what is beside them, each in its first turn
    expressions: tuple[str, ...] = ()  # of all claims, also of those that are left out; in turns

    @property
    def counted(self) -> tuple[object, ...]:
        """What is counted, in whichever order."""
        return self.selections, self.tied, self.administered

    @property
    def judged(self) -> tuple[object, ...]:
        """What is counted and what is left out, in whichever order."""
        left_out = self.left_out, self.without_rows, self.left_out_administered
        return *self.counted, *left_out

    @property
    def texts(self) -> set[str]:
        """The CEL expressions of all selections."""
        administered = (of for asked in self.administered for of, _ in asked)
        return {text for of in (*self.selections, *administered) for text in of.texts}


NOTHING_ASKED = Asked()


def asked(
    users: ClaimUsers,
    classes: Mapping[str, DeviceClass],
    problems: Mapping[str, str],
    *,
    have_counters: bool,
) -> Asked:
    """What the claims ask for that waiting pods need and that have no devices yet.

    ``problems`` has the expressions that are evaluated, and why Tutti cannot do so. Claims with
    others come later.
    """
    every = turns.in_turns(_asks(users, classes, problems))
    waiting = [
        ask
        for ask in every
        if problems.keys() >= ask.wants.texts and ask.claim.most_devices <= MOST_RESULTS
    ]
    kept = [*turns.within(waiting, lambda wants: wants.selections, MOST_SELECTIONS)]
    kept = [*turns.within(kept, lambda wants: wants.whole, rows.MOST_ROWS)]
    known = {of for ask in kept for of in ask.wants.selections}
    whole = {of for ask in kept for of in ask.wants.whole}
    tied, ties = _tied(kept, known, have_counters=have_counters)
    all_administered = (ask.wants.administered for ask in waiting)
    administered = [*dict.fromkeys(filter(None, all_administered))]
    return Asked(
        _sorted(known),
        tied,
        _sorted(administered[: admin_rows.MOST_ROWS]),
        frozenset(of for ask in waiting for of in ask.wants.selections if of not in known),
        frozenset(of for ask in waiting for of in ask.wants.whole if of not in whole),
        frozenset(administered[admin_rows.MOST_ROWS :]),
        _each_once(ask.wants.selections for ask in kept),
        ties,
        (*dict.fromkeys(text for ask in every for text in sorted(ask.wants.texts)),),
    )


def _asks(
    users: ClaimUsers, classes: Mapping[str, DeviceClass], problems: Mapping[str, str]
) -> Iterator[Ask]:
    """What the claims ask for that have no devices yet, however many there are.

    Of the claims of a namespace that want the same, there is that of the oldest pod.
    """
    known: set[tuple[str, WantedDevices]] = set()
    wants: dict[WantedDevices, Wants] = {}
    for pod, claim in users.waiting_claims():
        own = claim.key.namespace, claim.wanted
        if claim.is_allocated or own in known:
            continue
        known.add(own)
        if claim.wanted not in wants:
            wants[claim.wanted] = _wants(claim, classes, problems)
        yield Ask(claim, pod.created, pod.gated, wants[claim.wanted])


def _wants(
    claim: DeviceClaim, classes: Mapping[str, DeviceClass], problems: Mapping[str, str]
) -> Wants:
    """What a claim asks for; without what no device can be compared with."""
    every = dict.fromkeys(bundles.selections(claim, classes))
    texts = frozenset(text for of in every for text in of.texts)
    if claim.takes_nothing:
        is_known = not any(requests.unsupported(claim, classes, problems))
        administered = admin_access.wanted(claim, classes) if is_known else ()
        return Wants(administered=administered, texts=texts)
    known = {of: None for of in every if not any(map(problems.get, of.texts))}
    whole = {of for _, of in requests.selections(claim, classes) if of in known}
    if claim.unsupported:
        return Wants((*known,), frozenset(whole), texts=texts)
    divided = bundles.divided(claim, classes)
    tied = (of.bundle for of in divided.bundles)
    return Wants(
        (*known,),
        frozenset(whole),
        tuple(of for of in tied if known.keys() >= {*of.selections}),
        frozenset(of for _, of in divided.loose if of in known),
        texts=texts,
    )


def _tied(
    asks: Collection[Ask], known: set[Selection], *, have_counters: bool
) -> tuple[Tied, tuple[Tie, ...]]:
    """The bundles of claims, and what their other requests select; each in its first turn, too."""
    are_tied = any(
        ask.claim.constraints or any(request.is_plural for request in ask.claim.requests)
        for ask in asks
    )
    if not (are_tied or have_counters):
        return NOTHING_TIED, ()
    tied: set[bundles.Bundle] = set()
    left_out: set[bundles.Bundle] = set()
    loose: set[Selection] = set()
    ties: list[Tie] = []
    for wants in (ask.wants for ask in asks):
        if len(tied.union(wants.bundles)) > bundle_rows.MOST_ROWS:
            left_out.update(wants.bundles)
            continue
        tie = _sorted({*wants.bundles} - tied), _sorted(wants.loose - loose)
        ties += [tie] if any(tie) else []
        tied.update(wants.bundles)
        loose |= wants.loose
    options = known.difference(*(ask.wants.whole for ask in asks))
    made = Tied(_sorted(tied), _sorted(loose), frozenset(options), frozenset(left_out - tied))
    return made, tuple(ties)


def _sorted(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(sorted(items, key=str))


def _each_once(groups: Iterable[Sequence[Selection]]) -> tuple[tuple[Selection, ...], ...]:
    """Each selection in the first group that has it; groups without one are left out."""
    known: set[Selection] = set()
    distinct: list[tuple[Selection, ...]] = []
    for group in groups:
        if new := tuple(of for of in group if of not in known):
            distinct.append(new)
            known.update(new)
    return tuple(distinct)
