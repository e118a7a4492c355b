"""What befalls a gang between its Reservation and its last binding: one function for each change.

Each answers what the operator must have been told before it goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.harness.controlplane.nodes import MANAGED

from .arena import CPU, MEMBERS, Told

if TYPE_CHECKING:
    from collections.abc import Collection

    from .arena import Race

LATER = "later"  # a group that a member may be moved to


def cordon(race: Race) -> Collection[Told]:
    """Take no more pods on the node."""
    race.patch_node(race.target, {"spec": {"unschedulable": True}})
    return (Told("MODIFIED", race.target),)


def drain(race: Race) -> Collection[Told]:
    """Empty the node as kubectl does."""
    drain_node(race, race.target)
    return (Told("MODIFIED", race.target),)


def drain_node(race: Race, node: str) -> None:
    """Cordon a node and evict its pods, those without a controller too."""
    race.rig.plane.kubectl("drain", node, "--force", "--grace-period=0", "--timeout=30s")


def delete_node(race: Race) -> Collection[Told]:
    """Take the node out of the cluster."""
    race.delete("node", race.target)
    return (Told("DELETED", race.target),)


def lose_contact(race: Race) -> Collection[Told]:
    """Have the node stop to answer; kwok would make it answer again."""
    set_ready(race, race.target, "Unknown")
    return (Told("MODIFIED", race.target),)


def set_ready(race: Race, node: str, status: str) -> None:
    """Set what a node says of itself, and have kwok let go of it."""
    ready = {"type": "Ready", "status": status, "reason": "NodeStatusUnknown", "message": ""}
    # In one patch: whoever is told that the node has changed is told all of it.
    changed = {"annotations": dict.fromkeys(MANAGED)}
    body = {"metadata": changed, "status": {"conditions": [ready]}}
    race.patch(f"/api/v1/nodes/{node}/status", body)


def fill(race: Race) -> Collection[Told]:
    """Put a pod onto the node, past every scheduler."""
    pod = race.pod("filler", scheduler="by-hand", cpu=CPU, spec={"nodeName": race.target})
    race.rig.create(pod)
    return (Told("ADDED", "filler"),)


def recreate_member(race: Race) -> Collection[Told]:
    """Delete a member and create another under its name."""
    race.remove(race.victim)
    race.add_member(race.victim)
    return Told("DELETED", race.victim), Told("ADDED", race.victim)


def delete_member(race: Race) -> Collection[Told]:
    """Delete a member."""
    race.remove(race.victim)
    return (Told("DELETED", race.victim),)


def bind_by_hand(race: Race) -> Collection[Told]:
    """Bind a member elsewhere."""
    race.bind(race.victim, race.spare)
    return (Told("ADDED", race.victim),)  # among the bound ones


def move_member(race: Race) -> Collection[Told]:
    """Make a member one of another group."""
    race.relabel(race.victim, group=LATER)
    return (Told("MODIFIED", race.victim),)


def annotate_group(race: Race) -> Collection[Told]:
    """Edit the PodGroup where it means nothing."""
    return _edit_group(race, {"metadata": {"annotations": {"example.com/note": "edited"}}})


def raise_min_member(race: Race) -> Collection[Told]:
    """Ask for one member more."""
    return _edit_group(race, {"spec": {"minMember": MEMBERS + 1}})


def lower_min_member(race: Race) -> Collection[Told]:
    """Ask for one member less."""
    return _edit_group(race, {"spec": {"minMember": MEMBERS - 1}})


def demand_roles(race: Race) -> Collection[Told]:
    """Ask for members of a role that none has."""
    return _edit_group(race, {"spec": {"roles": [{"name": "worker", "minMember": MEMBERS}]}})


def delete_group(race: Race) -> Collection[Told]:
    """Delete the PodGroup under its pods."""
    race.delete("podgroup", race.group_name)
    return (Told("DELETED", race.group_name),)


def _edit_group(race: Race, body: dict[str, Any]) -> Collection[Told]:
    race.patch_group(body)
    return (Told("MODIFIED", race.group_name),)
