"""Where gangs come from: one module for each source, and the order in which they count."""

from typing import NamedTuple

from ...model.keys import POD_GROUP, ApiKind, GangKey
from .. import wire
from . import pod_group, spark
from .base import GangObject, GangSource

# A pod of which several sources say that it is in a gang is in the first one's: docs/concepts.md
# has this order. A pod of which none says so is a gang of its own, which its binding commits.
SOURCES: tuple[GangSource, ...] = (pod_group.SOURCE, spark.SOURCE)

__all__ = ["SOURCES", "GangObject", "GangSource", "Membership", "has_status", "membership_of"]

_WITH_STATUS = {kind.api for source in SOURCES if source.has_status for kind in source.kinds}


class Membership(NamedTuple):
    """The gang that a pod is in, and the gangs that it names as well."""

    group: str = ""  # empty for a gang of one
    kind: ApiKind = POD_GROUP
    others: tuple[GangKey, ...] = ()


ALONE = Membership()


def membership_of(pod: wire.Pod) -> Membership:
    """Which gang a pod is in, by the first source that has one for it.

    A gang that is not awaited comes into being later, if at all: until then the pod is in none.
    """
    named = [(source, key) for source in SOURCES if (key := source.gang_of(pod)) is not None]
    if not named:
        return ALONE
    (source, first), *rest = named
    others = tuple(dict.fromkeys(key for _, key in rest if key != first))
    if not source.is_awaited:
        return Membership(others=others)
    return Membership(first.name, first.kind, others)


def has_status(kind: ApiKind) -> bool:
    """Whether Tutti writes the status of objects of this kind that declare gangs."""
    return kind in _WITH_STATUS
