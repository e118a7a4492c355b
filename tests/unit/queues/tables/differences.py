"""Why an answer of ours is not that of another scheduler: a name, and a sentence that argues."""

from enum import StrEnum


class Difference(StrEnum):
    """``docs/coming-from.md`` prints them."""

    COVER = (
        "Gangs that would be covered start before older ones that borrow, and those by a leaf's "
        "guarantee before those by a parent's, because that is for all of its leaves."
    )
    TURNS = (
        "Turns go by shares in steps of 5 % of the cluster, before the gang itself counts, and one "
        "turn starts the most value: so neither its size nor a few devices delay a gang."
    )
    EXTRAS = (
        "Extras join one gang after the other, the oldest gang first, so that one gang is complete "
        "instead of several in part."
    )
    MEASURE = (
        "A share is what a queue uses beyond its guarantee, as a part of the cluster: within "
        "guarantees all queues are equal, and no limit makes a share larger."
    )
    WEIGHTS = (
        "Weights are whole numbers from 1: a queue that shall not borrow has a limit, and its "
        "gangs say which limit would do."
    )
    PRIORITY = (
        "Queues have no priorities: guarantees come first and then shares, so that no team waits "
        "for ever because of another."
    )
    PROTECTED = (
        "Without preemption, nothing that runs is ended for another gang, so a gang that cannot be "
        "ended borrows as others do."
    )
    LENDING = (
        "What a guarantee does not use is lent whole, because idle room helps nobody; what others "
        "must not have is for their limits to say."
    )
    ROOM = (
        "Gangs start where there is room: guarantees beyond the cluster are not scaled, and a "
        "condition names them."
    )
    FLAVORS = (
        "A quota counts a resource on all nodes, because pods, not quotas, say which nodes they "
        "accept."
    )


class EndDifference(StrEnum):
    """Why other gangs end, or none; ``docs/coming-from.md`` prints them."""

    SHARE = (
        "Shares order starts and end nobody: rights by shares let gangs end each other in circles, "
        "so what a queue may take back is its guarantee."
    )
    COVER = (
        "A guarantee covers gangs by priority and then by start, a leaf's before a parent's: what "
        "it covers stays, and of what borrows, the least work ends."
    )
    COST = (
        "Of what may end, the set ends that loses the least work, then the first by name, because "
        "turns among queues would end more."
    )
    PRIORITY = (
        "A priority counts in its own queue alone, for starts and for ends: otherwise each team "
        "would raise its own."
    )
    POLICY = (
        "No queue limits what its guarantee takes back to lower priorities: what borrows can "
        "always end, so all may lend."
    )
    DECLARED = (
        "A guarantee counts as it is declared, beyond its parent's or the cluster's, too, and "
        "whichever queues are idle; a condition names it."
    )
    GROWTH = (
        "Only a gang that waits as a whole ends others: members that it does not need to run, and "
        "replacements, wait for room."
    )
    MOVES = (
        "No gang that runs is moved to make room: most jobs would lose their work as if they ended."
    )
    LENDING = "What a guarantee does not use is lent whole, and comes back whole."
    FAULT = "The case states an answer that its authors call a fault: the covered gang starts."
