"""Gangs of scheduler-plugins' PodGroups (scheduling.x-k8s.io), which many controllers make.

The MPI operator, Kubeflow's trainers and KubeRay make them; pods name them by a label. The
controller of scheduler-plugins writes the status. ``minResources`` is not read: it is the sum of
the requests of the pods, and Tutti places the pods themselves.
"""

from ...model.cluster import OnTimeout
from ...model.keys import ApiKind, GangKey, Uid
from .. import wire
from ..calls import Kind
from ..codec.metadata import named, seconds_of
from .base import GangObject, GangSource

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


class PodGroupSpec(wire.Wire):
    """The spec of a PodGroup, which the controller of a job writes."""

    min_member: int = 1
    schedule_timeout_seconds: int | None = None


class PodGroup(wire.Object):
    """A PodGroup of scheduler-plugins."""

    spec: PodGroupSpec = PodGroupSpec()


def decode_group(group: PodGroup) -> GangObject:
    """Read a PodGroup; after ``scheduleTimeoutSeconds`` the gang says so and keeps waiting."""
    named(group)
    metadata, spec = group.metadata, group.spec
    seconds = spec.schedule_timeout_seconds or 0  # controllers write 0 for none
    return GangObject(
        key=GangKey(metadata.namespace, metadata.name, KIND.api),
        uid=Uid(metadata.uid),
        generation=metadata.generation,
        min_member=max(1, spec.min_member),
        created=seconds_of(metadata.creation_timestamp),
        terminating=metadata.deletion_timestamp is not None,
        timeout_seconds=seconds if seconds > 0 else None,
        on_timeout=OnTimeout.KEEP_WAITING,
        version=metadata.resource_version,
    )


def _gang_of(pod: wire.Pod) -> GangKey | None:
    name = pod.metadata.labels.get(GROUP_LABEL)
    return GangKey(pod.metadata.namespace, name, KIND.api) if name else None


KIND = Kind(
    ApiKind("scheduling.x-k8s.io", "PodGroup"),
    "podgroups",
    PodGroup,
    decode_group,
    version="v1alpha1",
)
SOURCE = GangSource(KIND.crd, 90, _gang_of, (KIND,), names_group=True, is_optional=True)
