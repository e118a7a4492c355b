"""Better nodes for members that start anyway: preferences choose among equal admissions.

No strategy sees what a pod prefers. Once it is decided which members start, they move to nodes that
they prefer, or two members exchange nodes. Room and rules are respected, and the same gangs start.
This goes on as long as the sum of all scores grows and work is left; nothing about it is proved.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..filters.topology import Mask
from ..gang import domain_rules
from ..gang.demand import MemberCounts
from ..model.cluster import Member
from ..model.decisions import Assignment
from ..model.keys import Uid
from ..model.shapes import NO_PREFERENCES, Effect, Shape
from .compile.grids import Grid
from .local_search import LocalSearch, MemberPlace, MoveContext
from .search.limits import NO_PROGRESS, Progress

WORK = 20_000_000  # scores of nodes; computing them takes seconds in a large cluster


def improved(
    context: MoveContext,
    gangs: Sequence[MemberCounts],
    assigned: Mapping[Uid, Assignment],
    work: int = WORK,
    progress: Progress = NO_PROGRESS,
) -> Mapping[Uid, Assignment]:
    """The same members, on nodes with a total score that is no lower.

    If the scores depend on too many other members, only taints and affinity to nodes count.
    """
    if not assigned or not _has_preferences(context, gangs):
        return assigned
    search = LocalSearch(context, member_places(context.base, gangs, assigned), work)
    if not search.is_open:
        return assigned
    best = search.total()
    moved: Mapping[Uid, int] = {}
    while not progress.is_late and search.sweep() and (total := search.total()) > best:
        best, moved = total, search.moved()
        progress.step()
    nodes = context.base.nodes
    better = {uid: replace(assigned[uid], node=nodes[row].name) for uid, row in moved.items()}
    return {**assigned, **better}


def _has_preferences(context: MoveContext, gangs: Sequence[MemberCounts]) -> bool:
    """Whether waiting members or placed pods have preferences, or a taint prefers other nodes."""
    return (
        any(map(_prefers, gangs))
        or any(pod.scored_terms for pod in context.placed_pods)
        or any(
            taint.effect == Effect.PREFER_NO_SCHEDULE
            for node in context.base.nodes
            for taint in node.taints
        )
    )


def _prefers(gang: MemberCounts) -> bool:
    """Whether a waiting member of the gang prefers some node."""
    templates = (role.template for role in gang.gang.roles)
    declared = (template.shape for template in templates if template is not None)
    known = (*(member.shape for member in gang.gang.members), *declared)
    if all(shape.preferences is NO_PREFERENCES for shape in known):
        return False  # true of most gangs, and cheap to find out
    return any(shape.preferences is not NO_PREFERENCES for _, shape in _pod_shapes(gang))


def member_places(
    base: Grid, gangs: Sequence[MemberCounts], assigned: Mapping[Uid, Assignment]
) -> Sequence[MemberPlace]:
    """The members that were given a node, with their preferences."""
    rows = {node.name: row for row, node in enumerate(base.nodes)}
    return [
        MemberPlace(member, shape, base.shapes[member.shape], row, _within(base, member, gang, row))
        for gang in gangs
        for member, shape in _pod_shapes(gang)
        if member.uid in assigned
        for row in (rows[assigned[member.uid].node],)
    ]


def _within(base: Grid, member: Member, members: MemberCounts, row: int) -> Mask | None:
    """[node]: the domains in which the member stays; None if there is no such rule.

    They are those of required levels, and of preferred ones: the gang has as few as it can have.
    """
    within: Mask | None = None
    rows = np.arange(len(base.nodes))
    for rule in (*members.gang.required_levels, *members.gang.preferred_domains):
        labels = domain_rules.labels_of(rule.level, base.topologies)
        if labels and domain_rules.covers(rule, member.role):
            domain = base.domains.domains(labels)
            # A node in no domain counts as a domain of its own.
            inside = domain == domain[row] if domain[row] >= 0 else rows == row
            within = inside if within is None else within & inside
    return within


def _pod_shapes(gang: MemberCounts) -> Iterator[tuple[Member, Shape]]:
    """The waiting members, each with the shape of its pod or of its role's template."""
    shapes = {member.uid: member.shape for member in gang.gang.members}
    templates = {role.name: role.template for role in gang.gang.roles}
    for member in gang.waiting:
        template = None if member.uid in shapes else templates[member.role]
        yield member, shapes[member.uid] if template is None else template.shape
