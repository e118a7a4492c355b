"""Case by case: what Tutti computes of the properties, and what Spark then asks for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from tutti import spark

from . import declared
from .asked import Driver, Pods, submitted
from .cases import CASES, SUBMITTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from .asked import Door
    from .pins import Pin

# How properties begin that a driver in a pod has, and one that is started here has not.
OF_THE_POD = (
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.driver.resource.",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.submitInDriver",
    "spark.app.id",
    "spark.jars",
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One kind of pods in one case."""

    spark: str
    case: str
    what: str
    computed: Pods
    seen: Pods

    @property
    def is_equal(self) -> bool:
        """Whether Spark asked for what was computed."""
        return self.computed == self.seen


def compared(pin: Pin, cases: int, door: Door, folder: Path) -> Iterator[Compared]:
    """As many cases as asked for, in client mode; then those that are submitted."""
    driver = Driver(pin, door, folder / f"driver-{pin.name}.log")
    try:
        yield from _in_client_mode(pin, islice(CASES, cases), driver, door)
        for name in SUBMITTED:
            yield from _cluster_mode(pin, name, driver, door, folder)
        yield _declared(pin, driver, door, folder)
    finally:
        driver.close()


def sampled(pin: Pin, names: Sequence[str], door: Door, folder: Path) -> Iterator[Compared]:
    """The cases of these names alone, in client mode."""
    driver = Driver(pin, door, folder / f"driver-{pin.name}.log")
    try:
        yield from _in_client_mode(pin, names, driver, door)
    finally:
        driver.close()


def _in_client_mode(
    pin: Pin, names: Iterable[str], driver: Driver, door: Door
) -> Iterator[Compared]:
    for name in names:
        given = written({"spark.submit.deployMode": "client", **CASES[name]})
        yield _executors(pin, name, given, driver, door)


def _executors(pin: Pin, name: str, text: str, driver: Driver, door: Door) -> Compared:
    """Those of a context with the properties in this text."""
    properties = spark.read(text)
    app = spark.app(properties, pin.version)
    computed = Pods.computed(app.executor, app.executors)
    mine = {name: value for name, value in properties.items() if not name.startswith(OF_THE_POD)}
    with driver.context(mine) as application:
        pods = door.awaited(f"spark-role=executor,spark-app-selector={application}", computed.count)
    return Compared(pin.name, name, "executor", computed, Pods.seen(pods))


def _cluster_mode(
    pin: Pin, name: str, driver: Driver, door: Door, folder: Path
) -> Iterator[Compared]:
    """The driver that spark-submit makes, and executors by the ConfigMap that comes with it."""
    main, properties = SUBMITTED[name]
    file = folder / "spark.properties"
    waits = {"spark.kubernetes.submission.waitAppCompletion": "false"}
    given = written({**door.properties, **waits, **properties})
    file.write_text(given)
    submitted(pin, main, file, folder / f"submit-{pin.name}.log")
    (pod,) = door.awaited("spark-role=driver", 1)
    language = "python" if main.endswith(".py") else "java"
    before = spark.app(
        {**spark.read(given), "spark.kubernetes.resource.type": language}, pin.version
    )
    yield Compared(pin.name, name, "driver", Pods.computed(before.driver, 1), Pods.seen([pod]))
    mounted = door.config_map(pod)
    after = spark.app(spark.read(mounted), pin.version)
    yield Compared(
        pin.name,
        name,
        "ConfigMap",
        Pods.computed(after.executor, after.executors),
        Pods.computed(before.executor, before.executors),
    )
    yield _executors(pin, name, mounted, driver, door)
    door.forget(pod)


def _declared(pin: Pin, driver: Driver, door: Door, folder: Path) -> Compared:
    """The PodGroup of a driver whose executors are made from a pod template."""
    template = folder / "template.yml"
    template.write_text(declared.TEMPLATE)
    waits = {"spark.kubernetes.submission.waitAppCompletion": "false"}
    file = {declared.FILE: str(template)}
    given = written({**door.properties, **waits, **declared.PROPERTIES, **file})
    said, seen = declared.declared(pin, driver, door, folder, given)
    return Compared(pin.name, "cluster mode, a pod template", "PodGroup", said, seen)


def written(properties: Mapping[str, str]) -> str:
    """As a properties file, with what must be escaped escaped."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str) -> str:
    marked = "".join(f"\\{letter}" if letter in "\\ :=#!" else letter for letter in text)
    return "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in marked)
