"""Annotations of Kueue and KAI-Scheduler about domains of the network, on jobs.

Kueue's are on the templates of pods, and are about the pods of a template. KAI's are on the job,
and are about all of its pods, but those about segments are on templates. Levels are labels of nodes
in both. If a job names a queue of Kueue, Kueue chooses the domains itself, by selectors in the
pods, so its annotations are not read. Source: topology_types.go in apis/kueue/v1beta2 of Kueue;
GetPodGroupMetadata in KAI's defaultgrouper, and the user guide of its segments.
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
KAI_SEGMENT_LEVEL = "kai.scheduler/segment-topology-required-placement"
KAI_SEGMENT_PREFERENCE = "kai.scheduler/segment-topology-preferred-placement"
KAI_SEGMENT_SIZE = "kai.scheduler/segment-size"
KAI_INDEX = "kai.scheduler/pod-index-label"
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
    unsupported = []
    if KAI_SEGMENT_LEVEL in job.annotations:
        unsupported.append(f"annotation {KAI_SEGMENT_LEVEL}: it belongs to a template of pods")
    rules = [_segments_of_kai(template) for template in templates]
    templates = () if QUEUE_LABEL in job.labels else templates
    rules += [_segments_of_kueue(template) for template in templates]
    for rule in rules:
        if isinstance(rule, SegmentRule):
            segments[rule.of.roles[0]] = rule
        elif rule:
            unsupported.append(rule)
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
    return NamedLevels(
        tuple(sorted(rule for rule in required if rule.level)),
        tuple(sorted(rule for rule in preferred if rule.level)),
        tuple(sorted(segments.values())),
        tuple(unsupported),
    )


def _segments_of_kueue(template: PodTemplates) -> SegmentRule | str:
    """The slices of these pods; a sentence, empty if they ask for none, if they have none."""
    if SLICE_LEVEL not in template.annotations:
        return ""
    return _segments(template, SLICE_LEVEL, SLICE_SIZE, template.index_label)


def _segments_of_kai(template: PodTemplates) -> SegmentRule | str:
    """The segments of these pods, as for Kueue; preferred ones keep no gang waiting."""
    values = template.annotations
    if KAI_SEGMENT_LEVEL in values:
        index_label = values.get(KAI_INDEX, template.index_label)
        return _segments(template, KAI_SEGMENT_LEVEL, KAI_SEGMENT_SIZE, index_label)
    if KAI_SEGMENT_SIZE in values and KAI_SEGMENT_PREFERENCE not in values:
        missing = f"there is no annotation {KAI_SEGMENT_LEVEL}"
        return f"annotation {KAI_SEGMENT_SIZE} of {template.role}: {missing}"
    return ""


def _segments(
    template: PodTemplates, level_key: str, size_key: str, index_label: str
) -> SegmentRule | str:
    """The rule that annotations with these keys say; a sentence if they cannot be followed."""
    text, problem = template.annotations.get(size_key, ""), template.no_segments_because
    is_number = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    size = int(text) if is_number else 0
    if not 1 <= size <= _LARGEST:
        problem = f"{size_key} is no number from 1 to {_LARGEST}"
    if problem:
        return f"annotation {level_key} of {template.role}: {problem}"
    rule = DomainRule(template.annotations[level_key], (template.role,))
    return SegmentRule(rule, size, index_label)
