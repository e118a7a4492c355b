"""The layers and what each may touch, read from the source; the CRDs against the wire models."""

import ast
import operator
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from pydantic import BaseModel

from tutti.kube.wire import objects

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "operator" / "tutti"

# What a layer may import; ``strategies`` stand beside ``settings`` for their names alone.
BELOW: Mapping[str, frozenset[str]] = {
    layer: frozenset(allowed.split())
    for layer, allowed in {
        "model": "",
        "strategies": "model",
        "planning": "model strategies",
        "kube": "model",
        "spark": "model kube",
        "store": "model kube",
        "occupancy": "model",
        "neighbours": "model",
        "apps": "model kube",
        "bereft": "model kube",
        "refusals": "model kube",
        "gangs": "model kube planning apps",
        "claimants": "model",
        "attaching": "model claimants occupancy",
        "catalogue": "model attaching claimants",
        "storage": "model kube store attaching catalogue claimants occupancy",
        "world": "model kube store bereft occupancy neighbours gangs refusals storage",
        "election": "model kube",
        "binding": "model kube planning world refusals",
        "reserving": "model kube world refusals",
        "adopting": "model kube world election refusals reserving",
        "freeing": "model kube planning world refusals reserving binding",
        "commit": (
            "model kube planning world election adopting binding freeing refusals reserving"
        ),
        "silence": "model kube",
        "reporting": "model kube planning world reserving silence",
        "evicting": "model kube planning world reporting",
        "declaring": "model kube spark world",
        "feeds": "model kube world",
        "dumps": "model kube",
        "metrics": "model kube planning",
        "overdue": "model planning strategies",
        "cycle": (
            "model kube planning strategies world commit declaring dumps evicting overdue "
            "refusals reserving reporting metrics"
        ),
        "replay": "model kube planning store world",
        "takeover": "model kube world cycle",
        "pulse": "model kube election cycle metrics",
        "demand": "model kube",
        "handlers": "model kube world feeds demand",
        "probes": "",
        "settings": "model strategies",
        "logs": "model",
        "main": (
            "model kube strategies world feeds election cycle dumps takeover pulse demand handlers "
            "probes settings metrics"
        ),
        "cli": "model kube spark planning strategies world replay feeds main settings logs",
        "__main__": "cli",
        "__init__": "",
    }.items()
}

CORE_BANS = [
    "kopf",
    "pydantic",
    "httpx",
    "aiohttp",
    "kr8s",
    "kubernetes",
    "yaml",
    "asyncio",
    "logging",
    "random",
    "time",
    "os",
    "subprocess",
    "socket",
    "threading",
]

# The engine is a process with a time limit: why that is still a function is said in its docstring.
EXEMPT: Mapping[str, frozenset[str]] = {
    "strategies.ilp": frozenset({"time"}),
    "strategies.ruled": frozenset({"time"}),
    "strategies.search": frozenset({"time"}),
    "strategies.work": frozenset({"time"}),
    "strategies.engine": frozenset({"subprocess", "time"}),
}

# Who may import these at all.
ONLY: Mapping[str, frozenset[str]] = {
    "kopf": frozenset({"demand", "handlers", "main"}),
    "pydantic": frozenset(
        {
            "kube.wire.base",
            "kube.wire.objects",
            "kube.wire.pods",
            "kube.wire.reading",
            "kube.wire.storage",
            "settings",
        }
    ),
    "aiohttp": frozenset({"kube.access", "kube.client", "kube.unreached", "demand", "probes"}),
    "kubernetes": frozenset({"kube.access"}),
    "prometheus_client": frozenset({"metrics"}),
    "pulp": frozenset({"strategies.engine", "strategies.program", "strategies.rulerows"}),
    "ortools": frozenset({"strategies.flow"}),
}

# The cycle's last net, and the code of strangers, which may raise anything.
MAY_CATCH_EVERYTHING = {"pulse": 1, "strategies.outside": 2}

CLOCKS = {"time", "random", "secrets", "uuid"}
MAY_KNOW_THE_TIME = {
    *("main", "cli", "pulse"),
    *("strategies.engine", "strategies.ilp", "strategies.ruled", "strategies.search"),
    "strategies.work",
}


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


def _layer(module: str) -> str:
    return module.split(".", maxsplit=1)[0]


def test_imports_are_read_as_python_reads_them() -> None:
    assert Import("planning.plan", "strategies.problem.Budget", is_ours=True) in _imports(
        "planning.plan"
    )
    assert Import("strategies", "strategies.bestfit.BestFit", is_ours=True) in _imports(
        "strategies"
    )
    assert Import("cycle", "world.World", is_ours=True) in _imports("cycle")
    assert Import("cycle", "asyncio", is_ours=False) in _imports("cycle")


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_lies_below_it(module: str) -> None:
    layer = _layer(module)
    for found in _imports(module):
        if found.is_ours:
            target = _layer(found.names)
            is_fact = target.startswith("__")  # the version
            assert is_fact or target == layer or target in BELOW[layer], found


@pytest.mark.parametrize("module", MODULES)
def test_outside_packages_stay_where_they_belong(module: str) -> None:
    for found in _imports(module):
        package = found.names.split(".")[0]
        if found.is_ours:
            continue
        if _layer(module) in ("planning", "strategies", "model"):
            assert package not in CORE_BANS or package in EXEMPT.get(module, ()), found
        assert module in ONLY.get(package, (module,)), found
        if _layer(module) == "model":
            assert package in sys.stdlib_module_names, found


@pytest.mark.parametrize("module", MODULES)
def test_time_and_chance_come_in_from_above(module: str) -> None:
    if module in MAY_KNOW_THE_TIME or _layer(module) == "cli":
        return
    for found in _imports(module):
        assert found.names.split(".")[0] not in CLOCKS, found
    for at in ast.walk(MODULES[module]):
        if isinstance(at, ast.Attribute):
            assert at.attr not in ("now", "utcnow", "today"), f"{module}:{at.lineno}"


def test_settings_are_read_by_cli_and_main_alone() -> None:
    readers = {
        module
        for module in MODULES
        for found in _imports(module)
        if found.is_ours and found.names.startswith("settings")
    }
    assert {_layer(module) for module in readers} <= {"cli", "main"}


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
    crd = yaml.safe_load((ROOT / "crds" / f"{name}.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]
    return found


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
    _compare("spec", _schema("podgroup")["spec"], objects.PodGroupSpec)


def test_the_reservation_crd_is_what_is_read() -> None:
    _compare("spec", _schema("reservation")["spec"], objects.ReservationSpec)


def test_the_status_that_is_written_is_the_one_the_crd_knows() -> None:
    from tutti.model.cluster import Gang  # noqa: PLC0415 - only this test writes a status
    from tutti.model.keys import GangKey, Uid  # noqa: PLC0415 - likewise
    from tutti.planning import status  # noqa: PLC0415 - likewise

    made = status.status_of(
        Gang(GangKey("ml", "a"), Uid("u"), 1), None, None, {}, {}, scheduler="tutti"
    )
    written: Any = status.merged(made, {}, "2026-01-01T00:00:00Z", keep_sentences=False)
    schema = _schema("podgroup")["status"]["properties"]
    assert set(written) == set(schema)
    assert set(written["members"]) == set(schema["members"]["properties"])
    line = schema["conditions"]["items"]
    assert set(written["conditions"][0]) == set(line["properties"])
    assert set(line["required"]) <= set(written["conditions"][0])
