"""How large the gang of a Spark application is, by whatever says so: one function per contract.

All answer the same value, and ``group`` makes it a PodGroup. Nothing is ever guessed: what cannot
be read is a ``BadProperty`` with name and value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..kube import spark as marks
from ..kube.dump import objects
from ..kube.encode import API_VERSION
from ..kube.quantity import QuantityError, nanos
from ..model.cluster import Member
from ..model.spark import DRIVER, EXECUTOR, SparkPod
from . import podtemplates, properties
from .asking import App, Version, app
from .conf import BadProperty, Conf, whole
from .manifests import MOST_MEMBERS

VERSION_LABEL = "spark-version"
UNSAID = Version(3, 2)  # before 3.3 Spark gave its pods no such label
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})([.-].*)?")
OPERATOR = "sparkoperator.k8s.io/"
_CARRIED = ("spark-app-name", f"{OPERATOR}app-name")  # from the driver to the PodGroup
_CLAIMS = "spark.kubernetes.executor.volumes.persistentVolumeClaim."
_STEPS = "spark.kubernetes.executor.pod.featureSteps"
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Declared:
    """How many executors a gang begins with, how many it may have, and what each will ask for.

    ``most`` is None where there is no bound; ``template`` is that of the role.
    """

    executors: int
    most: int | None
    template: Mapping[str, Any]


def said(member: Member, spark: SparkPod, scheduler: str) -> Declared | None:
    """What the pod itself says, by annotations or labels; None if its properties have to.

    Raises:
        BadProperty: one of them is missing, or cannot be read.
    """
    if not spark.is_driver:
        return by_annotation(member, spark, scheduler)
    return by_palantir(spark) or by_labels(member)


def by_properties(text: str, template: str | None, driver: Member, scheduler: str) -> Declared:
    """What Spark's own properties say, with the pod template that the driver hands on.

    Raises:
        BadProperty: one of them cannot be read, or what it does cannot be known.
        BadProperties: the text is no properties file.
    """
    given = properties.read(text)
    found = app(given, _version(driver))
    conf = Conf(given)
    if _STEPS in conf:
        conf.refuse(_STEPS, "what it adds to executors cannot be known: name a PodGroup for them")
    for name, value in conf.under(_CLAIMS).items():
        if name.endswith(".options.claimName") and ("OnDemand" in value or "EXECUTOR_ID" in value):
            conf.refuse(_CLAIMS + name, "claims that are made for each executor are not placed yet")
    asked, named = found.executor, found.executor.scheduler
    if podtemplates.FILE in conf:
        if template is None:
            conf.refuse(podtemplates.FILE, "the driver mounts no such template")
        container = conf.text(podtemplates.CONTAINER) or ""
        raw, other = podtemplates.merged(asked, template, container)
        named = named or other
    else:
        raw = podtemplates.plain(asked)
    if not named and _is_operators(driver):
        named = scheduler  # which the operator's webhook puts into its pods
    if named != scheduler:
        return Declared(0, None, {})  # another scheduler's: the driver is alone
    return Declared(found.executors, _most(found), raw)


def by_annotation(executor: Member, spark: SparkPod, scheduler: str) -> Declared:
    """What an executor of client mode says of all: as many, and each as it is itself.

    Raises:
        BadProperty: a number cannot be read.
    """
    said = dict(spark.marks)
    if marks.EXECUTORS not in said:
        raise BadProperty(marks.EXECUTORS, "", f"is not set, but {marks.MOST_EXECUTORS} is")
    count = whole(marks.EXECUTORS, said[marks.EXECUTORS])
    most = None
    if marks.MOST_EXECUTORS in said:
        most = whole(marks.MOST_EXECUTORS, said[marks.MOST_EXECUTORS])
    if count == 0:
        raise BadProperty(marks.EXECUTORS, "0", "a gang has one member at least")
    spec = objects.member(replace(executor, unmodelled=(), spark=None), scheduler, 0.0)["spec"]
    template: Raw = {"resources": spec["containers"][0]["resources"]["requests"]}
    kept = ("nodeSelector", "tolerations", "affinity")
    return Declared(count, most, {**template, **{n: spec[n] for n in kept if n in spec}})


def by_palantir(spark: SparkPod) -> Declared | None:
    """What the annotations of Palantir's k8s-spark-scheduler say; None where there are none.

    Raises:
        BadProperty: one of them is missing, or cannot be read.
    """
    said = dict(spark.marks)
    if not said:
        return None
    resources = {"cpu": _quantity(said, marks.CPU), "memory": _quantity(said, marks.MEMORY)}
    if marks.GPU in said:
        resources["nvidia.com/gpu"] = _quantity(said, marks.GPU)
    if not _flag(said, marks.IS_DYNAMIC):
        return Declared(_count(said, marks.COUNT), None, {"resources": resources})
    least, most = _count(said, marks.LEAST), _count(said, marks.MOST)
    return Declared(least, most, {"resources": resources})


def by_labels(driver: Member) -> Declared | None:
    """What the labels of cosmin-ionita/kubernetes-gang-scheduler say, in cores and GB.

    Raises:
        BadProperty: one of them is missing, or no whole number.
    """
    said = dict(driver.labels)
    names = ("executors", "exec-cpu", "exec-mem")
    if not any(name in said for name in names[1:]):
        return None  # "executors" alone is anybody's label
    count, cores, gigabytes = (_count(said, name) for name in names)
    return Declared(count, None, {"resources": {"cpu": str(cores), "memory": f"{gigabytes}Gi"}})


def group(member: Member, spark: SparkPod, declared: Declared) -> Raw:
    """The PodGroup of an application, which goes with the pod that declares it.

    Raises:
        BadProperty: a gang cannot have so many members.
    """
    labels = {name: value for name, value in member.labels if name in _CARRIED}
    reference = {"apiVersion": "v1", "kind": "Pod", "name": member.key.name, "uid": member.uid}
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {
            "name": spark.app,
            "namespace": member.key.namespace,
            "labels": labels,
            "ownerReferences": [reference],
        },
        "spec": _spec(declared, drivers=1 if spark.is_driver else 0),
    }


def _spec(declared: Declared, drivers: int) -> Raw:
    n, most = declared.executors, declared.most
    if n + drivers > MOST_MEMBERS:
        raise BadProperty("executors", str(n), f"a gang has at most {MOST_MEMBERS:,} members")
    if n == 0:
        return {"minMember": 1}  # executors that come later have room when there is some
    role: Raw = {"name": EXECUTOR, "minMember": n, "template": dict(declared.template)}
    if most is not None and most <= MOST_MEMBERS:
        role["maxMember"] = max(n, most)
    return {"roles": [*[{"name": DRIVER, "minMember": 1}] * drivers, role]}


def _most(found: App) -> int | None:
    """Without dynamic allocation Spark replaces lost executors before all are gone: no bound."""
    return None if found.most_executors == found.executors else found.most_executors


def _version(driver: Member) -> Version:
    said = dict(driver.labels).get(VERSION_LABEL)
    if said is None:
        return UNSAID
    match = _VERSION.fullmatch(said)
    if match is None:
        raise BadProperty(VERSION_LABEL, said, "is no version such as 4.0.1")
    return Version(int(match[1]), int(match[2]))


def _is_operators(driver: Member) -> bool:
    return any(name.startswith(OPERATOR) for name, _ in driver.labels)


def _count(said: Mapping[str, str], name: str) -> int:
    return whole(name, _given(said, name))


def _quantity(said: Mapping[str, str], name: str) -> str:
    value = _given(said, name)
    try:
        nanos(value)
    except QuantityError as problem:
        raise BadProperty(name, value, str(problem)) from problem
    return value


def _flag(said: Mapping[str, str], name: str) -> bool:
    value = said.get(name, "false")
    if value.lower() not in (*_TRUE, *_FALSE):
        raise BadProperty(name, value, "is neither true nor false")
    return value.lower() in _TRUE


def _given(said: Mapping[str, str], name: str) -> str:
    if name not in said:
        raise BadProperty(name, "", "is not set")
    return said[name]
