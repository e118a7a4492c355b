"""What Spark will ask for, by the rules of its own code; `spark_sizes` asks the real one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.spark import BadProperty, SparkApplication, Version, app

OLD, NEW = Version(3, 5), Version(4, 0)
PYTHON = {"kubernetes.resource.type": "python"}
DYNAMIC = {"dynamicAllocation.enabled": "true"}


def made(properties: dict[str, str], version: Version = NEW) -> SparkApplication:
    """Names are without their ``spark.``."""
    return app({f"spark.{name}": value for name, value in properties.items()}, version)


def memory(properties: dict[str, str], version: Version = NEW) -> str:
    return made(properties, version).executor.requests["memory"]


def refused(properties: dict[str, str], name: str, version: Version = NEW) -> str:
    with pytest.raises(BadProperty) as problem:
        made(properties, version)
    assert problem.value.name == f"spark.{name}"
    return str(problem.value)


def test_nothing_set_is_two_executors_of_one_core() -> None:
    spark_application = made({})
    assert (spark_application.executors, spark_application.most_executors) == (2, 2)
    for asked in (spark_application.driver, spark_application.executor):
        assert asked.requests == {"cpu": "1", "memory": "1408Mi"}
        assert asked.limits == {"memory": "1408Mi"}
        assert (asked.node_selector, asked.scheduler, asked.unknown) == ({}, None, ())
    assert (spark_application.name, spark_application.namespace, spark_application.is_client) == (
        "",
        None,
        False,
    )


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"executor.memory": "4g"}, "4505Mi"),  # 409.6 is cut off
        ({"executor.memory": "3839m"}, "4223Mi"),  # the minimum, for the last time
        ({"executor.memory": "450m"}, "834Mi"),
        ({"executor.memory": "2500000k"}, "2825Mi"),
        ({"executor.memory": " 2G "}, "2432Mi"),
        ({"executor.memory": "1TB"}, "1153433Mi"),
        ({"executor.memoryOverhead": "0"}, "1024Mi"),
        ({"executor.memoryOverhead": "100"}, "1124Mi"),
        ({"yarn.executor.memoryOverhead": "900"}, "1924Mi"),
        ({"executor.memoryOverhead": "1", "yarn.executor.memoryOverhead": "9"}, "1025Mi"),
        ({"executor.memoryOverhead": "1g", "executor.memoryOverheadFactor": "9"}, "2048Mi"),
        ({"executor.memoryOverheadFactor": "1e0"}, "2048Mi"),
        ({"executor.memoryOverheadFactor": ".5f", "executor.memory": "1000m"}, "1500Mi"),
        ({"kubernetes.memoryOverheadFactor": "0.5"}, "1536Mi"),
        ({"kubernetes.memoryOverheadFactor": "0"}, "1408Mi"),
        (
            {"kubernetes.memoryOverheadFactor": "0.5", "executor.memoryOverheadFactor": "0.6"},
            "1638Mi",
        ),
        ({"executor.minMemoryOverhead": "1g"}, "2048Mi"),
        ({"executor.minMemoryOverhead": "0"}, "1126Mi"),
        (PYTHON, "1433Mi"),
        ({"kubernetes.resource.type": "r"}, "1433Mi"),
        ({"kubernetes.resource.type": "java"}, "1408Mi"),
        ({**PYTHON, "submit.deployMode": "client"}, "1408Mi"),
        ({**PYTHON, "kubernetes.memoryOverheadFactor": "0.1"}, "1408Mi"),
        ({**PYTHON, "executor.pyspark.memory": "1g"}, "2457Mi"),
        ({"kubernetes.resource.type": "r", "executor.pyspark.memory": "1g"}, "1433Mi"),
        ({"executor.pyspark.memory": "1g"}, "1408Mi"),
        ({"memory.offHeap.size": "1g"}, "1408Mi"),
        ({"memory.offHeap.enabled": "true", "memory.offHeap.size": "1g"}, "2432Mi"),
        ({"memory.offHeap.enabled": " TRUE", "memory.offHeap.size": "2097151"}, "1409Mi"),
        ({"a": "6g", "b": "${spark.a}", "executor.memoryOverhead": "${spark.b}"}, "7168Mi"),
        ({"a": "6", "executor.memoryOverhead": "${spark.a}g"}, "7168Mi"),
    ],
)
def test_an_executors_memory_is_the_sum_of_its_parts(
    properties: dict[str, str], expected: str
) -> None:
    assert memory(properties) == expected


def test_before_spark_4_nobody_reads_the_minimum_overhead() -> None:
    assert memory({"executor.minMemoryOverhead": "1g"}, OLD) == "1408Mi"
    assert memory({"executor.minMemoryOverhead": "nonsense"}, OLD) == "1408Mi"


@given(st.integers(450, 10**7), st.floats(0.01, 5))
def test_the_overhead_is_cut_off_and_has_a_minimum(size: int, factor: float) -> None:
    properties = {"executor.memory": f"{size}m", "executor.memoryOverheadFactor": repr(factor)}
    assert memory(properties) == f"{size + max(384, math.trunc(factor * size))}Mi"


def test_the_driver_has_its_own_properties() -> None:
    spark_application = made(
        {
            **PYTHON,
            "driver.memory": "2g",
            "driver.cores": "3",
            "kubernetes.driver.limit.cores": "4",
            "driver.resource.gpu.amount": "1",
            "driver.resource.gpu.vendor": "amd.com",
            "executor.memory": "1g",
            "kubernetes.driver.scheduler.name": "a",
            "kubernetes.scheduler.name": "b",
        }
    )
    assert spark_application.driver.requests == {"cpu": "3", "memory": "2867Mi"}
    assert spark_application.driver.limits == {"memory": "2867Mi", "cpu": "4", "amd.com/gpu": "1"}
    assert (spark_application.driver.scheduler, spark_application.executor.scheduler) == ("a", "b")
    assert made({"driver.memoryOverheadFactor": "0.9"}).driver.requests["memory"] == "1945Mi"
    assert made({"driver.minMemoryOverhead": "1g"}).driver.requests["memory"] == "2048Mi"
    assert made({"yarn.driver.memoryOverhead": "9"}).driver.requests["memory"] == "1033Mi"


def test_cores_are_asked_for_by_either_name() -> None:
    spark_application = made(
        {
            "executor.cores": "4",
            "kubernetes.executor.request.cores": " 3500m ",
            "kubernetes.executor.limit.cores": "4.5",
        }
    )
    assert spark_application.executor.requests["cpu"] == "3500m"
    assert spark_application.executor.limits["cpu"] == "4.5"
    assert made({"executor.cores": "+4"}).executor.requests["cpu"] == "4"


def test_devices_have_the_vendors_name() -> None:
    spark_application = made(
        {
            "executor.resource.gpu.amount": "2",
            "executor.resource.gpu.vendor": "nvidia.com",
            "executor.resource.gpu.discoveryScript": "/x",
            "executor.resource.none.amount": "0",
        }
    )
    assert spark_application.executor.limits == {"memory": "1408Mi", "nvidia.com/gpu": "2"}


def test_the_parts_selector_goes_over_the_common_one() -> None:
    spark_application = made(
        {
            "kubernetes.node.selector.disk": "ssd",
            "kubernetes.node.selector.zone": "a",
            "kubernetes.executor.node.selector.zone": "${b}",
        }
    )
    assert spark_application.executor.node_selector == {"disk": "ssd", "zone": "${b}"}
    assert spark_application.driver.node_selector == {"disk": "ssd", "zone": "a"}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"executor.instances": "7"}, (7, 7)),
        ({"dynamicAllocation.minExecutors": "7"}, (2, 2)),
        (DYNAMIC, (0, None)),
        ({**DYNAMIC, "executor.instances": "3"}, (3, None)),
        (
            {**DYNAMIC, "dynamicAllocation.initialExecutors": "4", "executor.instances": "3"},
            (4, None),
        ),
        ({**DYNAMIC, "dynamicAllocation.minExecutors": "5", "executor.instances": "3"}, (5, None)),
        ({**DYNAMIC, "dynamicAllocation.maxExecutors": "8"}, (0, 8)),
        ({**DYNAMIC, "dynamicAllocation.maxExecutors": "2147483647"}, (0, None)),
    ],
)
def test_how_many_executors(properties: dict[str, str], expected: tuple[int, int | None]) -> None:
    spark_application = made(properties)
    assert (spark_application.executors, spark_application.most_executors) == expected


def test_what_properties_do_not_say_themselves_is_named() -> None:
    volumes = "kubernetes.executor.volumes.persistentVolumeClaim.data"
    spark_application = made(
        {
            "kubernetes.executor.podTemplateFile": "/t.yaml",
            "kubernetes.driver.pod.featureSteps": "x.Y",
            f"{volumes}.mount.path": "/data",
            f"{volumes}.options.claimName": "c",
        }
    )
    assert spark_application.executor.unknown == (
        "spark.kubernetes.executor.podTemplateFile",
        f"spark.{volumes}.mount.path",
    )
    assert spark_application.driver.unknown == ("spark.kubernetes.driver.pod.featureSteps",)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("executor.instances", "2x", "not a whole number"),
        ("executor.instances", "", "not a whole number"),
        ("executor.instances", "²", "not a whole number"),
        ("executor.instances", "-1", "negative"),
        ("executor.instances", "2147483648", "above"),
        ("executor.instances", "9" * 5000, "above"),
        ("executor.instances", "0", "at least one executor"),
        ("executor.cores", "0", "at least one core"),
        ("executor.cores", "1.5", "not a whole number"),
        ("executor.memory", "1.5g", "not a size"),
        ("executor.memory", "-1g", "not a size"),
        ("executor.memory", "1x", "not a size"),
        ("executor.memory", "1 g", "not a size"),
        ("executor.memory", "1gib", "not a size"),
        ("executor.memory", "1k", "less than 1 MiB"),
        ("driver.memory", "1k", "less than 1 MiB"),
        ("executor.memory", "449m", "below 450 MiB"),
        ("executor.memory", "2000", "no unit as bytes"),
        ("executor.memory", "9000p", "more than any node"),
        ("executor.memory", "9" * 5000, "more than any node"),
        ("executor.memoryOverhead", "${env:SIZE}", "the driver's own ${env:SIZE}"),
        ("executor.memoryOverhead", "${system:size}", "the driver's own"),
        ("executor.memoryOverhead", "${spark.unset}", "spark.unset, which is not set"),
        ("executor.memoryOverhead", "${other}", "other, which is not set"),
        ("executor.memoryOverhead", "${spark.executor.memoryOverhead}", "refers to itself"),
        ("executor.memoryOverhead", "${other:x}", "not a size"),
        ("executor.memoryOverhead", "${spark:spark.app.name}", "not a size"),
        ("executor.memory", "${spark.app.name}", "no reference here"),
        ("executor.cores", "${spark.app.name}", "no reference here"),
        ("driver.memory", "${spark.app.name}", "no reference here"),
        ("executor.memoryOverhead", "some", "not a size"),
        ("executor.minMemoryOverhead", "some", "not a size"),
        ("executor.memoryOverheadFactor", "0", "not above zero"),
        ("executor.memoryOverheadFactor", "1e400", "absurdly large"),
        ("executor.memoryOverheadFactor", "NaN", "not a number"),
        ("executor.memoryOverheadFactor", "10%", "not a number"),
        ("kubernetes.memoryOverheadFactor", "-0.1", "not above zero"),
        ("kubernetes.executor.request.cores", "many", "is not a quantity"),
        ("kubernetes.executor.limit.cores", "-1", "negative"),
        ("dynamicAllocation.enabled", "yes", "neither true nor false"),
        ("memory.offHeap.size", "some", "not a size"),
        ("executor.resource.gpu.amount", "one", "not a whole number"),
    ],
)
def test_what_spark_would_refuse_is_named(name: str, value: str, why: str) -> None:
    sentence = refused({name: value}, name)
    assert sentence.startswith(f"spark.{name}={value[:60]}")
    assert why in sentence
    assert len(sentence) < 300


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"memory.offHeap.enabled": "true"}, "memory.offHeap.size"),
        ({"executor.resource.gpu.vendor": "x"}, "executor.resource.gpu.amount"),
        ({"executor.resource.gpu.amount": "1"}, "executor.resource.gpu.vendor"),
        ({**DYNAMIC, "dynamicAllocation.maxExecutors": "0"}, "dynamicAllocation.maxExecutors"),
        (
            {**DYNAMIC, "dynamicAllocation.maxExecutors": "2", "executor.instances": "3"},
            "dynamicAllocation.maxExecutors",
        ),
    ],
)
def test_what_does_not_go_together_is_named(properties: dict[str, str], name: str) -> None:
    refused(properties, name)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "spark.executor.memory",
                "spark.executor.memoryOverhead",
                "spark.executor.memoryOverheadFactor",
                "spark.executor.instances",
                "spark.executor.cores",
                "spark.dynamicAllocation.enabled",
                "spark.dynamicAllocation.maxExecutors",
                "spark.kubernetes.executor.request.cores",
                "spark.executor.resource.gpu.amount",
                "spark.memory.offHeap.enabled",
                "spark.memory.offHeap.size",
            ]
        ),
        st.one_of(st.text(), st.from_regex(r"[0-9]{1,6}[kmgtp]?b?|\$\{spark\.[a-z.]+\}|true")),
    )
)
def test_whatever_the_values_it_is_computed_or_refused(properties: dict[str, str]) -> None:
    said = ""
    try:
        assert app(properties).executor.requests["memory"].endswith("Mi")
    except BadProperty as problem:
        said = str(problem)
    assert not said or (said.startswith("spark.") and "\n" not in said)
