"""What drivers say of their executors that were made for older gang schedulers: one function each.

Separate from ``gang_size`` because nobody writes these contracts any more; they are only read.
"""

from collections.abc import Mapping
from typing import Any

from ..dump.inter_pod import PREFERRED
from ..kube.codec.quantity import QuantityError, nanos
from ..kube.gang_sources import spark as marks
from ..model.cluster import Member
from ..model.spark import SparkPod
from .application_size import ApplicationSize
from .conf import BadProperty, whole

COST = "cost"  # a label of nodes, from 0 to 100
DEAREST = 100
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")

Raw = dict[str, Any]


def by_palantir(spark: SparkPod) -> ApplicationSize | None:
    """What the annotations of Palantir's k8s-spark-scheduler say; None where there are none.

    Raises:
        BadProperty: one of them is missing, or cannot be read.
    """
    said = dict(spark.annotations)
    if not said:
        return None
    resources = {"cpu": _quantity(said, marks.CPU), "memory": _quantity(said, marks.MEMORY)}
    if marks.GPU in said:
        resources["nvidia.com/gpu"] = _quantity(said, marks.GPU)
    if not _flag(said, marks.IS_DYNAMIC):
        return ApplicationSize(_count(said, marks.COUNT), None, {"resources": resources})
    least, most = _count(said, marks.LEAST), _count(said, marks.MOST)
    return ApplicationSize(least, most, {"resources": resources})


def by_labels(driver: Member) -> ApplicationSize | None:
    """What the labels of cosmin-ionita/kubernetes-gang-scheduler say, in cores and GB.

    Raises:
        BadProperty: one of them is missing, or no whole number.
    """
    said = dict(driver.labels)
    names = ("executors", "exec-cpu", "exec-mem")
    if not any(name in said for name in names[1:]):
        return None  # "executors" alone is anybody's label
    count, cores, gigabytes = (_count(said, name) for name in names)
    resources = {"cpu": str(cores), "memory": f"{gigabytes}Gi"}
    return ApplicationSize(count, None, {"resources": resources, "affinity": cheapest()})


def cheapest() -> Raw:
    """What would rather be on nodes whose label ``cost`` is low.

    A node earns 100 less its cost, put together from binary digits: seven preferences in place of
    a hundred. One without the label costs nothing there, and one that costs more than 100 is as
    dear as can be.
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


def _count(said: Mapping[str, str], name: str) -> int:
    return whole(name, _value(said, name))


def _quantity(said: Mapping[str, str], name: str) -> str:
    value = _value(said, name)
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


def _value(said: Mapping[str, str], name: str) -> str:
    if name not in said:
        raise BadProperty(name, "", "is not set")
    return said[name]
