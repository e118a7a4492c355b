"""The property sets: one for every rule that Tutti follows, the boundaries of its arithmetic first.

The first eight are those in which versions of Spark differ, or once did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Properties = dict[str, str]

EXECUTOR = "spark.executor"
KUBERNETES = "spark.kubernetes"
DYNAMIC = "spark.dynamicAllocation"
PYTHON = {f"{KUBERNETES}.resource.type": "python"}


def _gpu(amount: int, name: str = "gpu", vendor: str = "nvidia.com") -> Properties:
    return {
        f"{EXECUTOR}.resource.{name}.amount": str(amount),
        f"{EXECUTOR}.resource.{name}.vendor": vendor,
        f"{EXECUTOR}.resource.{name}.discoveryScript": "/bin/true",
    }


CASES: Mapping[str, Properties] = {
    "nothing set": {},
    "minimum of the overhead": {f"{EXECUTOR}.minMemoryOverhead": "512m"},
    "Python, its memory, off-heap": {
        **PYTHON,
        f"{EXECUTOR}.pyspark.memory": "700m",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": "1500000000",
    },
    "dynamic: the largest of three": {
        f"{DYNAMIC}.enabled": "true",
        f"{DYNAMIC}.minExecutors": "2",
        f"{DYNAMIC}.initialExecutors": "3",
        f"{DYNAMIC}.maxExecutors": "9",
        f"{EXECUTOR}.instances": "5",
    },
    "factor of Kubernetes, truncated": {
        f"{KUBERNETES}.memoryOverheadFactor": "0.33",
        f"{EXECUTOR}.memory": "7777m",
    },
    "factor of executors over it": {
        f"{KUBERNETES}.memoryOverheadFactor": "0.33",
        f"{EXECUTOR}.memoryOverheadFactor": "0.29",
        f"{EXECUTOR}.memory": "100g",
        f"{EXECUTOR}.minMemoryOverhead": "1g",
    },
    "selectors and schedulers": {
        f"{KUBERNETES}.node.selector.disk": "ssd",
        f"{KUBERNETES}.node.selector.zone": "a",
        f"{KUBERNETES}.executor.node.selector.zone": "b",
        f"{KUBERNETES}.driver.node.selector.zone": "c",
        f"{KUBERNETES}.scheduler.name": "tutti",
        f"{KUBERNETES}.executor.scheduler.name": "other",
    },
    "request, limit, devices": {
        f"{EXECUTOR}.cores": "4",
        f"{KUBERNETES}.executor.request.cores": "3500m",
        f"{KUBERNETES}.executor.limit.cores": "4.5",
        **_gpu(2),
    },
    "explicit overhead below the minimum": {f"{EXECUTOR}.memoryOverhead": "100"},
    "explicit overhead over every factor": {
        f"{EXECUTOR}.memoryOverhead": "3g",
        f"{EXECUTOR}.memoryOverheadFactor": "0.9",
        f"{EXECUTOR}.minMemoryOverhead": "8g",
    },
    "the overhead's old name": {"spark.yarn.executor.memoryOverhead": "901"},
    "as little memory as may be": {f"{EXECUTOR}.memory": "450m"},
    "memory in KiB, cut off": {f"{EXECUTOR}.memory": "2500000k"},
    "memory in bytes, in capitals": {f"{EXECUTOR}.memory": "3000000000B"},
    "memory in tb": {f"{EXECUTOR}.memory": "1TB", f"{EXECUTOR}.memoryOverheadFactor": "1e-1"},
    "off-heap that is not enabled": {"spark.memory.offHeap.size": "4g"},
    "Python's memory of no Python": {f"{EXECUTOR}.pyspark.memory": "700m"},
    "Python without its memory": {**PYTHON, f"{EXECUTOR}.memory": "6g"},
    "references": {
        "spark.tutti.size": "5",
        "spark.tutti.unit": "${spark.tutti.size}00m",
        f"{EXECUTOR}.memoryOverhead": "${spark.tutti.unit}",
        f"{KUBERNETES}.executor.request.cores": "${spark.tutti.size}",
    },
    "dynamic from nothing": {f"{DYNAMIC}.enabled": "TRUE", f"{DYNAMIC}.maxExecutors": "4"},
    "dynamic, initial below minimum": {
        f"{DYNAMIC}.enabled": "true",
        f"{DYNAMIC}.minExecutors": "4",
        f"{DYNAMIC}.initialExecutors": "1",
    },
    "instances without dynamic": {
        f"{DYNAMIC}.minExecutors": "4",
        f"{EXECUTOR}.instances": " 6 ",
    },
    "three devices, one of none": {
        **_gpu(1),
        **_gpu(3, "fpga", "xilinx.com"),
        **_gpu(0, "npu", "huawei.com"),
    },
    "a tiny request": {f"{KUBERNETES}.executor.request.cores": "0.1", f"{EXECUTOR}.cores": "8"},
    "a factor above one": {
        f"{EXECUTOR}.memoryOverheadFactor": "2.7",
        f"{EXECUTOR}.memory": "1023m",
    },
}

# Submitted to the cluster: the driver's pod is looked at, and the executors of its ConfigMap.
SUBMITTED: Mapping[str, tuple[str, Properties]] = {
    "cluster mode, nothing set": ("local:///opt/app.jar", {}),
    "cluster mode, Python": (
        "local:///opt/app.py",
        {
            "spark.driver.memory": "6g",
            f"{EXECUTOR}.memory": "5g",
            f"{EXECUTOR}.pyspark.memory": "300m",
            f"{EXECUTOR}.instances": "3",
            "spark.driver.minMemoryOverhead": "3g",
        },
    ),
    "cluster mode, all of the driver's": (
        "local:///opt/app.py",
        {
            "spark.app.name": "ünïcödé: #1 = !\\",
            "spark.driver.cores": "3",
            "spark.driver.memory": "3333m",
            "spark.driver.memoryOverheadFactor": "0.17",
            f"{KUBERNETES}.driver.request.cores": "1250m",
            f"{KUBERNETES}.driver.limit.cores": "2",
            f"{KUBERNETES}.driver.node.selector.pool": "drivers",
            f"{KUBERNETES}.node.selector.disk": "ssd",
            f"{KUBERNETES}.driver.scheduler.name": "tutti",
            "spark.driver.resource.gpu.amount": "1",
            "spark.driver.resource.gpu.vendor": "amd.com",
            "spark.driver.resource.gpu.discoveryScript": "/bin/true",
        },
    ),
}
