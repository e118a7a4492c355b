"""Events about pods: what the owner of a pod should know, although the pod does not wait for it.

Each Event is sent once; an Event that the API server refuses is not sent again. The conditions of
pods (``pod_conditions``) say why a pod waits.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..kube import errors
from ..kube.client import Api
from ..kube.codec import encode
from ..kube.concurrency import is_away
from ..kube.gang_sources import source_name
from ..model.cluster import Gang, Member, Phase
from ..model.keys import GangKey, Uid

logger = logging.getLogger(__name__)

STARTS_ALONE = "StartsAlone"
SEVERAL_GANGS = "SeveralGangs"
ALONE = (
    "Tutti starts this Spark driver alone and reserves no room for its executors, because gangs of "
    "Spark applications are turned off. Turn them on (spark.enabled in the chart, "
    "TUTTI_SPARK_ENABLED elsewhere), or name a PodGroup for its pods."
)


class PodNotice(NamedTuple):
    """An Event about a pod."""

    member: Member
    reason: str
    message: str

    @property
    def key(self) -> tuple[Uid, str]:
        """The pod and the sentence; one Event is created for each such pair."""
        return self.member.uid, self.message


def notices_of(gang: Gang, is_declared: Callable[[GangKey], bool]) -> Iterable[PodNotice]:
    """The Events about pods of a gang that have not started.

    ``is_declared`` says whether an object declares a gang.
    """
    is_single = gang.is_single
    for member in gang.members:
        if member.phase is not Phase.PENDING:
            continue
        if is_single and _starts_alone(member):
            yield PodNotice(member, STARTS_ALONE, ALONE)
        if is_single and member.unread_gang is not None:
            yield PodNotice(member, STARTS_ALONE, _unread(member.unread_gang))
        for other in member.other_gangs:
            if is_declared(other):
                sentence = (
                    f"The pod is a member of {_name(gang.key)}. It also names {_name(other)}, "
                    "which does not count it: a pod is in one gang."
                )
                yield PodNotice(member, SEVERAL_GANGS, sentence)


def _starts_alone(member: Member) -> bool:
    """Whether a pod is a driver that gets no PodGroup. A driver that waits for one is not."""
    is_driver = member.application is not None and member.application.is_driver
    return is_driver and not member.size_unknown_because


def _unread(key: GangKey) -> str:
    """The sentence for a pod whose gang is of a kind that Tutti does not read."""
    return (
        f"Tutti starts this pod alone, although it names {_name(key)}, because gangs of this kind "
        f"are turned off. Turn them on (add {source_name(key.kind)} to settings.gangSources in the "
        "chart, to TUTTI_GANG_SOURCES elsewhere)."
    )


def _name(key: GangKey) -> str:
    """The kind, the name and the API group, because several APIs have PodGroups."""
    of_group = f" of {key.kind.group}" if key.kind.group else ""
    return f"{key.kind.kind} {key.name}{of_group}"


async def create_event(api: Api, event: encode.Event) -> None:
    """Create an Event; one that the API server refuses is dropped.

    Raises:
        errors.Unavailable: the API server is away.
    """
    try:
        await api.say(event)
    except errors.ApiError as problem:
        if is_away(problem):
            raise
        # A namespace that is being deleted takes no Events.
        logger.debug("the Event %s was not created: %s", event.reason, problem)
