"""Spark applications start whole, beside a scheduler that knows nothing of their executors.

Pods and ConfigMaps are made as Spark makes them; what Spark really asks for is compared in
`tests/conformance/spark_sizes`. One cluster for all of these, with the judge's verdict at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..harness import rig as rigs
from ..harness.rig import Rig, pod_group
from .sparkapps import App, Drivers

if TYPE_CHECKING:
    from collections.abc import Iterator

APPS, EXECUTORS, BATCH = 10, 4, 2
NODES, CPUS = 11, 2  # room for 10 drivers and 12 executors
DEADLOCK = 180.0  # seconds
DRIVER = {"name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"}  # runs elsewhere


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A cluster with both schedulers."""
    enabled = {"TUTTI_SPARK_ENABLED": "true"}
    with Rig.start(
        *("scheduler", "controller-manager"), values=["spark.enabled=true"], environment=enabled
    ) as started:
        yield started


def submitted(rig: Rig, scheduler: str, apps: int = APPS, nodes: int = NODES) -> Drivers:
    """Applications in a namespace and on nodes of their own."""
    pool = f"pool-{scheduler}"
    rig.plane.create_namespace(pool)
    rig.nodes(nodes, pool, cpu=CPUS, memory="16Gi", labels={"pool": pool})
    drivers = Drivers(rig)
    for number in range(apps):
        drivers.submit(App(f"app-{number}", pool, scheduler, pool, EXECUTORS, BATCH))
    return drivers


def test_ten_applications_that_deadlock_elsewhere_all_finish(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default scheduler lets every driver in, and none of them gets all its executors."""
    elsewhere = submitted(rig, "default-scheduler")
    space = "pool-default-scheduler"
    rig.until(lambda: rig.bound(namespace=space) == APPS, "every driver is bound")
    rig.until(lambda: elsewhere.stuck == APPS, "every driver runs")
    while len(rig.pods(namespace=space)) < APPS * (1 + EXECUTORS):
        finished = elsewhere.turn()
    rig.until(lambda: rig.bound(namespace=space) == NODES * CPUS, "all room is taken")
    here = submitted(rig, "tutti")
    rig.until(lambda: here.turn() == APPS, "all applications have finished", DEADLOCK)
    with capsys.disabled():
        print(
            f"\ndefault scheduler: {finished} of {APPS} finished, {elsewhere.stuck} with a driver "
            f"and no full set of executors; Tutti: {APPS} of {APPS} finished"
        )
    assert elsewhere.stuck >= 1
    assert here.stuck == 0
    rig.until(
        lambda: rig.group("spark-app-0", "pool-tutti")["status"]["phase"] == "Finished",
        "what is finished says so",
    )


def test_a_driver_waits_for_its_configuration_and_says_what_is_wrong_with_it(rig: Rig) -> None:
    """Nothing is guessed: not the number of executors, and not what they will ask for."""
    rig.plane.create_namespace("wrong")
    rig.nodes(1, "wrong", cpu=8, memory="16Gi", labels={"pool": "wrong"})
    app = App("etl", "wrong", "tutti", "wrong", EXECUTORS, BATCH)
    rig.create(app.driver())

    def said() -> str:
        return str(rig.pod_says("etl-driver", "wrong").get("message", ""))

    rig.until(lambda: said() == "ConfigMap etl-conf-map does not exist yet", "it says so")
    assert rig.pod_says("etl-driver", "wrong")["reason"] == "WaitingForConfiguration"
    written = app.config_map()
    written["data"]["spark.properties"] += "spark.executor.memory=1.5g\n"
    rig.create(written)
    rig.until(
        lambda: "spark.executor.memory=1.5g: is not a size" in said(), "it names the property"
    )
    assert rig.bound(namespace="wrong") == 0
    rig.plane.apply([app.config_map()])
    rig.until(lambda: rig.bound(namespace="wrong") == 1, "the driver starts")
    (held,) = rig.reservations("wrong")
    assert held["spec"]["podGroup"]["name"] == app.id
    assert held["spec"]["placement"][0]["slots"] == {"executor": EXECUTORS}
    drivers = Drivers(rig, [app])
    rig.until(lambda: drivers.turn() == 1, "it finishes")


def test_in_client_mode_few_pending_executors_at_a_time_do_not_deadlock(rig: Rig) -> None:
    """As with spark.kubernetes.allocation.maxPendingPods=1: the next comes once the last runs."""
    rig.plane.create_namespace("client")
    rig.nodes(1, "client", cpu=EXECUTORS, memory="16Gi", labels={"pool": "client"})
    app = App("shell", "client", "tutti", "client", EXECUTORS, 1)
    for number in range(1, EXECUTORS + 1):
        made = app.executor(number, {"metadata": DRIVER})
        del made["metadata"]["ownerReferences"]
        made["metadata"]["annotations"] = {"tutti.dev/executors": str(EXECUTORS)}
        rig.create(made)
        rig.until(lambda n=number: rig.bound(namespace="client") == n, "it starts")  # type: ignore[misc]
    roles = rig.group(app.id, "client")["spec"]["roles"]
    assert [(role["name"], role["minMember"]) for role in roles] == [("executor", EXECUTORS)]


def test_an_explicit_podgroup_comes_before_the_automatic_one(rig: Rig) -> None:
    """Named on both of Spark's kinds of pods, by its own properties for labels."""
    rig.plane.create_namespace("explicit")
    rig.nodes(1, "explicit", cpu=8, memory="16Gi", labels={"pool": "explicit"})
    app = App("etl", "explicit", "tutti", "explicit", 2, 2)
    rig.create(pod_group("mine", namespace="explicit", driver=1, executor=2))
    driver = app.driver()
    pods = [driver, *(app.executor(n, {"metadata": DRIVER}) for n in (1, 2))]
    for pod in pods:
        pod["metadata"]["labels"]["tutti.dev/pod-group"] = "mine"
        pod["metadata"].pop("ownerReferences", None)
    rig.create(*pods)
    rig.until_bound("mine", 3, "explicit")
    path = "/apis/tutti.dev/v1alpha1/namespaces/explicit/podgroups"
    assert [item["metadata"]["name"] for item in rig.plane.request("GET", path)["items"]] == [
        "mine"
    ]


class Elastic:
    """An application with dynamic allocation, on a node that nobody else may use."""

    def __init__(self, rig: Rig, space: str, *, cpu: int, least: int, most: int) -> None:
        self.rig, self.space = rig, space
        rig.plane.create_namespace(space)
        rig.nodes(1, space, cpu=cpu, memory="64Gi", labels={"pool": space})
        said = {"enabled": "true", "minExecutors": str(least), "maxExecutors": str(most)}
        more = {f"spark.dynamicAllocation.{name}": value for name, value in said.items()}
        self.app = App("etl", space, "tutti", space, least, least, more)
        Drivers(rig).submit(self.app)

    def make(self, *numbers: int) -> None:
        """Make executors, as the driver does."""
        driver = self.rig.pod("etl-driver", self.space)
        self.rig.create(*(self.app.executor(number, driver) for number in numbers))

    def remove(self, *numbers: int) -> None:
        """Delete executors, as the driver does."""
        for number in numbers:
            self.rig.delete("pod", f"etl-exec-{number}", self.space)

    def rival(self, name: str, cpu: int = 1) -> None:
        """Make a pod of nobody's that wants the room as well."""
        spec = {"nodeSelector": {"pool": self.space}}
        self.rig.create(rigs.pod(name, namespace=self.space, spec=spec, cpu=cpu))

    def runs(self, name: str) -> bool:
        """Whether a pod is there and runs."""
        return any(
            pod["metadata"]["name"] == name and pod["status"]["phase"] == "Running"
            for pod in self.rig.pods(namespace=self.space)
        )

    def until_run(self, *names: str) -> None:
        """Wait until all of these run."""
        self.rig.until(lambda: all(map(self.runs, names)), f"{', '.join(names)} run")

    def until_wait(self, name: str) -> None:
        """Wait until a pod was told that it waits."""
        self.rig.until(lambda: self.rig.pod_says(name, self.space), f"{name} waits")

    def ails(self) -> str:
        """Why it is not healthy; empty while it is."""
        line = self.rig.condition(self.app.id, "Healthy", self.space)
        return "" if line["status"] == "True" else str(line["reason"])


def test_dynamic_allocation_goes_up_and_down_and_below_its_least_and_up_again(rig: Rig) -> None:
    """Its least starts whole; what is beyond comes and goes, and loses nothing by it."""
    elastic = Elastic(rig, "dynamic", cpu=6, least=2, most=6)
    # The least is the gang.
    elastic.until_run("etl-driver")
    role = rig.group(elastic.app.id, elastic.space)["spec"]["roles"][1]
    assert (role["name"], role["minMember"], role["maxMember"]) == ("executor", 2, 6)
    (held,) = rig.reservations(elastic.space)
    assert held["spec"]["placement"][0]["slots"] == {"executor": 2}
    elastic.make(1, 2)
    elastic.until_run("etl-exec-1", "etl-exec-2")
    # Up, as far as there is room; who is removed makes room for who waits, gangs before extras.
    elastic.make(3, 4, 5, 6)
    rig.until(lambda: rig.bound(namespace=elastic.space) == 6, "the node is full")
    (last,) = (
        n for n in (3, 4, 5, 6) if "nodeName" not in rig.pod(f"etl-exec-{n}", elastic.space)["spec"]
    )
    elastic.rival("other")
    elastic.until_wait("other")
    elastic.remove(1)
    elastic.until_run("other")
    assert not elastic.runs(f"etl-exec-{last}")
    elastic.remove(2)
    elastic.until_run(f"etl-exec-{last}")
    # Down to the least: nothing is lost.
    elastic.remove(3, 4)
    elastic.rival("large", 2)
    elastic.until_run("large")
    assert elastic.ails() == ""
    # Below it: that is said, but room is held for nobody who does not exist.
    elastic.remove(5)
    rig.until(lambda: elastic.ails() == "MemberLost", "it is said")
    elastic.rival("next")
    elastic.until_run("next")
    # Who comes for a lost one comes before all others.
    elastic.rival("late")
    elastic.until_wait("late")
    elastic.make(7)
    elastic.until_wait("etl-exec-7")
    rig.delete("pod", "next", elastic.space)
    elastic.until_run("etl-exec-7")
    assert not elastic.runs("late")
    rig.until(lambda: elastic.ails() == "", "it is whole again")
    # Up again; then the end gives all of it back.
    rig.delete("pod", "large", elastic.space)
    elastic.until_run("late")
    elastic.make(8)
    elastic.until_run("etl-exec-8")
    elastic.remove(6, 7, 8)
    rig.plane.kubectl(
        *("patch", "pod", "etl-driver", "-n", elastic.space, "--subresource=status"),
        *("--type=merge", "-p", '{"status":{"phase":"Succeeded"}}'),
    )
    rig.until(
        lambda: rig.group(elastic.app.id, elastic.space)["status"]["phase"] == "Finished", "it ends"
    )
    for name in ("other", "late"):
        rig.delete("pod", name, elastic.space)
    elastic.rival("all", 6)
    elastic.until_run("all")


def test_drivers_that_other_tools_have_marked_are_gangs_until_they_are_deleted(rig: Rig) -> None:
    """By two older gang schedulers, and by the Spark operator, whose properties name no scheduler.

    What the first says makes room on the cheaper of two nodes.
    """
    space = "marked"
    rig.plane.create_namespace(space)
    for prefix, cost in (("dear", "90"), ("cheap", "10")):
        # No other node here has room for what the labels say.
        rig.nodes(1, prefix, cpu=50, memory="64Gi", labels={"pool": space, "cost": cost})
    unnamed = {"spark.kubernetes.scheduler.name": ""}
    apps = {
        name: App(name, space, "tutti", space, 2, 2, unnamed)
        for name in ("labelled", "noted", "operated")
    }
    drivers = {name: app.driver() for name, app in apps.items()}
    for name in ("labelled", "noted"):
        del drivers[name]["spec"]["volumes"]
    marks = {"executors": "2", "exec-cpu": "20", "exec-mem": "1"}
    drivers["labelled"]["metadata"]["labels"] |= marks
    notes = {"executor-count": "2", "executor-cpu": "1", "executor-mem": "1Gi"}
    noted = {f"spark-{name}": value for name, value in notes.items()}
    drivers["noted"]["metadata"]["annotations"] |= noted
    made_by = {"sparkoperator.k8s.io/app-name": "operated"}
    drivers["operated"]["metadata"]["labels"] |= made_by

    def slots(name: str) -> dict[str, int]:
        """For how many executors room is held, by node."""
        return {
            on["node"]: on["slots"]["executor"]
            for reservation in rig.reservations(space)
            if reservation["spec"]["podGroup"]["name"] == apps[name].id
            for on in reservation["spec"]["placement"]
            if "slots" in on
        }

    rig.create(drivers["labelled"])
    rig.until(lambda: slots("labelled") == {"cheap-000": 2}, "room is held where it is cheap")
    rig.create(drivers["noted"], drivers["operated"], apps["operated"].config_map())
    rig.until(lambda: rig.bound(namespace=space) == len(apps), "all drivers are bound")
    for name in apps:
        rig.until(lambda n=name: sum(slots(n).values()) == 2, f"room is held for {name}")  # type: ignore[misc]
        rig.delete("pod", f"{name}-driver", space)
    rig.until(lambda: not rig.reservations(space), "all of it is given back")
