"""The rooms of the operator and what each may touch; the CRDs and the models that read them.

A room is a package or a lone module directly below ``operator/tutti``.
"""

import ast
import operator
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from pydantic import BaseModel

from tutti.kube.gang_sources import pod_group
from tutti.kube.wire import objects
from tutti.kube.wire import queues as queue_fields

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "operator" / "tutti"

# From the top to the ground: a room imports from lower floors alone.
FLOORS = [
    {"cli"},
    {"console", "operator"},
    {"commit"},
    {"reporting", "spark", "whatif"},
    {"dump", "planning"},
    {"queues", "state", "verify"},
    {"filters", "kube"},
    {"gang"},
    {"model", "strategies"},
]
MOST_FLOORS = 10
MOST_ROOMS = 18  # decision 12 says why rooms and packages are counted separately
MOST_PACKAGES = 36  # lone modules included
MOST_MODULES = 12  # in a package

# Functions of values: no clock, no log, no API.
CORE = {"filters", "gang", "model", "planning", "queues", "strategies", "verify", "whatif"}
CORE_BANS = {
    *("aiohttp", "httpx", "kopf", "kr8s", "kubernetes", "pydantic", "yaml"),
    *("asyncio", "logging", "os", "random", "socket", "subprocess", "threading", "time"),
}
# An engine is a process with a time limit: why that is still a function is in its docstring.
EXEMPT = {
    "filters.devices.selectors": {"subprocess", "threading", "time"},
    "strategies.ilp.engine": {"subprocess", "time"},
    "strategies.ilp.inter_pod_search": {"time"},
    "strategies.ilp.levels": {"time"},
    "strategies.ilp.strategy": {"time"},
    "strategies.work": {"time"},
}
# What only the command line asks for stays out of the planner, and who checks shares no code with
# who plans.
NEVER = {
    "planning": {"verify", "whatif"},
    "verify": {"planning", "queues", "strategies", "whatif"},
}

# Outside packages, and the modules that may import them.
ONLY: Mapping[str, frozenset[str]] = {
    "kopf": frozenset({"operator.main", "operator.handlers", "operator.kopf_lists"}),
    "pydantic": frozenset(
        {
            *(
                f"kube.wire.{name}"
                for name in ("base", "devices", "objects", "pods", "queues", "reading", "storage")
            ),
            # The objects of a source, which has all of its API in its module.
            *(f"kube.gang_sources.{path.stem}" for path in SOURCE.glob("kube/gang_sources/*.py")),
            "operator.settings",
        }
    ),
    "aiohttp": frozenset(
        {
            *(
                "console.responses",
                "console.server",
                "kube.access",
                "kube.client",
                "kube.connection_errors",
            ),
            *("reporting.probes", "operator.kopf_lists"),
        }
    ),
    "kubernetes": frozenset({"kube.access"}),
    "prometheus_client": frozenset({"reporting.metrics"}),
    "pulp": frozenset(f"strategies.ilp.{name}" for name in ("engine", "inter_pod_rows", "program")),
    "ortools": frozenset({"strategies.flow"}),
    "cel_expr_python": frozenset({"filters.devices.environment"}),
}

# The cycle's last net, and the code of strangers, which may raise anything.
MAY_CATCH_EVERYTHING = {"operator.runner": 1, "strategies.plugins": 2}

# Environment variables reach the operator's other modules as plain values.
SETTINGS = "operator.settings"
MAY_READ_SETTINGS = {"operator.main"}

CLOCKS = {"time", "random", "secrets", "uuid"}
MAY_KNOW_THE_TIME = {"operator.main", "operator.planner", "operator.runner", *EXEMPT}


class Import(NamedTuple):
    """One import: where, and what, from the package's root or from outside."""

    module: str
    names: str  # dotted; relative to the package if ``is_ours``
    is_ours: bool


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        yield name, ast.parse(path.read_text())


MODULES = dict(_modules())
PACKAGES = {
    ".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.rglob("*/__init__.py")
}
ENTRIES = {"__init__", "__main__"}


def _imports(module: str) -> Iterator[Import]:
    for at in ast.walk(MODULES[module]):
        if isinstance(at, ast.Import):
            for alias in at.names:
                yield _absolute(module, alias.name)
        elif isinstance(at, ast.ImportFrom) and at.level == 0:
            yield _absolute(module, at.module or "")
        elif isinstance(at, ast.ImportFrom):
            here = [part for part in module.split(".") if part != "__init__"]
            keep = len(here) - at.level + (module in PACKAGES)
            base = [*here[:keep], *filter(None, (at.module or "").split("."))]
            for alias in at.names:
                yield Import(module, ".".join([*base, alias.name]), is_ours=True)


def _absolute(module: str, names: str) -> Import:
    package, _, rest = names.partition(".")
    return Import(module, rest if package == "tutti" else names, is_ours=package == "tutti")


def _room(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def _imported_rooms(module: str) -> set[str]:
    """The rooms that a module imports from, its own and the version aside."""
    rooms = {_room(imported.names) for imported in _imports(module) if imported.is_ours}
    return {room for room in rooms if not room.startswith("__")} - {_room(module)}


def _imported_modules(module: str) -> set[str]:
    names = {imported.names for imported in _imports(module) if imported.is_ours}
    found = {name if name in MODULES else name.rpartition(".")[0] for name in names}
    return (found & set(MODULES)) - {module}


def test_imports_are_read_as_python_reads_them() -> None:
    assert Import("planning.plan", "strategies.problem.Budget", is_ours=True) in _imports(
        "planning.plan"
    )
    assert Import("strategies", "strategies.best_fit.BestFit", is_ours=True) in _imports(
        "strategies"
    )
    cycle = set(_imports("operator.cycle"))
    assert Import("operator.cycle", "state.cluster_state.ClusterState", is_ours=True) in cycle
    assert Import("operator.cycle", "asyncio", is_ours=False) in cycle


def test_the_house_is_small_enough_to_know() -> None:
    rooms = {_room(module) for module in MODULES} - ENTRIES
    assert set.union(*FLOORS) == rooms
    assert len(rooms) <= MOST_ROOMS
    assert len(FLOORS) <= MOST_FLOORS
    lone = {module for module in MODULES if "." not in module} - PACKAGES - ENTRIES
    assert len(PACKAGES | lone) <= MOST_PACKAGES
    for package in PACKAGES:
        modules = {name for name in set(MODULES) - PACKAGES if name.rpartition(".")[0] == package}
        assert len(modules) <= MOST_MODULES, package


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_from_lower_floors_alone(module: str) -> None:
    if module in ENTRIES:
        return
    floor = next(i for i, rooms in enumerate(FLOORS) if _room(module) in rooms)
    assert _imported_rooms(module) <= set().union(*FLOORS[floor + 1 :])
    assert not _imported_rooms(module) & NEVER.get(_room(module), set())


@pytest.mark.parametrize("module", MODULES)
def test_settings_arrive_as_plain_values(module: str) -> None:
    if module not in MAY_READ_SETTINGS and _room(module) != "cli":
        assert SETTINGS not in _imported_modules(module)


def test_no_modules_import_one_another() -> None:
    graph = {module: _imported_modules(module) for module in MODULES}
    assert len([*TopologicalSorter(graph).static_order()]) == len(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_outside_packages_stay_where_they_belong(module: str) -> None:
    for imported in _imports(module):
        package = imported.names.split(".")[0]
        if imported.is_ours:
            continue
        if _room(module) in CORE:
            assert package not in CORE_BANS or package in EXEMPT.get(module, ()), imported
        assert module in ONLY.get(package, (module,)), imported
        if _room(module) == "model":
            assert package in sys.stdlib_module_names, imported


@pytest.mark.parametrize("module", MODULES)
def test_time_and_chance_come_in_from_above(module: str) -> None:
    if module in MAY_KNOW_THE_TIME or _room(module) == "cli":
        return
    for imported in _imports(module):
        assert imported.names.split(".")[0] not in CLOCKS, imported
    for at in ast.walk(MODULES[module]):
        if isinstance(at, ast.Attribute):
            assert at.attr not in ("now", "utcnow", "today"), f"{module}:{at.lineno}"


@pytest.mark.parametrize("module", MODULES)
def test_few_handlers_catch_everything(module: str) -> None:
    broad = [
        at
        for at in ast.walk(MODULES[module])
        if isinstance(at, ast.ExceptHandler)
        and (at.type is None or ast.unparse(at.type) in ("Exception", "BaseException"))
    ]
    assert len(broad) == MAY_CATCH_EVERYTHING.get(module, 0)


def test_the_source_root_does_not_shadow_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert Path(str(operator.__file__)).name == "operator.py"
    assert "tutti" not in str(operator.__file__)


# The wire models read these CRDs.

Schema = Mapping[str, Any]


def _schema(name: str) -> Schema:
    crd = yaml.safe_load((ROOT / "charts" / "tutti" / "crds" / f"{name}.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]["properties"]
    return schema


def _compare(where: str, schema: Schema, model: type[BaseModel]) -> None:
    """Every property is read under its name, and every field exists in the schema."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    assert set(schema["properties"]) == set(fields), where
    for name, inner in schema["properties"].items():
        within = _model_in(fields[name].annotation)
        body = inner.get("items", inner)
        if "properties" in body:
            assert within is not None, f"{where}.{name}"
            _compare(f"{where}.{name}", body, within)
        else:
            assert within is None, f"{where}.{name}"
        is_required = name in schema.get("required", ())
        assert is_required or not fields[name].is_required(), f"{where}.{name}"


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        if (found := _model_in(part)) is not None:
            return found
    return None


def test_the_pod_group_crd_is_what_is_read() -> None:
    _compare("spec", _schema("podgroup")["spec"], pod_group.PodGroupSpec)


def test_the_reservation_crd_is_what_is_read() -> None:
    _compare("spec", _schema("reservation")["spec"], objects.ReservationSpec)


def test_the_queue_crd_is_what_is_read() -> None:
    _compare("spec", _schema("queue")["spec"], queue_fields.QueueSpec)


def test_the_status_of_a_queue_that_is_written_is_the_one_the_crd_knows() -> None:
    from tutti.model.keys import Uid  # noqa: PLC0415 - only these tests write a status
    from tutti.model.queues import Queue, QueueMode  # noqa: PLC0415 - likewise
    from tutti.queues.tree import QueueTree  # noqa: PLC0415 - likewise
    from tutti.reporting import queue_status  # noqa: PLC0415 - likewise

    queue = Queue("q", Uid("u"), limits=(("cpu", 1000),), mode=QueueMode.SHADOW)
    conditions = queue_status.conditions(QueueTree.of([queue]), "q", (), is_empty=True)
    written: Any = queue_status.status(
        queue, queue_status.NO_USE, conditions, {}, generation=1, scheduler="tutti", at="now"
    )
    schema = _schema("queue")["status"]["properties"]
    assert {*written, "drainingSince", "pastUse", "queuesSince"} == set(schema)
    assert set(written["resources"][0]) == set(schema["resources"]["items"]["properties"])
    line = schema["conditions"]["items"]
    assert set(written["conditions"][0]) == set(line["properties"])


def test_the_status_that_is_written_is_the_one_the_crd_knows() -> None:
    from tutti.model.cluster import Gang  # noqa: PLC0415 - only this test writes a status
    from tutti.model.keys import GangKey, Uid  # noqa: PLC0415 - likewise
    from tutti.reporting import drafts, status  # noqa: PLC0415 - likewise

    made = status.status_of(
        Gang(GangKey("ml", "a"), Uid("u"), 1), None, None, {}, {}, scheduler="tutti"
    )
    made = replace(made, lost=status.LostWork(1, "u 2026-01-01T00:00:00Z"))
    written: Any = drafts.merged(made, {}, "2026-01-01T00:00:00Z", keep_sentences=False)
    schema = _schema("podgroup")["status"]["properties"]
    assert set(written) == set(schema)
    for part in ("members", "preemption"):
        assert set(written[part]) == set(schema[part]["properties"])
    line = schema["conditions"]["items"]
    assert set(written["conditions"][0]) == set(line["properties"])
    assert set(line["required"]) <= set(written["conditions"][0])
