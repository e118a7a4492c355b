"""Gangs of KubeRay's RayClusters (ray.io): the head, and the workers that the cluster needs.

KubeRay makes PodGroups once and never updates them, so Tutti reads the RayCluster itself. Without
the autoscaler, a cluster needs all pods that KubeRay makes (``GetWorkerGroupDesiredReplicas``).
With the autoscaler, it needs the minimum of each worker group, and further workers are extra
members. RayJobs and RayServices make RayClusters. KubeRay writes the status.
``topology_annotations`` says which levels a RayCluster names.
"""

from collections.abc import Iterator

from ...model.cluster import MadeFor, Role
from ...model.keys import ApiKind, GangKey, Uid
from .. import wire
from ..calls import Kind
from ..codec.metadata import named, seconds_of
from . import coscheduling, volcano
from .base import MOST_ROLES, GangObject, GangSource
from .topology_annotations import PodTemplates, levels_of

CLUSTER_LABEL = "ray.io/cluster"
TYPE_LABEL = "ray.io/node-type"
GROUP_LABEL = "ray.io/group"
TYPES = ("head", "worker")  # the node types of members; "redis-cleanup" is not one of them
HEAD = "headgroup"
_ANY = 2**31 - 1


class Group(wire.Wire):
    """The head, or a group of equal workers."""

    template: wire.Object = wire.Object()  # only its annotations are read


class WorkerGroup(Group):
    """A group of equal workers."""

    group_name: str = ""
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int = 1  # pods of each replica
    suspend: bool | None = None


class RayClusterSpec(wire.Wire):
    """The spec of a RayCluster."""

    enable_in_tree_autoscaling: bool | None = None
    head_group_spec: Group = Group()
    worker_group_specs: tuple[WorkerGroup, ...] = ()


class RayCluster(wire.Object):
    """A RayCluster."""

    spec: RayClusterSpec = RayClusterSpec()


def decode_cluster(cluster: RayCluster) -> GangObject:
    """Read a RayCluster; while it is suspended it has no pods, so nothing starts."""
    named(cluster)
    metadata, spec = cluster.metadata, cluster.spec
    roles = [Role(HEAD, 1)]
    roles += [
        Role(group.group_name, _min_pods(group, is_scaled=bool(spec.enable_in_tree_autoscaling)))
        for group in spec.worker_group_specs
    ]
    templates = [(HEAD, spec.head_group_spec.template)]
    templates += [(group.group_name, group.template) for group in spec.worker_group_specs]
    has_too_many = len(roles) > MOST_ROLES
    annotated = [PodTemplates(role, pods.metadata.annotations) for role, pods in templates]
    levels = levels_of(metadata, [] if has_too_many else annotated)
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name, KIND.api),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=sum(role.min_member for role in roles),
        roles=tuple(sorted(roles, key=lambda role: role.name))[:MOST_ROLES],
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        unsupported_fields=(
            *(["more than 99 worker groups"] if has_too_many else []),
            *levels.unsupported,
        ),
        same_domain=levels.same_domain,
        preferred_domains=levels.preferred_domains,
        segments=levels.segments,
        version=metadata.resource_version,
    )


def _min_pods(group: WorkerGroup, *, is_scaled: bool) -> int:
    """How many pods of a worker group the cluster needs to start."""
    if group.suspend:
        return 0
    least = group.min_replicas or 0
    most = _ANY if group.max_replicas is None else group.max_replicas
    desired = least if is_scaled or group.replicas is None else group.replicas
    return max(0, least if desired < least else min(desired, most)) * max(1, group.num_of_hosts)


def _gang_of(pod: wire.Pod) -> GangKey | None:
    labels = pod.metadata.labels
    name = labels.get(CLUSTER_LABEL)
    if not name or labels.get(TYPE_LABEL) not in TYPES:
        return None
    return GangKey(pod.metadata.namespace, name, KIND.api)


def _same_gangs(pod: wire.Pod) -> Iterator[GangKey]:
    """The PodGroups that KubeRay makes of the cluster for other schedulers, and the pod names."""
    metadata = pod.metadata
    yield GangKey(metadata.namespace, metadata.labels[CLUSTER_LABEL], coscheduling.KIND.api)
    group = metadata.annotations.get(volcano.GROUP_ANNOTATION, "")
    if group.startswith("ray-") and group.endswith("-pg"):
        yield GangKey(metadata.namespace, group, volcano.KIND.api)


def _role_of(pod: wire.Pod) -> str:
    return pod.metadata.labels.get(GROUP_LABEL, "")


def _made_for(pod: wire.Pod) -> MadeFor | None:
    owners = pod.metadata.owner_references
    clusters = (owner for owner in owners if owner.controller and owner.kind == KIND.api.kind)
    return next((MadeFor(KIND.api, Uid(owner.uid)) for owner in clusters if owner.uid), None)


KIND = Kind(
    ApiKind("ray.io", "RayCluster"), "rayclusters", RayCluster, decode_cluster, version="v1"
)
SOURCE = GangSource(
    KIND.crd,
    40,
    _gang_of,
    (KIND,),
    role_of=_role_of,
    made_for=_made_for,
    same_gangs=_same_gangs,
    names_group=True,
    is_optional=True,
)
