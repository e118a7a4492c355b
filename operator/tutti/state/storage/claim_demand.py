"""What the claims of one pod demand of its node, and what keeps the pod waiting.

Sources: kube-scheduler's VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ...filters.volume_supply import NO_SUPPLY
from ...kube.codec.shapes import CLAIM_FIELD, NODE_NAME
from ...model.cluster import BoundBy, Member
from ...model.inter_pod import CLUSTER, AffinityTerm, Labels, PodSelector, Requirement
from ...model.keys import NodeName, Uid
from ...model.resources import NOTHING, Resources
from ...model.shapes import NodeTerm, Shape
from ...model.volumes import (
    Claim,
    ClaimKey,
    Reach,
    Volume,
    VolumeChoice,
    VolumeRequest,
    attaching,
    one_of_those_with,
    sorted_reach,
)
from .attach_limits import AttachLimits, Handle
from .claim_users import ClaimUsers
from .volume_index import VolumeIndex

COUNTED = "unbound, and named by several pods; PersistentVolumes are counted for it"
OF_KUBE_SCHEDULER = "unbound, and named by pods that kube-scheduler binds, too"
UNLISTED = "claims and volumes are still being listed"
KNOWN = 16384  # shapes that are cached


class ClaimDemands:
    """Adds the demands of claims to pods, from what is known of claims and volumes."""

    def __init__(
        self,
        known: VolumeIndex,
        limits: AttachLimits,
        pods: ClaimUsers,
        chosen: Mapping[ClaimKey, VolumeChoice],
        is_chosen_for: Callable[[Claim, Uid], bool],
        *,
        binds: bool,
    ) -> None:
        """``chosen`` has the choices of standing Reservations.

        ``is_chosen_for`` says whether a Reservation of this pod has chosen for the claim. ``binds``
        is as of ``ClaimIndex``.
        """
        self._known = known
        self._limits = limits
        self._pods = pods
        self._chosen = chosen
        self._is_chosen_for = is_chosen_for
        self._binds = binds
        self.supply = NO_SUPPLY
        self.is_supply_outdated = False
        self.knows_capacities = False  # they were listed once

    def with_volumes(self, member: Member) -> Member:
        """The pod with the demands of its claims, and the problems that keep it waiting."""
        demand = _Demand()
        for name in member.claims:
            self._add_claim(demand, ClaimKey(member.key.namespace, name), member)
        if member.bound_by is BoundBy.KUBE_SCHEDULER:
            demand.unmodelled.clear()  # kube-scheduler models them
        # A pod that has a node frees no volume that others name.
        counted = demand.handles if member.node is None else demand.handles - demand.shared
        drivers = Counter(of.driver for of in counted)
        shape = _shared_shape(
            member.shape,
            sorted_reach(demand.reach),
            Resources.total(
                [Resources.of({attaching(of): n for of, n in drivers.items()}), *demand.amounts]
            ),
            tuple(sorted(demand.nodes)),
            tuple(_apart(member.key.namespace, label) for label in demand.labels),
            shares_volumes=member.node is None and bool(demand.shared),
        )
        return replace(
            member,
            shape=shape,
            labels=_with_labels(member.labels, demand.labels) if demand.labels else member.labels,
            volume_problems=tuple(demand.problems),
            unsupported_fields=tuple(sorted({*member.unsupported_fields, *demand.unmodelled})),
            unbound_claims=tuple(demand.unbound),
        )

    def _add_claim(self, demand: "_Demand", key: ClaimKey, member: Member) -> None:
        """Add what one claim of a pod demands."""
        is_bound_by_us = member.bound_by is BoundBy.TUTTI
        claim, volume = self._known.claim(key), self._known.volume_of(key)
        if claim is not None and claim.for_one_pod:
            self._keep_apart(demand, claim, member)
        if claim is not None and key.name in member.own_claims and claim.owner != member.uid:
            demand.problems.append(f"claim {key.name} is not of this pod")
        elif claim is not None and volume is not None and not _problem(claim, volume):
            demand.reach.update(volume.reach)
            if volume.in_tree:
                demand.unmodelled.add(f"{CLAIM_FIELD} ({volume.in_tree})")
            self._attach(demand, claim, member.uid)
        elif claim is not None and self._is_for_other_pods(claim, member):
            demand.problems.append(f"claim {key.name} is being bound for other pods that name it")
        elif claim is not None and is_bound_by_us and self._is_arriving(claim):
            demand.unbound.append(key.name)
        elif claim is not None and self._known.waits_for_a_pod(claim):
            self._add_waiting_claim(demand, claim, member)
        else:
            demand.problems.append(f"claim {key.name} {_problem(claim, volume)}")

    def _choice(self, claim: Claim) -> VolumeChoice | None:
        """What a standing Reservation has chosen for the claim, and not for an older namesake."""
        choice = self._chosen.get(claim.key)
        return choice if choice is not None and choice.uid == claim.uid else None

    def _is_shared(self, claim: Claim, member: Member) -> bool:
        """Whether several pods name the claim, and may use it at a time."""
        others = self._pods.other_users([claim.key], member.uid)
        return any(others) and not claim.for_one_pod

    def _is_for_other_pods(self, claim: Claim, member: Member) -> bool:
        """Whether a pod waits, and Reservations of others that share the claim chose for it."""
        return (
            member.node is None
            and self._choice(claim) is not None
            and not self._is_chosen_for(claim, member.uid)
            and self._is_shared(claim, member)
        )

    def _is_arriving(self, claim: Claim) -> bool:
        """Whether a claim got the volume that Tutti chose, and no watch has shown it yet."""
        is_sound = claim.is_bound and not (claim.is_lost or claim.terminating)
        return is_sound and self._choice(claim) is not None

    def _add_waiting_claim(self, demand: "_Demand", claim: Claim, member: Member) -> None:
        """Add what a claim demands that is bound only once the pod has a node.

        Tutti does not bind the claims of pods that kube-scheduler binds. But such a pod is pinned,
        so its node has to be one where kube-scheduler can bind the claim. Where Tutti does not
        model that, kube-scheduler may refuse the node.
        """
        request, choice = claim.request, self._choice(claim)
        is_bound_by_us = member.bound_by is BoundBy.TUTTI
        if is_bound_by_us and not self._binds:
            demand.unmodelled.add(f"{CLAIM_FIELD} (unbound, WaitForFirstConsumer)")
            return
        if is_bound_by_us and choice is None and self._pods.is_of_kube_scheduler(claim.key):
            demand.unmodelled.add(f"{CLAIM_FIELD} ({OF_KUBE_SCHEDULER})")
            return
        if request is None or request.selector is None:
            demand.problems.append(f"claim {claim.key.name} has a selector that cannot be read")
            return
        if is_bound_by_us:
            demand.unbound.append(claim.key.name)
        self._attach(demand, claim, member.uid)
        volume = self._known.volume_for(claim)
        if volume is None and choice is not None and choice.volume:
            volume = self._known.volume(choice.volume)
            if volume is None or not volume.is_available:
                demand.problems.append(f"claim {claim.key.name} lost volume {choice.volume}")
                return
        if volume is not None:
            demand.reach.update(volume.reach)
            return
        is_shared = self._is_shared(claim, member)
        # A Reservation may have pods that share a claim on other nodes than the selected one.
        if claim.selected_node is not None and not self._is_chosen_for(claim, member.uid):
            demand.nodes.add(claim.selected_node)
        # A Reservation names the node, or a pod of kube-scheduler may choose it.
        if choice is None and (is_bound_by_us or not is_shared):
            self._add_need(demand, claim, request, is_shared=is_shared)

    def _add_need(
        self, demand: "_Demand", claim: Claim, request: VolumeRequest, *, is_shared: bool
    ) -> None:
        """Add what a claim needs of the node of its pod, which may be any node so far.

        Pods that share a claim need no PersistentVolume each, so these cannot be counted for them.
        """
        need = self.supply.needs.get(request)
        if need is None or (self._known.needs_capacities(claim) and not self.knows_capacities):
            self.is_supply_outdated = True
            demand.problems.append(UNLISTED)
        elif need.unmodelled:
            demand.unmodelled.add(f"{CLAIM_FIELD} ({need.unmodelled})")
        elif claim.selected_node is not None:
            demand.reach.update(need.provisioned)
        elif is_shared and need.amounts != NOTHING:
            demand.unmodelled.add(f"{CLAIM_FIELD} ({COUNTED})")
        else:
            demand.reach.update(need.reach)
            demand.amounts.append(need.amounts)

    def pledged(self, keys: Iterable[ClaimKey]) -> Resources:
        """The volumes that these claims of a node's pods take, once kube-scheduler binds them."""
        claims = filter(None, map(self._known.claim, keys))
        needs = (
            self.supply.needs.get(claim.request)
            for claim in claims
            if claim.request is not None
            and claim.selected_node is None
            and self._known.waits_for_a_pod(claim)
            and self._known.volume_for(claim) is None
        )
        return Resources.total([need.amounts for need in needs if need is not None])

    def _keep_apart(self, demand: "_Demand", claim: Claim, member: Member) -> None:
        """Add what lets at most one pod with this claim have a node.

        While a pod has one, the others wait for its end. Of those that wait, a rule between pods
        lets one start.
        """
        users = self._pods.with_node(claim.key, member.uid)
        if users:
            node, name = min((user.node or "", user.name) for user in users)
            who = f"pod {name}" if name else "a pod"
            demand.problems.append(
                f"claim {claim.key.name} is for one pod (ReadWriteOncePod), "
                f"and {who} on node {node} has it"
            )
        elif member.node is None and any(self._pods.other_users([claim.key], member.uid)):
            demand.labels.append(one_of_those_with(claim.key.name))

    def _attach(self, demand: "_Demand", claim: Claim, uid: Uid) -> None:
        """Add the volume that is attached for a claim, if its driver has a limit somewhere."""
        handle = self._known.handle(claim.key)
        if handle is None or handle.driver not in self._limits.limited:
            return
        demand.handles.add(handle)
        keys = self._known.sharing([claim.key])
        if claim.for_one_pod:
            keys.discard(claim.key)  # only one of the pods that name it has a node at a time
        if any(self._pods.other_users(keys, uid)):
            demand.shared.add(handle)


@dataclass(slots=True)
class _Demand:
    """What the claims of a pod demand, as they are added one by one."""

    problems: list[str] = field(default_factory=list)
    unmodelled: set[str] = field(default_factory=set)
    reach: set[Reach] = field(default_factory=set)
    handles: set[Handle] = field(default_factory=set)  # that limits count
    shared: set[Handle] = field(default_factory=set)  # those that other pods name, too
    amounts: list[Resources] = field(default_factory=list)
    nodes: set[NodeName] = field(default_factory=set)  # that volumes are being provisioned for
    unbound: list[str] = field(default_factory=list)  # names of claims
    labels: list[str] = field(default_factory=list)  # by which rules keep pods apart


def _problem(claim: Claim | None, volume: Volume | None) -> str:
    """Why no pod that names the claim can run anywhere; empty if there is no problem."""
    if claim is None:
        return "does not exist"
    if claim.is_lost:
        return f"is lost: volume {claim.volume} is gone"
    if claim.terminating:
        return "is being deleted"
    if not claim.is_bound:
        return "is not bound yet"
    return f"is bound to volume {claim.volume}, which does not exist" if volume is None else ""


def _with_labels(labels: Labels, more: Iterable[str]) -> Labels:
    return tuple(sorted({*labels, *((label, "") for label in more)}))


def _apart(namespace: str, label: str) -> AffinityTerm:
    """At most one pod of the cluster that has this label has a node."""
    return AffinityTerm(CLUSTER, PodSelector((Requirement(label, "In", ("",)),), (namespace,)))


@lru_cache(maxsize=KNOWN)
def _shared_shape(
    shape: Shape,
    reach: tuple[Reach, ...],
    amounts: Resources,
    nodes: tuple[NodeName, ...],
    apart: tuple[AffinityTerm, ...],
    *,
    shares_volumes: bool,
) -> Shape:
    """The shape with these amounts that reaches its volumes, and runs on all of these nodes.

    Its pods also keep ``apart`` from pods that use the same claims.
    """
    if not (reach or amounts.amounts or nodes or apart):
        return shape
    required, rules = shape.required, shape.rules
    if nodes:
        fields = tuple(Requirement(NODE_NAME, "In", (node,)) for node in nodes)
        terms = (NodeTerm(),) if required is None else required
        required = tuple(
            replace(term, fields=tuple(dict.fromkeys((*term.fields, *fields)))) for term in terms
        )
    if apart:
        anti_affinity = tuple(sorted({*rules.anti_affinity, *apart}, key=str))
        rules = replace(rules, anti_affinity=anti_affinity)
    return replace(
        shape,
        requests=shape.requests + amounts,
        volume_reach=reach,
        required=required,
        rules=rules,
        shares_volumes=shares_volumes,
    )
