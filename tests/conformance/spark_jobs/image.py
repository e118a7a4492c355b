"""What Spark's published image does when one of its containers starts, as a command to run here.

The facts are those of `entrypoint.sh` in apache/spark, in resource-managers/kubernetes/docker/src/
main/dockerfiles/spark. It acts on the first of the container's arguments, and on these variables of
its environment:

- first argument `driver`: `$SPARK_HOME/bin/spark-submit --conf spark.driver.bindAddress=`
  SPARK_DRIVER_BIND_ADDRESS (the pod's IP) ` --deploy-mode client`, then the other arguments;
- first argument `executor`: `$JAVA_HOME/bin/java` with
  - SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …: options of the JVM, by their number;
  - SPARK_EXECUTOR_MEMORY: both `-Xms` and `-Xmx`;
  - the class path: SPARK_CONF_DIR (else `$SPARK_HOME/conf`), SPARK_CLASSPATH, `$SPARK_HOME/jars/*`,
    SPARK_EXTRA_CLASSPATH if there is one, SPARK_DIST_CLASSPATH;
  - the class KubernetesExecutorBackend with SPARK_DRIVER_URL, SPARK_EXECUTOR_ID,
    SPARK_EXECUTOR_CORES, SPARK_APPLICATION_ID, SPARK_EXECUTOR_POD_IP (as its hostname),
    SPARK_RESOURCE_PROFILE_ID and SPARK_EXECUTOR_POD_NAME as arguments;
- SPARK_USER, SPARK_LOCAL_DIRS, PYSPARK_PYTHON, PYSPARK_DRIVER_PYTHON and all others: left to the
  process, which inherits them;
- HADOOP_HOME, HADOOP_CONF_DIR and K8S_SPARK_LOG_PATH: Hadoop's class path and a copy of the log. No
  pod here has them; one that had would be refused, not played wrongly.

Left out, for it has no meaning outside a container: the line in /etc/passwd for a user without
one (SPARK_USER_NAME), and tini, which is the parent of the command there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOME = "/opt/spark"  # the image's SPARK_HOME
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
NOT_PLAYED = ("HADOOP_HOME", "HADOOP_CONF_DIR", "K8S_SPARK_LOG_PATH")
_JAVA_OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")


def entered(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command that the image runs for a container with these arguments and variables."""
    present = [name for name in NOT_PLAYED if name in environment]
    if present:
        raise NotImplementedError(f"{', '.join(present)}: not played here")
    part, *rest = arguments
    if part == "driver":
        return _driver(rest, environment)
    if part == "executor":
        return _executor(environment)
    raise NotImplementedError(f"{part}: neither a driver nor an executor")


def _driver(rest: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    address = environment["SPARK_DRIVER_BIND_ADDRESS"]
    return [
        f"{environment['SPARK_HOME']}/bin/spark-submit",
        *("--conf", f"spark.driver.bindAddress={address}"),
        *("--deploy-mode", "client"),
        *rest,
    ]


def _executor(environment: Mapping[str, str]) -> list[str]:
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    options = {
        int(found[1]): value
        for name, value in environment.items()
        if (found := _JAVA_OPTION.fullmatch(name))
    }
    return [
        f"{environment['JAVA_HOME']}/bin/java",
        *(options[number] for number in sorted(options)),
        *(f"-Xms{memory}", f"-Xmx{memory}"),
        *("-cp", _class_path(environment)),
        BACKEND,
        *("--driver-url", environment["SPARK_DRIVER_URL"]),
        *("--executor-id", environment["SPARK_EXECUTOR_ID"]),
        *("--cores", environment["SPARK_EXECUTOR_CORES"]),
        *("--app-id", environment["SPARK_APPLICATION_ID"]),
        *("--hostname", environment["SPARK_EXECUTOR_POD_IP"]),
        *("--resourceProfileId", environment["SPARK_RESOURCE_PROFILE_ID"]),
        *("--podName", environment["SPARK_EXECUTOR_POD_NAME"]),
    ]


def _class_path(environment: Mapping[str, str]) -> str:
    """As the image puts it together; an empty part is one there, too."""
    home = environment["SPARK_HOME"]
    parts = [
        environment.get("SPARK_CONF_DIR", f"{home}/conf"),
        environment.get("SPARK_CLASSPATH", ""),
        f"{home}/jars/*",
    ]
    if extra := environment.get("SPARK_EXTRA_CLASSPATH"):
        parts.append(extra)
    return ":".join([*parts, environment.get("SPARK_DIST_CLASSPATH", "")])
