"""Annotations of Kueue and KAI-Scheduler about domains of the network, on jobs.

Kueue's are on the templates of pods, and are about the pods of a template. KAI's are on the job,
and are about all of its pods. Levels are labels of nodes in both. If a job names a queue of Kueue,
Kueue chooses the domains itself, by selectors in the pods, so its annotations are not read. Source:
topology_types.go in apis/kueue/v1beta2 of Kueue; GetPodGroupMetadata in KAI's defaultgrouper.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...model.inter_pod import DomainRule, SegmentRule
from .. import wire

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
TOGETHER = "kueue.x-k8s.io/podset-group-name"
SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
SLICES_IN_LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"
KAI_SEGMENTS = "kai.scheduler/segment-topology-required-placement"
_LARGEST, _DIGITS = 5_000, 4  # of a segment, as in a PodGroup


class PodTemplates(NamedTuple):
    """The template of the pods of a role."""

    role: str
    annotations: Mapping[str, str]
    # The label with the index of each pod in its role, if pods have one, and why there are no
    # segments of these pods, if there are none.
    index_label: str = ""
    no_segments_because: str = ""


class NamedLevels(NamedTuple):
    """The rules, as a gang has them, and the annotations that cannot be followed."""

    same_domain: tuple[DomainRule, ...] = ()
    preferred_domains: tuple[DomainRule, ...] = ()
    segments: tuple[SegmentRule, ...] = ()
    unsupported: tuple[str, ...] = ()


def levels_of(job: wire.Metadata, templates: Iterable[PodTemplates]) -> NamedLevels:
    """What the annotations of a job and of the templates of its pods say."""
    required = {DomainRule(job.annotations.get(KAI_REQUIRED, ""))}
    preferred = {DomainRule(job.annotations.get(KAI_PREFERRED, ""))}
    segments: dict[str, SegmentRule] = {}  # by role
    templates = tuple(templates)
    marked = (job.annotations, *(template.annotations for template in templates))
    unsupported = [f"annotation {KAI_SEGMENTS}"] if any(KAI_SEGMENTS in m for m in marked) else []
    templates = () if QUEUE_LABEL in job.labels else templates
    together: dict[str, set[str]] = {}  # roles, by the name of their group
    for template in templates:
        together.setdefault(template.annotations.get(TOGETHER, ""), set()).add(template.role)
    groups = {name: tuple(sorted(roles)) for name, roles in together.items()}
    for template in templates:
        values = template.annotations
        name = values.get(TOGETHER)
        roles = groups[name] if name else (template.role,)
        required.add(DomainRule(values.get(REQUIRED, ""), roles))
        preferred.add(DomainRule(values.get(PREFERRED, ""), roles))
        if SLICES_IN_LAYERS in values:
            unsupported.append(f"annotation {SLICES_IN_LAYERS} of {template.role}")
        if SLICE_LEVEL in values:
            problem = template.no_segments_because
            text = values.get(SLICE_SIZE, "")
            is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
            size = int(text) if is_number else 0
            if not 1 <= size <= _LARGEST:
                problem = f"{SLICE_SIZE} is no number from 1 to {_LARGEST}"
            if problem:
                unsupported.append(f"annotation {SLICE_LEVEL} of {template.role}: {problem}")
            else:
                rule = DomainRule(values[SLICE_LEVEL], (template.role,))
                segments[template.role] = SegmentRule(rule, size, template.index_label)
    return NamedLevels(
        tuple(sorted(rule for rule in required if rule.level)),
        tuple(sorted(rule for rule in preferred if rule.level)),
        tuple(sorted(segments.values())),
        tuple(unsupported),
    )
