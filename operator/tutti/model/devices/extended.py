"""Extended resources that a DeviceClass backs: the claim that stands for a pod's requests of them.

A pod requests such a resource as if a device plugin counted it. Sources: KEP-5004, and
``createRequestsAndMappings`` of kube-scheduler's DynamicResources.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..keys import Uid
from ..resources import Resources
from .claims import DeviceClaim, DeviceRequest, PodClaim
from .inventory import DeviceClass

IMPLICIT = (
    "deviceclass.resource.kubernetes.io/"  # before the name of a class: a resource of its own
)
NATIVE, QUOTA = "kubernetes.io/", "requests."
CLAIM_OF = "(extended resources)"  # no pod can name a claim of its own so
MOST_REQUESTS = 32  # that the API allows in one claim
_KNOWN = 4096  # names of resources that are cached


class ContainerRequests(NamedTuple):
    """What one container requests of extended resources."""

    position: int  # among the init containers and then the containers of its pod
    container: str
    names: tuple[str, ...]  # of all resources that it requests; sorted
    counts: tuple[tuple[str, int], ...]  # by extended resource, more than 0; sorted
    is_short_lived: bool = False  # an init container that is no sidecar

    def request_names(self) -> Iterator[tuple[str, str]]:
        """Its extended resources, and the names of the requests of a claim for them."""
        counted = dict(self.counts)
        for number, resource in enumerate(self.names):
            if resource in counted:
                yield resource, f"container-{self.position}-request-{number}"

    def request_name(self, resource: str) -> str:
        """The name of the request of a claim for this resource."""
        return dict(self.request_names())[resource]


class RequestMapping(NamedTuple):
    """The request of a claim whose devices a container gets for a resource."""

    container: str
    resource: str
    request: str


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """What the claim of a pod requests, by resource, and which containers get it."""

    counts: tuple[tuple[str, str, int], ...] = ()  # request, resource, devices; sorted
    mappings: tuple[RequestMapping, ...] = ()

    @property
    def devices(self) -> int:
        """How many devices it asks for."""
        return sum(count for _, _, count in self.counts)

    def requests(self, classes: Mapping[str, str]) -> tuple[DeviceRequest, ...]:
        """The requests, with the names of ``classes`` by resource."""
        return tuple(
            DeviceRequest(request, classes[resource], count)
            for request, resource, count in self.counts
        )

    def is_of(self, claim: DeviceClaim) -> bool:
        """Whether a claim requests this, of whichever classes."""
        wanted = tuple((request, count) for request, _, count in self.counts)
        return not claim.unsupported and wanted == tuple(
            sorted((request.name, request.count) for request in claim.requests)
        )


@lru_cache(maxsize=_KNOWN)
def is_extended(resource: str) -> bool:
    """Whether a DeviceClass may back a resource: kube-scheduler's ``IsDRAExtendedResourceName``."""
    if resource.startswith(IMPLICIT):
        return True
    return "/" in resource and NATIVE not in resource and not resource.startswith(QUOTA)


def classes_by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, str]:
    """The name of the class that backs each resource: of several, the newest, then by name."""
    newest = sorted(classes, key=lambda known: (-known.created, known.name))
    backing: dict[str, str] = {}
    for known in newest:
        backing[IMPLICIT + known.name] = known.name
        if known.extended_resource:
            backing.setdefault(known.extended_resource, known.name)
    return backing


def claim_name(pod: str, uid: Uid) -> str:
    """The name of the claim of a pod: no other pod ever has it, and the pod has no other."""
    ending = f"-extended-resources-{uid}"
    return pod[: 253 - len(ending)].rstrip(".-") + ending


def has_claim(claims: Iterable[PodClaim]) -> bool:
    """Whether some of a pod's claims stands for extended resources."""
    return any(claim.name == CLAIM_OF for claim in claims)


def pod_claim(name: str) -> PodClaim:
    """The claim of this name, as a claim that a pod names."""
    return PodClaim(CLAIM_OF, name, is_own=True)


def resources_of(requests: Iterable[ContainerRequests]) -> Collection[str]:
    """The extended resources that containers request."""
    return {resource for of in requests for resource, _ in of.counts}


def amounts(requests: Iterable[ContainerRequests]) -> Resources:
    """The amounts that a pod requests of extended resources, as a node counts them.

    An init container counts together with the sidecars before it.
    """
    total: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for of in requests:
        for resource, count in of.counts:
            if of.is_short_lived:
                peak = total.get(resource, 0) + count
                peaks[resource] = max(peak, peaks.get(resource, 0))
            else:
                total[resource] = total.get(resource, 0) + count
    return Resources.of(total).at_least(Resources.of(peaks))


def without(requests: Resources, resources: Collection[str]) -> Resources:
    """The amounts without those of these resources."""
    return Resources(tuple(amount for amount in requests.amounts if amount[0] not in resources))


def covered(requests: Iterable[ContainerRequests], claim: DeviceClaim) -> Collection[str]:
    """The resources that a claim of a pod stands for."""
    names = {request.name for request in claim.requests}
    return {
        resource for of in requests for resource, request in of.request_names() if request in names
    }


def claim_plan(
    requests: Sequence[ContainerRequests], resources: Collection[str]
) -> ClaimPlan | None:
    """What the claim of a pod requests for these resources; None if no claim can have as much.

    Init containers that are no sidecars run one after the other. Each uses what later containers
    request, and these init containers share one request for what they need beyond that.
    """
    counts: list[tuple[str, str, int]] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        lasting = [*_counted(requests, resource, is_short_lived=False)]
        if len(counts) + len(lasting) > MOST_REQUESTS:
            return None
        own = [(of.request_name(resource), resource, count) for of, count in lasting]
        mappings += [
            RequestMapping(of.container, resource, of.request_name(resource)) for of, _ in lasting
        ]
        passing = [
            (of, *_shared(of, count, lasting, resource))
            for of, count in _counted(requests, resource, is_short_lived=True)
        ]
        # Of equal counts, the first.
        largest = max(passing, key=lambda part: part[2], default=None)
        name = "" if largest is None else largest[0].request_name(resource)
        if largest is not None and largest[2]:
            own.append((name, resource, largest[2]))
        for of, used, missing in passing:
            names = (*used, name) if missing else used
            mappings += [RequestMapping(of.container, resource, request) for request in names]
        counts += own
    if len(counts) > MOST_REQUESTS:
        return None
    return ClaimPlan(tuple(sorted(counts)), tuple(mappings))


def _counted(
    requests: Iterable[ContainerRequests], resource: str, *, is_short_lived: bool
) -> Iterator[tuple[ContainerRequests, int]]:
    for of in requests:
        if of.is_short_lived is is_short_lived and (count := dict(of.counts).get(resource)):
            yield of, count


def _shared(
    init: ContainerRequests,
    count: int,
    lasting: Iterable[tuple[ContainerRequests, int]],
    resource: str,
) -> tuple[tuple[str, ...], int]:
    """The requests of later containers that an init container uses, and how many it lacks then."""
    used: list[str] = []
    missing = count
    for of, later in lasting:
        if of.position > init.position and missing > 0:
            used.append(of.request_name(resource))
            missing -= later
    return tuple(used), max(missing, 0)
