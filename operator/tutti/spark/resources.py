"""The requests of the driver pod and the executors of Spark, computed as Spark computes them.

Source, in Apache Spark: BasicDriverFeatureStep, BasicExecutorFeatureStep, KubernetesConf and
KubernetesUtils for pods, ResourceProfile and ResourceUtils for amounts, SchedulerBackendUtils and
ExecutorAllocationManager for the number of executors. `python -m tests.conformance.spark_sizes`
compares with Spark itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .conf import INT_LIMIT, BadProperty, Conf, whole


class Version(NamedTuple):
    """Major and minor version of Spark."""

    major: int
    minor: int


NEWEST = Version(4, 3)
CONFIGURABLE_MINIMUM = Version(4, 0)  # the first that reads minMemoryOverhead: SPARK-47208

DEFAULT_EXECUTORS = 2
DEFAULT_MEBIBYTES = 1024
LEAST_OVERHEAD = 384  # MiB
LEAST_MEMORY = 450  # MiB; UnifiedMemoryManager ends a driver whose executors would have less
OVERHEAD_FACTOR = 0.1
OVERHEAD_FACTOR_BEYOND_JVM = 0.4

_LANGUAGE = "spark.kubernetes.resource.type"
_FACTOR = "spark.kubernetes.memoryOverheadFactor"
_INSTANCES = "spark.executor.instances"
_DYNAMIC = "spark.dynamicAllocation"
_LEAST, _MOST = f"{_DYNAMIC}.minExecutors", f"{_DYNAMIC}.maxExecutors"
_OFF_HEAP = "spark.memory.offHeap"


class Part(StrEnum):
    """The two kinds of Spark pods."""

    DRIVER = "driver"
    EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class PodResources:
    """The resources of every pod of one part; amounts are Kubernetes quantities.

    ``unknown`` names the properties whose effect on the pod cannot be known from the properties.
    """

    requests: Mapping[str, str]
    limits: Mapping[str, str]
    node_selector: Mapping[str, str]
    scheduler: str | None  # None: the default of the cluster
    labels: Mapping[str, str]  # labels from properties, which Spark adds to its own
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """One Spark application: its pods, and how many there are.

    ``executors`` is the number that it requests at once. ``most_executors`` is the largest number
    with dynamic allocation; None means no bound.
    """

    name: str
    namespace: str | None
    is_client: bool  # client mode: the driver runs where it was started, not in a pod of Spark
    driver: PodResources
    executor: PodResources
    executors: int
    most_executors: int | None


def app(properties: Mapping[str, str], version: Version = NEWEST) -> SparkApplication:
    """The application that these properties describe.

    Raises:
        BadProperty: Spark would refuse a property, or its value cannot be known here.
    """
    conf = Conf(properties)
    least, most = _executors(conf)
    return SparkApplication(
        name=conf.text("spark.app.name") or "",
        namespace=conf.text("spark.kubernetes.namespace"),
        is_client=_is_client(conf),
        driver=_pod_resources(conf, Part.DRIVER, _driver_mebibytes(conf, version)),
        executor=_pod_resources(conf, Part.EXECUTOR, _executor_mebibytes(conf, version)),
        executors=least,
        most_executors=most,
    )


def _is_client(conf: Conf) -> bool:
    return conf.text("spark.submit.deployMode") == "client"


def _executors(conf: Conf) -> tuple[int, int | None]:
    """How many executors at once, and how many at most; None for no bound."""
    instances = conf.count(_INSTANCES)
    if not conf.flag(f"{_DYNAMIC}.enabled"):
        if instances == 0:
            conf.refuse(_INSTANCES, "Spark needs at least one executor")
        count = DEFAULT_EXECUTORS if instances is None else instances
        return count, count
    least = conf.count(_LEAST) or 0
    initial = max(least, conf.count(f"{_DYNAMIC}.initialExecutors") or 0, instances or 0)
    most = conf.count(_MOST)
    if most is not None and (most == 0 or initial > most):
        conf.refuse(_MOST, f"Spark wants to begin with {initial} executors, and one at least")
    return initial, None if most == INT_LIMIT else most


def _pod_resources(conf: Conf, part: Part, mebibytes: int) -> PodResources:
    memory = f"{mebibytes}Mi"
    devices = dict(_devices(conf, part))
    limit = conf.quantity(f"spark.kubernetes.{part}.limit.cores")
    return PodResources(
        # Spark sets devices only as limits; the API server makes requests of them.
        requests={"cpu": _cpu(conf, part), "memory": memory},
        limits={"memory": memory, **devices, **({} if limit is None else {"cpu": limit})},
        node_selector={
            **conf.under("spark.kubernetes.node.selector."),
            **conf.under(f"spark.kubernetes.{part}.node.selector."),
        },
        scheduler=(
            conf.text(f"spark.kubernetes.{part}.scheduler.name")
            or conf.text("spark.kubernetes.scheduler.name")
        ),
        labels=conf.under(f"spark.kubernetes.{part}.label."),
        unknown=tuple(_unknown(conf, part)),
    )


def _cpu(conf: Conf, part: Part) -> str:
    name = f"spark.{part}.cores"
    cores = conf.count(name)
    if cores == 0:
        conf.refuse(name, "Spark needs at least one core")
    return conf.quantity(f"spark.kubernetes.{part}.request.cores") or str(cores or 1)


def _driver_mebibytes(conf: Conf, version: Version) -> int:
    memory = _memory(conf, Part.DRIVER)
    return memory + _overhead(conf, Part.DRIVER, memory, version)


def _executor_mebibytes(conf: Conf, version: Version) -> int:
    memory = _memory(conf, Part.EXECUTOR)
    python = conf.mebibytes("spark.executor.pyspark.memory") or 0
    return (
        memory
        + _overhead(conf, Part.EXECUTOR, memory, version)
        + _off_heap(conf)
        + (python if conf.text(_LANGUAGE) == "python" else 0)
    )


def _memory(conf: Conf, part: Part) -> int:
    name = f"spark.{part}.memory"
    mebibytes = conf.mebibytes(name)
    if mebibytes == 0:
        conf.refuse(name, "is less than 1 MiB")
    # The check in the driver reads a number without a unit in bytes; for pods it is in MiB.
    if part is Part.EXECUTOR and name in conf and conf.bytes_as_mebibytes(name) < LEAST_MEMORY:
        conf.refuse(name, f"Spark ends below {LEAST_MEMORY} MiB, and checks no unit as bytes")
    return DEFAULT_MEBIBYTES if mebibytes is None else mebibytes


def _overhead(conf: Conf, part: Part, memory: int, version: Version) -> int:
    explicit = conf.mebibytes(f"spark.{part}.memoryOverhead")
    factor = conf.factor(f"spark.{part}.memoryOverheadFactor")
    if factor is None:
        factor = _default_factor(conf)
    least = LEAST_OVERHEAD
    if version >= CONFIGURABLE_MINIMUM:
        minimum = conf.mebibytes(f"spark.{part}.minMemoryOverhead")
        least = least if minimum is None else minimum
    if explicit is not None:
        return explicit
    return max(min(int(factor * memory), INT_LIMIT), least)


def _default_factor(conf: Conf) -> float:
    """The overhead factor of both parts; Spark passes the factor of the driver to executors."""
    factor = conf.factor(_FACTOR, may_be_zero=True)
    if factor is not None:
        return factor
    if conf.text(_LANGUAGE) in ("python", "r") and not _is_client(conf):
        return OVERHEAD_FACTOR_BEYOND_JVM
    return OVERHEAD_FACTOR


def _off_heap(conf: Conf) -> int:
    size = f"{_OFF_HEAP}.size"
    mebibytes = conf.bytes_as_mebibytes(size)
    if not conf.flag(f"{_OFF_HEAP}.enabled"):
        return 0
    if mebibytes == 0:
        conf.refuse(size, "is less than 1 MiB, and without a unit it is in bytes")
    return mebibytes


def _devices(conf: Conf, part: Part) -> Iterator[tuple[str, str]]:
    """Each device as ``vendor/name``, and how many a pod requests."""
    prefix = f"spark.{part}.resource."
    by_name = conf.under(prefix)
    for name in sorted({key.partition(".")[0] for key in by_name}):
        amount = by_name.get(f"{name}.amount")
        if amount is None:
            raise BadProperty(f"{prefix}{name}.amount", "", "is not set")
        count = whole(f"{prefix}{name}.amount", amount)
        vendor = by_name.get(f"{name}.vendor", "")
        if count and not vendor:
            raise BadProperty(f"{prefix}{name}.vendor", "", "is not set")
        if count:
            yield f"{vendor}/{name}", str(count)


def _unknown(conf: Conf, part: Part) -> Iterator[str]:
    for name in (f"{part}.podTemplateFile", f"{part}.pod.featureSteps"):
        if f"spark.kubernetes.{name}" in conf:
            yield f"spark.kubernetes.{name}"
    volumes = f"spark.kubernetes.{part}.volumes.persistentVolumeClaim."
    yield from (f"{volumes}{rest}" for rest in conf.under(volumes) if rest.endswith(".mount.path"))
