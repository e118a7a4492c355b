"""Which volume each claim gets whose pod has a node in a plan, and how far a choice has come.

The smallest volume that will do is chosen, as by kube-scheduler; where none is left, the volume is
provisioned. The most demanding claims of a node choose first, so none is left without a volume that
the counts of ``volume_supply`` promise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import chain
from typing import NamedTuple

from ..model.cluster import Member, Node, Reservation, Snapshot
from ..model.decisions import Assignment, Placement
from ..model.decisions import Claim as GangClaim
from ..model.inter_pod import HOSTNAME
from ..model.keys import GangKey, NodeName, Uid
from ..model.volumes import (
    Claim,
    ClaimKey,
    Storage,
    StorageClass,
    Volume,
    VolumeChoice,
    VolumeRequest,
)
from . import volume_rules
from .volume_rules import Where

BIND_SECONDS = (
    600.0  # for all claims of a gang; bindTimeoutSeconds of kube-scheduler's VolumeBinding
)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The available volumes by class: local ones by host, others listed; smallest first."""

    by_host: Mapping[tuple[str, str], Sequence[Volume]]
    shared: Mapping[str, Sequence[Volume]]

    @classmethod
    def of(cls, volumes: Iterable[Volume]) -> "Candidates":
        """The candidates among these volumes."""
        by_host: dict[tuple[str, str], list[Volume]] = {}
        shared: dict[str, list[Volume]] = {}
        free = (
            (volume.offer, volume)
            for volume in volumes
            if volume.offer is not None and volume.claim is None and not volume.in_tree
        )
        for offer, volume in sorted(free, key=lambda pair: (pair[0].size, pair[1].name)):
            host = volume_rules.host_of(volume)
            if host is None:
                shared.setdefault(offer.storage_class, []).append(volume)
            else:
                by_host.setdefault((offer.storage_class, host), []).append(volume)
        return cls(by_host, shared)

    def at(self, request: VolumeRequest, labels: Mapping[str, str]) -> list[Volume]:
        """The volumes that will do for a request on a node with these labels, smallest first."""
        host = labels.get(HOSTNAME, "")
        local = self.by_host.get((request.storage_class, host), ())
        volumes = [
            volume
            for volume in (*local, *self.shared.get(request.storage_class, ()))
            if volume_rules.matches(request, volume) and volume_rules.is_reached(volume, labels)
        ]
        return sorted(volumes, key=_size)


def _size(volume: Volume) -> tuple[int, str]:
    return volume.offer.size if volume.offer is not None else 0, volume.name


@dataclass(frozen=True, slots=True)
class _Chooser:
    """The volumes that are still free; each choice takes one."""

    storage: Storage
    classes: Mapping[str, StorageClass]
    claims: Mapping[ClaimKey, Claim]
    prebound: Mapping[ClaimKey, Volume]
    nodes: Mapping[NodeName, Node]
    candidates: Candidates
    taken: set[str]
    where: dict[VolumeRequest, Where | None] = field(default_factory=dict)  # filled on demand

    @classmethod
    def of(cls, snapshot: Snapshot) -> "_Chooser":
        storage = snapshot.storage
        claims = {claim.key: claim for claim in storage.claims}
        return cls(
            storage,
            {storage_class.name: storage_class for storage_class in storage.classes},
            claims,
            {
                volume.claim.key: volume
                for volume in storage.volumes
                if volume.claim is not None and volume.offer is not None
            },
            {node.name: node for node in snapshot.nodes},
            Candidates.of(storage.volumes),
            {choice.volume for held in snapshot.reservations for choice in held.volumes},
        )

    def choose(
        self, wanted: Mapping[ClaimKey, Sequence[NodeName]]
    ) -> Mapping[ClaimKey, VolumeChoice]:
        """The choice for each claim for which there is a volume on the nodes of its pods.

        Pods on several nodes get a new volume, provisioned for one of these nodes.
        """
        ranked = []
        for key, name in _node_by_claim(wanted).items():
            claim, node = self.claims.get(key), self.nodes.get(name)
            if claim is None or claim.request is None or node is None:
                continue
            labels = dict(node.labels)
            is_on_one = len({*wanted[key]}) == 1
            volumes = self.candidates.at(claim.request, labels) if is_on_one else []
            ranked.append((name, len(volumes), -claim.request.size, key, claim, labels, volumes))
        ranked.sort(key=lambda row: row[:4])
        choices = {}
        for name, _, _, key, claim, labels, volumes in ranked:
            volume = self._volume(claim, volumes)
            if volume is not None:
                self.taken.add(volume)
                choices[key] = VolumeChoice(key.name, claim.uid, claim.version, name, volume)
            elif claim.selected_node == name or self._is_provisioned_at(claim, labels):
                choices[key] = VolumeChoice(key.name, claim.uid, claim.version, name)
        return choices

    def _volume(self, claim: Claim, volumes: Sequence[Volume]) -> str | None:
        """The volume that a claim gets; None if it is to be provisioned."""
        prebound = self.prebound.get(claim.key)
        if prebound is not None and prebound.is_for(claim):
            return prebound.name
        if claim.selected_node is not None:
            return None
        return next((volume.name for volume in volumes if volume.name not in self.taken), None)

    def _is_provisioned_at(self, claim: Claim, labels: Mapping[str, str]) -> bool:
        request, storage_class = claim.request, self.classes.get(claim.storage_class)
        if request is None or storage_class is None:
            return False
        if request not in self.where:
            self.where[request] = volume_rules.provisioned_at(
                request, storage_class, self.storage.drivers, self.storage.capacities
            )
        where = self.where[request]
        return where is not None and volume_rules.holds_somewhere(where, labels)


def _node_by_claim(wanted: Mapping[ClaimKey, Sequence[NodeName]]) -> Mapping[ClaimKey, NodeName]:
    """For which of the nodes of its pods each claim gets its volume.

    A node that another claim has already goes first: a pod with several claims then reaches all of
    their volumes, even if drivers make them for one zone.
    """
    node_by_claim: dict[ClaimKey, NodeName] = {}
    nodes: set[NodeName] = set()
    for key, names in sorted(wanted.items(), key=lambda item: len({*item[1]})):
        node_by_claim[key] = next((name for name in names if name in nodes), names[0])
        nodes.add(node_by_claim[key])
    return node_by_claim


def with_volumes(
    snapshot: Snapshot, placements: Sequence[Placement], claims: Sequence[GangClaim]
) -> tuple[tuple[Placement, ...], tuple[GangClaim, ...]]:
    """The same placements and claims of gangs, with a volume for each claim that has none."""
    decisions: Sequence[Placement | GangClaim] = (*placements, *claims)
    members = {
        member.uid: member
        for gang in snapshot.gangs
        for member in gang.members
        if member.unbound_claims
    }
    wanted: dict[ClaimKey, list[NodeName]] = {}
    for decision in decisions:
        for assignment in decision.assignments:
            for key in _keys(members.get(assignment.uid)):
                wanted.setdefault(key, []).append(assignment.node)
    if not wanted:
        return tuple(placements), tuple(claims)
    choices = _Chooser.of(snapshot).choose(wanted)
    return (
        tuple(replace(p, volumes=_chosen(p.assignments, members, choices)) for p in placements),
        tuple(replace(c, volumes=_chosen(c.assignments, members, choices)) for c in claims),
    )


def sharing_gangs(snapshot: Snapshot) -> frozenset[GangKey]:
    """The gangs of which a pod shares a claim that has no volume yet with another pod."""
    for_one_pod = {claim.key for claim in snapshot.storage.claims if claim.for_one_pod}
    users: dict[ClaimKey, list[GangKey]] = {}
    for gang in snapshot.gangs:
        for member in gang.members:
            for key in _keys(member):
                users.setdefault(key, []).append(gang.key)
    shared = (own for key, own in users.items() if len(own) > 1 and key not in for_one_pod)
    return frozenset(chain.from_iterable(shared))


def _keys(member: Member | None) -> Iterable[ClaimKey]:
    if member is None:
        return ()
    return (ClaimKey(member.key.namespace, name) for name in member.unbound_claims)


def _chosen(
    assignments: Sequence[Assignment],
    members: Mapping[Uid, Member],
    choices: Mapping[ClaimKey, VolumeChoice],
) -> tuple[VolumeChoice, ...]:
    chosen = {
        choices[key]
        for assignment in assignments
        for key in _keys(members.get(assignment.uid))
        if key in choices
    }
    return tuple(sorted(chosen, key=lambda choice: choice.claim))


class Stage(Enum):
    """How far a choice has come."""

    CHOSEN = auto()  # nothing is written yet
    WRITTEN = auto()  # the PV controller or the provisioner has to answer
    BOUND = auto()
    LOST = auto()


class ChoiceState(NamedTuple):
    """The stage of a choice; ``sentence`` says what is awaited, or why it is lost."""

    choice: VolumeChoice
    stage: Stage
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class ChoiceStates:
    """The claims and volumes of a Snapshot, which say how far choices have come."""

    claims: Mapping[ClaimKey, Claim]
    volumes: Mapping[str, Volume]

    @classmethod
    def of(cls, storage: Storage) -> "ChoiceStates":
        """The states in this storage."""
        return cls(
            {claim.key: claim for claim in storage.claims},
            {volume.name: volume for volume in storage.volumes},
        )

    def of_members(
        self, reservation: Reservation, members: Iterable[Member]
    ) -> Iterable[ChoiceState]:
        """The state of each choice for claims that these members name, and that are not bound."""
        choices = {choice.claim: choice for choice in reservation.volumes}
        for member in members:
            for name in member.unbound_claims:
                choice = choices.get(name)
                if choice is None:
                    nothing = VolumeChoice(name, "", "", NodeName(""))
                    yield ChoiceState(nothing, Stage.LOST, f"claim {name} has no volume yet")
                else:
                    yield self.state(choice, member.key.namespace)

    def state(self, choice: VolumeChoice, namespace: str) -> ChoiceState:
        """The state of one choice."""
        claim = self.claims.get(ClaimKey(namespace, choice.claim))
        if claim is None or claim.uid != choice.uid or claim.terminating:
            return ChoiceState(choice, Stage.LOST, f"claim {choice.claim} is gone")
        if claim.is_bound:
            if claim.volume in self.volumes:
                return ChoiceState(choice, Stage.BOUND)
            sentence = f"claim {choice.claim} is bound to {claim.volume}, which is not known yet"
            return ChoiceState(choice, Stage.WRITTEN, sentence)
        return self._static(choice, claim) if choice.volume else self._dynamic(choice, claim)

    def _static(self, choice: VolumeChoice, claim: Claim) -> ChoiceState:
        volume = self.volumes.get(choice.volume)
        if volume is None or volume.offer is None:
            sentence = f"volume {choice.volume} for claim {choice.claim} is gone"
            return ChoiceState(choice, Stage.LOST, sentence)
        if volume.is_for(claim):
            sentence = f"the PV controller has not bound claim {choice.claim} to {choice.volume}"
            return ChoiceState(choice, Stage.WRITTEN, sentence)
        if volume.claim is None:
            return ChoiceState(choice, Stage.CHOSEN, f"claim {choice.claim} has no volume yet")
        sentence = f"another claim has volume {choice.volume}, which was for claim {choice.claim}"
        return ChoiceState(choice, Stage.LOST, sentence)

    def _dynamic(self, choice: VolumeChoice, claim: Claim) -> ChoiceState:
        provisioner = f"the provisioner of class {claim.storage_class}"
        if claim.selected_node == choice.node:
            sentence = f"{provisioner} has not made a volume for claim {choice.claim}"
            return ChoiceState(choice, Stage.WRITTEN, sentence)
        if claim.selected_node is None and claim.version == choice.version:
            return ChoiceState(choice, Stage.CHOSEN, f"claim {choice.claim} has no volume yet")
        if claim.selected_node is None:
            sentence = f"{provisioner} made no volume for claim {choice.claim} on {choice.node}"
            return ChoiceState(choice, Stage.LOST, sentence)
        sentence = f"claim {choice.claim} is being provisioned for {claim.selected_node}"
        return ChoiceState(choice, Stage.LOST, sentence)
