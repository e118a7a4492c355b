"""Writes the gang and the Spark fields of a pod into a dump, and reads them back."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..kube import wire
from ..kube.codec.encode import moment
from ..kube.codec.hand_over import HANDED_OVER_AT
from ..kube.gang_sources import GangObject
from ..kube.gang_sources.spark import (
    APP_LABEL,
    PROPERTIES,
    PROPERTIES_VOLUME,
    SPARK_LABEL,
    TEMPLATE,
    TEMPLATE_VOLUME,
    TUTTI_GROUP_LABEL,
    TUTTI_ROLE_LABEL,
    role_of,
)
from ..model.applications import DRIVER, ApplicationPod, ConfigMapKey
from ..model.cluster import Gang, MadeFor, Member
from ..model.devices.claims import is_sharing
from ..model.keys import POD_GROUP, ApiKind, GangKey, Uid
from ..model.volumes import claim_for_one_pod

Raw = dict[str, Any]

# Annotations in dumps only. Every object that declares a gang is written as a PodGroup, with its
# real kind in an annotation.
DECLARED_BY = "tutti.dev/declared-by"  # kind.group of the declaring object, if not Tutti's PodGroup
GANG = "tutti.dev/gang"  # kind.group/name of the gang of a pod, if not of Tutti's PodGroup
OTHER_GANGS = "tutti.dev/other-gangs"  # the other gangs that a pod names
RUN = "tutti.dev/run"  # the number of the run that a pod was created for, unless it is 0
MADE_FOR = "tutti.dev/made-for"  # kind.group/uid of the object that a pod was made for, if known

# Fields of other declaring kinds that a PodGroup does not have: see ``_Declared``.
DECLARATION = "tutti.dev/declaration"

UNCONFIGURED = "tutti.dev/unconfigured"  # in dumps alone: why the size of its gang is unknown

_RUN_DIGITS = 9


class _Declared(wire.Object):
    """The fields of other declaring kinds that a PodGroup does not have."""

    priority: int | None = None
    unsupported_fields: tuple[str, ...] = ()
    needs_equal_members: bool = False
    has_later_stages: bool = False
    other_stages: tuple[str, ...] = ()


def declaration(gang: Gang) -> Raw:
    """The annotations of a PodGroup that stands for an object of another kind."""
    if gang.key.kind == POD_GROUP:
        return {}
    body: Raw = {}
    if gang.priority_value is not None:
        body["priority"] = gang.priority_value
    if gang.unsupported_fields:
        body["unsupportedFields"] = gang.unsupported_fields
    if gang.needs_equal_members:
        body["needsEqualMembers"] = True
    if gang.has_later_stages:
        body["hasLaterStages"] = True
    if gang.other_stages:
        body["otherStages"] = gang.other_stages
    marks = {DECLARED_BY: str(gang.key.kind)}
    return {**marks, DECLARATION: json.dumps(body)} if body else marks


def declared(group: GangObject, annotations: Mapping[str, str]) -> GangObject:
    """The gang with the fields from its annotations in a dump.

    Raises:
        BadObject: an annotation cannot be read.
    """
    if (kind := annotations.get(DECLARED_BY)) is None:
        return group
    declaration_body = wire.parse_one(annotations.get(DECLARATION, "{}"), _Declared)
    return replace(
        group,
        key=group.key._replace(kind=kind_of(kind)),
        priority_value=declaration_body.priority,
        unsupported_fields=declaration_body.unsupported_fields,
        needs_equal_members=declaration_body.needs_equal_members,
        has_later_stages=declaration_body.has_later_stages,
        other_stages=declaration_body.other_stages,
    )


def labels(value: Member) -> Raw:
    """The labels of a pod, and the labels from which the decoder reads its gang and role."""
    pod_labels = {
        name: text
        for name, text in value.labels
        if not (is_sharing(name) or claim_for_one_pod(name))
    }
    if value.is_driver:
        pod_labels[SPARK_LABEL] = DRIVER
    if value.application is not None and value.application.is_spark:
        pod_labels |= {SPARK_LABEL: value.application.role, APP_LABEL: value.application.app}
    elif value.group and value.group_kind == POD_GROUP:
        pod_labels[TUTTI_GROUP_LABEL] = value.group
    if value.role != role_of(pod_labels):
        pod_labels[TUTTI_ROLE_LABEL] = value.role
    return pod_labels


def marks(value: Member) -> Raw:
    """The annotations of a pod: its gangs, their size or why that is unknown, and its run."""
    annotations = {} if value.application is None else dict(value.application.annotations)
    if value.size_unknown_because:
        annotations[UNCONFIGURED] = value.size_unknown_because
    if value.group and value.group_kind != POD_GROUP:
        annotations[GANG] = _text(value.gang)
    if value.other_gangs:
        annotations[OTHER_GANGS] = ",".join(map(_text, value.other_gangs))
    if value.run:
        annotations[RUN] = str(value.run)
    if value.made_for is not None:
        annotations[MADE_FOR] = f"{value.made_for.kind}/{value.made_for.uid}"
    if value.handed_over_at is not None:
        annotations[HANDED_OVER_AT] = moment(value.handed_over_at)
    return annotations


def read_back(value: Member, annotations: Mapping[str, str]) -> Member:
    """The pod with the fields from its annotations in a dump."""
    space, gang_texts = value.key.namespace, annotations.get(OTHER_GANGS, "")
    other_gangs = [_key(space, text) for text in gang_texts.split(",") if text]
    run = annotations.get(RUN, "")
    value = replace(
        value,
        run=int(run) if run.isdecimal() and len(run) <= _RUN_DIGITS else value.run,
        made_for=_made_for(annotations[MADE_FOR]) if MADE_FOR in annotations else value.made_for,
        size_unknown_because=annotations.get(UNCONFIGURED, ""),
        other_gangs=tuple(other_gangs) or value.other_gangs,
    )
    if GANG not in annotations:
        return value
    gang = _key(space, annotations[GANG])
    return replace(value, group=gang.name, group_kind=gang.kind)


def kind_of(text: str) -> ApiKind:
    """A kind as ``ApiKind`` prints it."""
    kind, _, group = text.partition(".")
    return ApiKind(group, kind)


def _text(key: GangKey) -> str:
    return f"{key.kind}/{key.name}"


def _made_for(text: str) -> MadeFor:
    kind, _, uid = text.partition("/")
    return MadeFor(kind_of(kind), Uid(uid))


def _key(namespace: str, text: str) -> GangKey:
    kind, _, name = text.partition("/")
    return GangKey(namespace, name, kind_of(kind))


def mount(spec: Raw, spark: ApplicationPod | None) -> None:
    """Add the ConfigMaps that a driver mounts to its spec."""
    if spark is not None:
        _mount(spec, PROPERTIES_VOLUME, PROPERTIES, spark.properties)
        _mount(spec, TEMPLATE_VOLUME, TEMPLATE, spark.template)


def _mount(spec: Raw, name: str, file: str, key: ConfigMapKey | None) -> None:
    """Add a volume with a text of a ConfigMap to the spec of a pod."""
    if key is not None:
        source = {"name": key.config_map, "items": [{"key": key.key, "path": file}]}
        spec.setdefault("volumes", []).append({"name": name, "configMap": source})
