"""What the published image does with a container's arguments and variables, without Spark."""

from __future__ import annotations

import pytest

from .image import BACKEND, entered
from .processes import Paths

EXECUTOR = {
    "JAVA_HOME": "/java",
    "SPARK_HOME": "/spark",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_CONF_DIR": "/pod/conf",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@pi-driver-svc.spark.svc:7078",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_ID": "2",
    "SPARK_EXECUTOR_MEMORY": "600m",
    "SPARK_EXECUTOR_POD_IP": "127.64.0.2",
    "SPARK_EXECUTOR_POD_NAME": "pi-exec-2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def test_a_driver_is_submitted_in_client_mode_bound_to_its_own_address() -> None:
    there = {"SPARK_HOME": "/spark", "SPARK_DRIVER_BIND_ADDRESS": "127.64.0.1"}
    assert entered(("driver", "--class", "Main", "local:///app.jar", "7"), there) == [
        *("/spark/bin/spark-submit", "--conf", "spark.driver.bindAddress=127.64.0.1"),
        *("--deploy-mode", "client", "--class", "Main", "local:///app.jar", "7"),
    ]


def test_an_executor_is_a_jvm_with_the_pods_memory_options_and_names() -> None:
    options = {f"SPARK_JAVA_OPT_{n}": f"-Dopt={n}" for n in (10, 9, 0)}
    command = entered(("executor",), {**EXECUTOR, **options})
    assert command[:4] == ["/java/bin/java", "-Dopt=0", "-Dopt=9", "-Dopt=10"]
    assert command[4:9] == ["-Xms600m", "-Xmx600m", "-cp", "/pod/conf::/spark/jars/*:", BACKEND]
    said = dict(zip(command[9::2], command[10::2], strict=True))
    assert said == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "2",
        "--cores": "1",
        "--app-id": "spark-1",
        "--hostname": "127.64.0.2",
        "--resourceProfileId": "0",
        "--podName": "pi-exec-2",
    }


def test_class_paths_of_the_pod_come_in_the_images_order() -> None:
    more = {"SPARK_CLASSPATH": "/a", "SPARK_EXTRA_CLASSPATH": "/b", "SPARK_DIST_CLASSPATH": "/c"}
    command = entered(("executor",), {**EXECUTOR, **more})
    assert command[command.index("-cp") + 1] == "/pod/conf:/a:/spark/jars/*:/b:/c"


@pytest.mark.parametrize("name", ["HADOOP_CONF_DIR", "K8S_SPARK_LOG_PATH"])
def test_what_is_not_played_is_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match=name):
        entered(("executor",), {**EXECUTOR, name: "/etc"})
    with pytest.raises(NotImplementedError, match="bash"):
        entered(("bash",), EXECUTOR)


def test_paths_of_a_container_are_those_of_its_folder_here() -> None:
    """What is mounted below the image's own folder comes before that; names that go on do not."""
    paths = Paths(
        {"/opt/spark": "/here/pyspark", "/opt/spark/conf": "/pod/opt/spark/conf", "/var": "/pod/v"}
    )
    moved = {
        "/opt/spark/conf/spark.properties": "/pod/opt/spark/conf/spark.properties",
        "local:///opt/spark/examples/pi.py": "local:///here/pyspark/examples/pi.py",
        "/opt/spark": "/here/pyspark",
        "/var/a,/var/b": "/pod/v/a,/pod/v/b",
        "a=/opt/spark:/data/opt/spark": "a=/here/pyspark:/data/opt/spark",
        "/opt/spark-4/jars": "/opt/spark-4/jars",
        "/opt/spark/config": "/here/pyspark/config",
    }
    assert {text: paths.moved(text) for text in moved} == moved
