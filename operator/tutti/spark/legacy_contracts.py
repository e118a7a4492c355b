"""Contracts of older gang schedulers, by which drivers declare their executors.

There is one function for each contract. Tutti reads them for drivers that still have them.
"""

from collections.abc import Mapping
from typing import Any

from ..dump.inter_pod import PREFERRED
from ..kube.codec.quantity import QuantityError, nanos
from ..kube.gang_sources import spark as marks
from ..model.applications import ApplicationPod
from ..model.cluster import Member
from .application_size import ApplicationSize
from .conf import BadProperty, whole

COST = "cost"  # a label of nodes, from 0 to 100
DEAREST = 100
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")

Raw = dict[str, Any]


def by_palantir(spark: ApplicationPod) -> ApplicationSize | None:
    """The size by the annotations of Palantir's k8s-spark-scheduler; None if there are none.

    Raises:
        BadProperty: an annotation is missing, or cannot be read.
    """
    annotations = dict(spark.annotations)
    if not annotations:
        return None
    resources = {
        "cpu": _quantity(annotations, marks.CPU),
        "memory": _quantity(annotations, marks.MEMORY),
    }
    if marks.GPU in annotations:
        resources["nvidia.com/gpu"] = _quantity(annotations, marks.GPU)
    if not _flag(annotations, marks.IS_DYNAMIC):
        return ApplicationSize(_count(annotations, marks.COUNT), None, {"resources": resources})
    least, most = _count(annotations, marks.LEAST), _count(annotations, marks.MOST)
    return ApplicationSize(least, most, {"resources": resources})


def by_labels(driver: Member) -> ApplicationSize | None:
    """The size by the labels of cosmin-ionita/kubernetes-gang-scheduler, in cores and GB.

    None if the driver has no such labels.

    Raises:
        BadProperty: a label is missing, or is not a whole number.
    """
    labels = dict(driver.labels)
    names = ("executors", "exec-cpu", "exec-mem")
    if not any(name in labels for name in names[1:]):
        return None  # the label "executors" alone may have another purpose
    count, cores, gigabytes = (_count(labels, name) for name in names)
    resources = {"cpu": str(cores), "memory": f"{gigabytes}Gi"}
    return ApplicationSize(count, None, {"resources": resources, "affinity": cheapest()})


def cheapest() -> Raw:
    """A node affinity that prefers nodes whose label ``cost`` is low.

    The weight of a node is 100 minus its cost. It is the sum of binary digits, so seven preferences
    are enough instead of a hundred. A node without the label has cost 0, and a cost above 100
    counts as 100.
    """
    digits = [
        (2**n, [str(cost) for cost in range(DEAREST) if (DEAREST - cost) >> n & 1])
        for n in range(DEAREST.bit_length())
    ]
    terms: list[tuple[int, Raw]] = [(n, {"operator": "In", "values": costs}) for n, costs in digits]
    terms.append((DEAREST, {"operator": "DoesNotExist"}))
    preferred = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": COST, **term}]}}
        for weight, term in terms
    ]
    return {"nodeAffinity": {PREFERRED: preferred}}


def _count(values: Mapping[str, str], name: str) -> int:
    return whole(name, _value(values, name))


def _quantity(values: Mapping[str, str], name: str) -> str:
    value = _value(values, name)
    try:
        nanos(value)
    except QuantityError as problem:
        raise BadProperty(name, value, str(problem)) from problem
    return value


def _flag(values: Mapping[str, str], name: str) -> bool:
    value = values.get(name, "false")
    if value.lower() not in (*_TRUE, *_FALSE):
        raise BadProperty(name, value, "is neither true nor false")
    return value.lower() in _TRUE


def _value(values: Mapping[str, str], name: str) -> str:
    if name not in values:
        raise BadProperty(name, "", "is not set")
    return values[name]
