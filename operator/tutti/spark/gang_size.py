"""How large the gang of a Spark application is: one function for each contract that declares it.

All return an ``ApplicationSize``, and ``group`` makes a PodGroup from it. Nothing is guessed: a
value that cannot be read is a ``BadProperty`` with name and value.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..dump import encode
from ..kube.codec.encode import API_VERSION
from ..kube.codec.inter_pod import is_label
from ..kube.codec.shapes import DEVICE_CLAIMS
from ..kube.gang_sources import spark as marks
from ..model import ports
from ..model.applications import DRIVER, EXECUTOR, ApplicationPod
from ..model.cluster import Member
from . import pod_templates, properties
from .application_size import ApplicationSize
from .conf import BadProperty, Conf, whole
from .legacy_contracts import by_labels, by_palantir
from .manifests import MOST_MEMBERS
from .resources import SparkApplication, Version, app

VERSION_LABEL = "spark-version"
UNSAID = Version(3, 2)  # assumed without that label, which Spark gives its pods from 3.3 on
FILLED_IN = Version(4, 0)  # from this version on, labels have placeholders: SPARK-47730
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})([.-].*)?")
OPERATOR = "sparkoperator.k8s.io/"
_CARRIED = ("spark-app-name", f"{OPERATOR}app-name")  # copied from the driver to the PodGroup
# Labels that are equal on all pods of an application (KubernetesConf).
_SHARED = frozenset({*marks.APP_LABELS, "spark-app-name", VERSION_LABEL})
# Executors are numbered from 1. So a selector of a certain number does not match a placeholder, and
# a selector of any number does.
_STANDING_IN = {marks.NUMBER_LABEL: "0"}
MOST_LABELS = 64  # of a template, by the CRD of PodGroups
_CLAIMS = "spark.kubernetes.executor.volumes.persistentVolumeClaim."
_STEPS = "spark.kubernetes.executor.pod.featureSteps"
LENGTH_LIMIT = 262_144  # characters of properties; real texts have a few thousand
NOT_HELD = "tutti.dev/not-held"  # annotation of a PodGroup: what its template cannot express

Raw = dict[str, Any]


def declared_size(member: Member, spark: ApplicationPod, scheduler: str) -> ApplicationSize | None:
    """The size that a pod declares by annotations or labels; None if only its properties have it.

    Raises:
        BadProperty: an annotation or label is missing, or cannot be read.
    """
    if not spark.is_driver:
        return by_annotation(member, spark, scheduler)
    size = by_palantir(spark) or by_labels(member)
    if size is None:
        return None
    return replace(size, template={**size.template, "labels": _labels(member)})


def by_properties(
    text: str, template: str | None, driver: Member, scheduler: str
) -> ApplicationSize:
    """The size by Spark's own properties, and by the pod template that the driver mounts.

    Raises:
        BadProperty: a property cannot be read, or its effect cannot be known.
        BadProperties: the text is not a properties file.
    """
    if len(text) > LENGTH_LIMIT:
        raise properties.BadProperties(
            f"it has {len(text):,} characters, and {LENGTH_LIMIT:,} are read at most"
        )
    values, version = properties.read(text), _version(driver)
    application, conf = app(values, version), Conf(values)
    if _STEPS in conf:
        conf.refuse(_STEPS, "what it adds to executors cannot be known: name a PodGroup for them")
    claims = _claims(conf)
    labels, resources = _labels(driver), application.executor
    executor_scheduler = resources.scheduler
    if version >= FILLED_IN:
        resources = replace(resources, labels=_filled_in(resources.labels, labels))
    if pod_templates.FILE in conf:
        if template is None:
            conf.refuse(pod_templates.FILE, "the driver mounts no such template")
        container = conf.text(pod_templates.CONTAINER) or ""
        merged = pod_templates.merged(resources, template, container, labels)
        raw, claims = merged.template, {*claims, *merged.claims}
        executor_scheduler = executor_scheduler or merged.scheduler
    else:
        raw = pod_templates.plain(resources, labels)
    if not executor_scheduler and _is_operators(driver):
        executor_scheduler = scheduler  # the webhook of the operator sets it in its pods
    if executor_scheduler != scheduler or marks.TUTTI_GROUP_LABEL in raw["labels"]:
        # The executors have another scheduler or another group, so the driver is alone.
        return ApplicationSize(0, None, {})
    if (role := raw["labels"].get(marks.TUTTI_ROLE_LABEL, EXECUTOR)) != EXECUTOR:
        why = f"executors have the role {EXECUTOR}: name a PodGroup for them"
        raise BadProperty(f"label {marks.TUTTI_ROLE_LABEL}", role, why)
    return ApplicationSize(application.executors, _most(application), raw, tuple(sorted(claims)))


def by_annotation(executor: Member, spark: ApplicationPod, scheduler: str) -> ApplicationSize:
    """The size by the annotations of an executor in client mode; all executors are like this one.

    Raises:
        BadProperty: a number cannot be read, or a template cannot express a field of the executor.
    """
    annotations = dict(spark.annotations)
    if marks.EXECUTORS not in annotations:
        raise BadProperty(marks.EXECUTORS, "", f"is not set, but {marks.MOST_EXECUTORS} is")
    count = whole(marks.EXECUTORS, annotations[marks.EXECUTORS])
    most = None
    if marks.MOST_EXECUTORS in annotations:
        most = whole(marks.MOST_EXECUTORS, annotations[marks.MOST_EXECUTORS])
    if count == 0:
        raise BadProperty(marks.EXECUTORS, "0", "a gang has one member at least")
    if unsupported := _unsupported(executor):
        why = f"the executor uses {', '.join(unsupported)}, {pod_templates.UNHELD}"
        raise BadProperty(marks.EXECUTORS, annotations[marks.EXECUTORS], why)
    spec = encode.member(replace(executor, application=None), scheduler, 0.0)["spec"]
    template: Raw = {"resources": spec["containers"][0]["resources"]["requests"]}
    fields_of_spec = ("nodeSelector", *pod_templates.PARTS)
    template |= {name: spec[name] for name in fields_of_spec if name in spec}
    template["labels"] = {**dict(executor.labels), **_STANDING_IN}
    return ApplicationSize(count, most, template, executor.claims)


def _unsupported(executor: Member) -> tuple[str, ...]:
    """The fields of an executor that restrict its nodes and that no role template can express."""
    shape = executor.shape
    uses = {
        pod_templates.PORTS: any(ports.is_port(name) for name, _ in shape.requests.amounts),
        pod_templates.NUMBERED: pod_templates.is_numbered(shape.rules),
    }
    return (
        *executor.unsupported_fields,
        *((DEVICE_CLAIMS,) if executor.device_claims else ()),
        *(field for field, is_in_use in uses.items() if is_in_use),
    )


def group(member: Member, spark: ApplicationPod, size: ApplicationSize) -> Raw:
    """The PodGroup of an application, owned by the pod that declares it.

    Raises:
        BadProperty: a gang cannot have so many members, or a pod cannot have such labels.
    """
    labels = {name: value for name, value in member.labels if name in _CARRIED}
    reference = {"apiVersion": "v1", "kind": "Pod", "name": member.key.name, "uid": member.uid}
    metadata: Raw = {
        "name": spark.app,
        "namespace": member.key.namespace,
        "labels": labels,
        "ownerReferences": [reference],
    }
    if size.claims:
        metadata["annotations"] = {NOT_HELD: f"claims of executors: {', '.join(size.claims)}"}
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": _spec(size, drivers=1 if spark.is_driver else 0),
    }


def _spec(size: ApplicationSize, drivers: int) -> Raw:
    n, most = size.executors, size.most
    if n + drivers > MOST_MEMBERS:
        raise BadProperty("executors", str(n), f"a gang has at most {MOST_MEMBERS:,} members")
    if n == 0:
        return {"minMember": 1}  # executors that are created later start as room allows
    _demand_labels(size.template.get("labels", {}))
    role: Raw = {"name": EXECUTOR, "minMember": n, "template": dict(size.template)}
    if most is not None and most <= MOST_MEMBERS:
        role["maxMember"] = max(n, most)
    return {"roles": [*[{"name": DRIVER, "minMember": 1}] * drivers, role]}


def _demand_labels(labels: Mapping[str, str]) -> None:
    if len(labels) > MOST_LABELS:
        why = f"a template has at most {MOST_LABELS}"
        raise BadProperty("labels of executors", str(len(labels)), why)
    for name, value in labels.items():
        if not is_label(name, value):
            raise BadProperty(f"label {name}", value, "no pod can have such a label")


def _labels(driver: Member) -> Mapping[str, str]:
    """The labels that Spark gives an executor, as far as the labels of the driver show them."""
    shared = {name: value for name, value in driver.labels if name in _SHARED}
    own = {marks.SPARK_LABEL: EXECUTOR, marks.PROFILE_LABEL: "0", **_STANDING_IN}
    return {**shared, **own}


def _filled_in(labels: Mapping[str, str], executor_labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels with the values that Spark puts in place of placeholders."""
    values = {
        "{{APP_ID}}": executor_labels.get(marks.APP_LABEL, ""),
        "{{EXECUTOR_ID}}": executor_labels[marks.NUMBER_LABEL],
    }
    texts = dict(labels)
    for placeholder, value in values.items():
        texts = {name: text.replace(placeholder, value) for name, text in texts.items()}
    return texts


def _claims(conf: Conf) -> set[str]:
    """The claims that all executors name.

    Raises:
        BadProperty: claims are created for each executor, which Tutti does not support yet.
    """
    claims: set[str] = set()
    for name, value in conf.under(_CLAIMS).items():
        if not name.endswith(".options.claimName"):
            continue
        if "OnDemand" in value or "EXECUTOR_ID" in value:
            why = "claims that are made for each executor are not placed yet"
            conf.refuse(_CLAIMS + name, why)
        claims.add(value)
    return claims


def _most(application: SparkApplication) -> int | None:
    """The most executors, or None for no bound.

    Without dynamic allocation there is no bound: Spark replaces lost executors before their pods
    are gone.
    """
    most = application.most_executors
    return None if most == application.executors else most


def _version(driver: Member) -> Version:
    text = dict(driver.labels).get(VERSION_LABEL)
    if text is None:
        return UNSAID
    match = _VERSION.fullmatch(text)
    if match is None:
        raise BadProperty(VERSION_LABEL, text, "is no version such as 4.0.1")
    return Version(int(match[1]), int(match[2]))


def _is_operators(driver: Member) -> bool:
    return any(name.startswith(OPERATOR) for name, _ in driver.labels)
