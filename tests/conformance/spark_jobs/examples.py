"""The examples of docs/spark.md on a real API server, by the real Spark: what each gang then is.

kwok plays the pods, for what counts here is which gang Tutti makes of an application and what it
holds; `job` runs one of them for true.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...harness.controlplane import toolchain
from ...harness.rig import GROUP_LABEL
from ..spark_sizes.asked import NAMESPACE, Door
from . import page
from .job import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...harness.rig import Rig
    from ..spark_sizes.pins import Pin

_NO_WAIT = "spark.scheduler.maxRegisteredResourcesWaitingTime=1s"
_END_SECONDS = 120.0  # until an idle pyspark has said goodbye to its executors
_OPERATORS = "sparkoperator.k8s.io"
_KIND = f"sparkapplications.{_OPERATORS}"
_MODULE = "github.com/kubeflow/spark-operator/v2"
_PINNED = Path(__file__).with_name("crd")  # its go.mod


def executed(pin: Pin, folder: Path) -> Iterator[str]:
    """Run them one after another; what came of each, in a sentence."""
    with cluster("controller-manager") as rig:
        door = Door(rig.plane)
        shell = page.Shell.opened(pin, door, folder)
        yield _has_no_room(rig, shell)
        rig.nodes(4, cpu=2, memory="8Gi")
        yield _dynamic(rig, shell)
        yield _explicit(rig, shell)
        yield _operated(rig, shell)
        yield _client(rig, shell)


def _has_no_room(rig: Rig, shell: page.Shell) -> str:
    """What an autoscaler could see of an application that waits: its driver, and nothing else."""
    shell.run(page.command("--name pi"))
    with _driver(rig, "pi") as driver:
        name = driver["metadata"]["name"]
        rig.until(
            lambda: rig.pod_says(name, NAMESPACE).get("reason") == "Unschedulable", "it waits"
        )
        assert len(rig.pods(namespace=NAMESPACE)) == 1
        found = json.loads(rig.plane.kubectl(*_words(page.command("kubectl get ptg"))))
        (group,) = found["items"]
        said = next(
            condition
            for condition in group["status"]["conditions"]
            if condition["type"] == "Reserved"
        )
        assert group["status"]["members"]["needed"] == 4
    return f"pi, without a node: {said['reason']}: {said['message']}"


def _words(line: str) -> list[str]:
    """The command as our kubectl takes it: as data, in the applications' namespace."""
    return [*shlex.split(line)[1:], "-n", NAMESPACE, "-o", "json"]


def _dynamic(rig: Rig, shell: page.Shell) -> str:
    shell.run(page.command("--name etl"))
    with _driver(rig, "etl") as driver:
        executors = _held(rig, driver)
        group = rig.group(driver["metadata"]["labels"]["spark-app-selector"], NAMESPACE)
        (role,) = [each for each in group["spec"]["roles"] if each["name"] == "executor"]
        bounds = (role["minMember"], role["maxMember"])
        assert (executors, bounds) == (2, (2, 8))
    return f"dynamic allocation: room for {executors} executors, of {bounds[0]} to {bounds[1]}"


def _explicit(rig: Rig, shell: page.Shell) -> str:
    group = page.manifest("PodGroup")
    rig.plane.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=json.dumps(group))
    shell.run(page.command("--name nightly"))
    name = group["metadata"]["name"]
    with _driver(rig, "nightly") as driver:
        executors = _held(rig, driver)
        (held,) = rig.reservations(NAMESPACE)
        assert (held["spec"]["podGroup"]["name"], executors) == (name, 2)
    rig.delete("podgroup", name, NAMESPACE)
    rig.until(lambda: not rig.reservations(NAMESPACE), "the room is given back")
    return f"PodGroup {name}: room for {executors} executors"


def _operated(rig: Rig, shell: page.Shell) -> str:
    """The API server takes the page's SparkApplication, and what the operator would submit starts.

    The operator itself does not run here: its CRD is its own, its spark-submit is told below.
    """
    app = page.manifest("SparkApplication")
    rig.plane.kubectl("create", "-f", str(_definition()))
    rig.until(lambda: _is_served(rig), "its CRD is established")
    rig.plane.kubectl("create", "--validate=strict", "-f", "-", input=json.dumps(app))
    shell.run(shlex.join(submitted(app, shell)))
    with _driver(rig, "operated") as driver:
        executors = _held(rig, driver)
        group = rig.group(driver["metadata"]["labels"]["spark-app-selector"], NAMESPACE)
        assert group["metadata"]["labels"][f"{_OPERATORS}/app-name"] == "operated"
    assert executors == 2
    return f"spark-operator: room for {executors} executors"


def _is_served(rig: Rig) -> bool:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_KIND}"
    lines = rig.plane.request("GET", path).get("status", {}).get("conditions") or []
    return any(line["type"] == "Established" and line["status"] == "True" for line in lines)


def _definition() -> Path:
    """The CRD of the operator, in its Go module."""
    command = [str(toolchain.go_for("1.25")), "mod", "download", "-json", _MODULE]
    done = subprocess.run(
        command,
        cwd=_PINNED,
        env=toolchain.environment(),
        stdout=subprocess.PIPE,
        check=True,
    )
    folder = Path(json.loads(done.stdout)["Dir"])
    return folder / "config" / "crd" / "bases" / f"{_OPERATORS}_sparkapplications.yaml"


def submitted(app: Mapping[str, Any], shell: page.Shell) -> list[str]:
    """The operator's spark-submit of an application that says what the page's says, and no more.

    Its own are the labels; by buildSparkSubmitArgs in its internal/controller/sparkapplication.
    """
    spec = dict(app["spec"])
    conf: dict[str, str] = {"spark.kubernetes.namespace": app["metadata"]["namespace"]}
    conf |= {"spark.kubernetes.container.image": spec.pop("image")}
    conf |= {"spark.kubernetes.submission.waitAppCompletion": "false"} | spec.pop("sparkConf")
    name = app["metadata"]["name"]
    for part in ("driver", "executor"):
        given = dict(spec.pop(part))
        labels = f"spark.kubernetes.{part}.label.{_OPERATORS}"
        conf |= {f"{labels}/app-name": name, f"{labels}/launched-by-spark-operator": "true"}
        if "serviceAccount" in given:
            account = "spark.kubernetes.authenticate.driver.serviceAccountName"
            conf[account] = given.pop("serviceAccount")
        conf |= {f"spark.{part}.{key}": str(given.pop(key)) for key in ("cores", "memory")}
        if part == "executor":
            conf["spark.executor.instances"] = str(given.pop("instances"))
        assert not given, f"not submitted here: {given}"
    file = spec.pop("mainApplicationFile")
    words = ["spark-submit", "--master", f"k8s://{shell.variables['API_SERVER']}"]
    words += ["--deploy-mode", spec.pop("mode"), "--name", name]
    assert set(spec) == {"type", "sparkVersion"}, f"not submitted here: {spec}"
    return [*words, *(w for key, value in conf.items() for w in ("--conf", f"{key}={value}")), file]


def _client(rig: Rig, shell: page.Shell) -> str:
    """A pyspark that is left as it starts: its first executor makes the gang of all."""
    prompt = page.Shell({**shell.variables, "PYSPARK_DRIVER_PYTHON_OPTS": "-i"}, shell.folder)
    # Nothing runs in these executors, so none registers: the prompt does not wait for them.
    process = prompt.begin(f"{page.command('pyspark ')} --conf {_NO_WAIT}")
    try:
        rig.until(lambda: rig.bound(namespace=NAMESPACE) == 4, "its executors are bound", 120)
        (group,) = _groups(rig)
        (role,) = group["spec"]["roles"]
        assert (role["name"], role["minMember"]) == ("executor", 4)
        process.communicate("exit()\n", timeout=_END_SECONDS)
    finally:
        process.kill()
        process.wait()
    rig.until(lambda: not rig.pods(namespace=NAMESPACE), "its executors are gone")
    return f"pyspark: a gang of {role['minMember']} executors"


@contextmanager
def _driver(rig: Rig, app: str) -> Iterator[Mapping[str, Any]]:
    """The driver of an application, which goes afterwards, and everything of it."""

    def seen() -> list[dict[str, Any]]:
        pods = rig.pods(namespace=NAMESPACE)
        return [pod for pod in pods if pod["metadata"]["labels"].get("spark-app-name") == app]

    (driver,) = rig.until(seen, f"the driver of {app} is there")
    yield driver
    rig.delete("pod", driver["metadata"]["name"], NAMESPACE)
    rig.until(lambda: not rig.pods(namespace=NAMESPACE), f"{app} is gone")
    if GROUP_LABEL not in driver["metadata"]["labels"]:
        rig.until(lambda: not _groups(rig) and not rig.reservations(NAMESPACE), "with its PodGroup")


def _held(rig: Rig, driver: Mapping[str, Any]) -> int:
    """For how many executors room is held once the driver is bound."""
    name = driver["metadata"]["name"]
    rig.until(lambda: rig.pod(name, NAMESPACE)["spec"].get("nodeName"), "the driver is bound")
    (held,) = rig.until(lambda: rig.reservations(NAMESPACE), "room is held")
    return sum(each.get("slots", {}).get("executor", 0) for each in held["spec"]["placement"])


def _groups(rig: Rig) -> list[dict[str, Any]]:
    path = f"/apis/tutti.dev/v1alpha1/namespaces/{NAMESPACE}/podgroups"
    return list(rig.plane.request("GET", path)["items"])
