"""The PodScheduled conditions of waiting pods, and the Events that repeat them.

Autoscalers read these conditions. Each is written once, unlike the status of a PodGroup.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..gang import demand, finding_text
from ..kube.codec import encode
from ..model.cluster import Gang, Member
from ..model.decisions import Reason, Rejection
from ..model.keys import GangKey
from ..planning import missing_members


@dataclass(frozen=True, slots=True)
class PodCondition:
    """What the PodScheduled condition of a waiting pod should say."""

    member: Member
    reason: str
    message: str
    is_its_own: bool = False  # about this pod alone: the pod gets an Event, too
    may_change: bool = False  # the message may change when users change objects: write it again


def notes_of(gang: Gang, rejection: Rejection | None) -> Iterable[PodCondition]:
    """The conditions that the waiting members of one gang should have."""
    role_names = [role.name for role in gang.roles]
    census = demand.within_maximums(demand.count_members(gang))
    surplus = {member.uid for member in census.surplus} if rejection is not None else ()
    for member in gang.members:
        if not member.is_waiting:
            continue
        if member.role in gang.other_stages:
            sentence = (
                f"{gang.key.kind.kind} {gang.key.name} starts in stages: pods of the role "
                f"{member.role!r} wait until the pods of another stage have started"
            )
            yield PodCondition(member, "WaitingForStage", sentence, may_change=True)
        elif not gang.accepts(member):
            sentence = (
                f"PodGroup {gang.key.name} has no role {member.role!r}: "
                f"label tutti.dev/role must be one of {', '.join(role_names)}"
            )
            yield PodCondition(member, "UnknownRole", sentence, is_its_own=True, may_change=True)
        elif member.volume_problems:
            sentence = finding_text.sentence_of([missing_members.volumes_not_ready([member])])
            yield PodCondition(member, Reason.WAITING_FOR_VOLUMES, sentence, may_change=True)
        elif member.device_problems:
            sentence = finding_text.sentence_of([missing_members.devices_not_ready([member])])
            yield PodCondition(member, Reason.WAITING_FOR_DEVICES, sentence, may_change=True)
        elif member.unsupported_fields:
            sentence = (
                f"Tutti does not place pods that use {', '.join(member.unsupported_fields)} yet"
            )
            yield PodCondition(member, Reason.NOT_MODELLED, sentence, is_its_own=True)
        elif member.uid in surplus:
            sentence = finding_text.sentence_of([missing_members.maximum_reached([member])])
            yield PodCondition(member, Reason.WAITING_FOR_MEMBERS, sentence)
        elif rejection is not None:
            why = rejection.underlying_reason or rejection.reason
            may_change = why is Reason.WAITING_FOR_CONFIGURATION or gang.terminating
            yield PodCondition(
                member,
                _pod_reason(why),
                finding_text.sentence(rejection),
                is_its_own=gang.is_single,
                may_change=may_change,
            )


def _pod_reason(reason: Reason) -> str:
    """The reason of a pod; autoscalers act on Unschedulable, so only lack of room gives it."""
    waits_for_room = (Reason.NOT_ENOUGH_ROOM, Reason.NO_NODE_FITS, Reason.BUDGET_EXHAUSTED)
    return "Unschedulable" if reason in waits_for_room else reason.value


def stray_notes(
    strays: Iterable[Member], groups: Callable[[GangKey], object | None]
) -> Iterable[PodCondition]:
    """The conditions of pods whose PodGroup does not exist, or was deleted and created again."""
    for member in strays:
        if member.is_waiting:
            owner = f"{member.group_kind.kind} {member.key.namespace}/{member.group}"
            sentence = f"{owner} does not exist; the pod waits until it does"
            if groups(member.gang) is not None:
                sentence = f"the pod was made for an earlier {owner}, which has been deleted"
            yield PodCondition(
                member, "PodGroupNotFound", sentence, is_its_own=True, may_change=True
            )


def not_shown(conditions: Iterable[PodCondition]) -> list[PodCondition]:
    """The conditions that their pods do not have yet."""
    return [condition for condition in conditions if not _is_shown(condition)]


def _is_shown(condition: PodCondition) -> bool:
    """Whether the pod has this reason already, and this message if the message may change."""
    current = condition.member.scheduled_condition
    message = current.message.partition(encode.FENCE)[0]
    is_same = message == condition.message[: encode.MESSAGE_LIMIT]
    return current.reason == condition.reason and (is_same or not condition.may_change)
