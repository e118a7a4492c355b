"""The chart agrees with what it installs, as far as that can be told without Helm.

What Helm makes of it is in `tests/api/chart`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tutti import __version__
from tutti.cli import crd_files
from tutti.kube import gang_sources, kinds
from tutti.kube.calls import HAND_OVER, Right
from tutti.operator.settings import Settings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "tutti"
CRDS = CHART / "crds"


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def _template(name: str) -> Any:
    """A template as YAML: what is Helm's alone left out, other expressions replaced by a word."""
    text = re.sub(r"(?s)\{\{/\*.*?\*/\}\}", "", (CHART / "templates" / name).read_text())
    kept = [line for line in text.splitlines() if not re.fullmatch(r"\s*\{\{.*\}\}", line)]
    return yaml.safe_load(re.sub(r"\{\{.*?\}\}", "helm", "\n".join(kept)))


# What is granted for the whole cluster, where gangs are served, and where the Lease is.
ROLES = ("clusterrole.yaml", "_served.tpl", "role.yaml")


def _rules(*roles: str) -> list[Mapping[str, Any]]:
    read = (_template(role) for role in roles or ROLES)
    return [rule for one in read for rule in (one if isinstance(one, list) else one["rules"])]


def test_the_crds_of_the_chart_are_those_that_the_command_prints() -> None:
    """There is one copy: Helm finds it in the chart, and the wheel is built with it."""
    assert {path.resolve() for path in crd_files()} == {*CRDS.iterdir()}
    assert {path.name for path in CRDS.iterdir()} == {
        "podgroup.yaml",
        "queue.yaml",
        "reservation.yaml",
        "topology.yaml",
    }


def test_crds_one_after_the_other_stay_two() -> None:
    """`helm show crds` puts nothing between them: a file begins with the separator."""
    assert all(path.read_text().startswith("---\n") for path in CRDS.iterdir())


def test_chart_and_package_have_one_version() -> None:
    """The image's default tag is the package's version."""
    chart = _read(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_roles_grant_the_calls_that_the_client_makes_and_no_more() -> None:
    """A right too few fails at run time; a right too many is one that nobody asked for."""
    granted = [
        Right(group, resource, verb)
        for rule in _rules()
        for group in rule["apiGroups"]
        if group != "helm"  # of the gang sources that a value names
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]
    assert {right for right in granted if right.resource == "configmaps"} == {
        Right("", "configmaps", "get")
    }
    assert not any("resourceNames" in rule for rule in _rules(*ROLES[:2]))
    chosen = {r for s in gang_sources.OPTIONAL.values() if not s.is_default for r in s.rights}
    chosen |= {HAND_OVER}
    chosen -= {right for source in gang_sources.ALWAYS for right in source.rights}
    assert chosen < {*granted}  # where a value names the source: tests/api/chart has which
    granted = [right for right in granted if right not in chosen]
    named = {kind for source in gang_sources.DEFAULT for kind in source.kinds}
    streams = [kind.right(verb) for kind in named for verb in ("list", "watch")]
    assert sorted([*granted, *streams]) == sorted(kinds.rights())


@pytest.mark.parametrize("role", ROLES)
def test_every_rule_of_a_role_says_why(role: str) -> None:
    """A comment right above it."""
    lines = (CHART / "templates" / role).read_text().splitlines()
    above = [lines[at - 1].strip() for at, line in enumerate(lines) if "- apiGroups" in line]
    assert len(above) == len(_rules(role))
    assert all(line.startswith("# ") for line in above)


def _setting(value: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", value).lower()


def _schema() -> Any:
    return json.loads((CHART / "values.schema.json").read_text())


def test_what_is_installed_without_any_value_is_what_runs_without_any_variable() -> None:
    """Values repeat defaults of settings; a setting that few need is in the schema alone."""
    values = _read(CHART / "values.yaml")
    chosen = {_setting(name): value for name, value in values["settings"].items()}
    chosen["spark_enabled"] = values["spark"]["enabled"]  # which also grants rights
    chosen["devices_enabled"] = values["devices"]["enabled"]  # the same
    assert Settings.model_validate(chosen) == Settings()


# Where the chart is stricter than the operator, and why.
STRICTER: Mapping[str, Mapping[str, Any]] = {
    "strategy": {"minLength": 1},  # its name may be one that only the image knows
    "namespaces": {"uniqueItems": True},  # one Role each
    "gang_sources": {  # a rule each, made of the name of a CRD; an annotation needs none
        "uniqueItems": True,
        "items": {"type": "string", "pattern": "^[a-z0-9]+([.][-a-z0-9]+)+(/[-a-z]+)?$"},
    },
    "dump_directory": {"pattern": "^(/.*)?$"},  # a volume is mounted there
    "probe_port": {"minimum": 1},  # the kubelet has to be told which
}


def test_the_schema_bounds_every_setting_as_the_operator_does() -> None:
    """What Helm lets pass does not stop the operator, and nothing sound is refused."""
    described = Settings.model_json_schema()
    wanted = {}
    for name, field in described["properties"].items():
        target = field.get("$ref", "").rpartition("/")[2]
        kept = described["$defs"][target] if target else field
        bounds = {key: value for key, value in kept.items() if key not in SPOKEN}
        if "enum" in bounds:
            del bounds["type"]
        wanted[name] = {**bounds, **STRICTER.get(name, {})}
    bounded = dict(_schema()["properties"]["settings"]["properties"])
    bounded["sparkEnabled"] = _schema()["properties"]["spark"]["properties"]["enabled"]
    bounded["devicesEnabled"] = _schema()["properties"]["devices"]["properties"]["enabled"]
    assert {
        _setting(name): {key: value for key, value in bounds.items() if key != "description"}
        for name, bounds in bounded.items()
    } == wanted


SPOKEN = frozenset({"default", "description", "title"})  # for people


def _closed(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all values that the schema names."""
    for name, value in schema["properties"].items():
        if value.get("additionalProperties") is False and "properties" in value:
            yield from _closed(value, (*path, name))
        else:
            yield (*path, name)


def _at(values: Any, path: Sequence[str]) -> Any:
    for name in path:
        values = values[name]
    return values


def test_the_schema_names_every_value_and_no_other() -> None:
    """What is in neither is refused."""
    values, paths = _read(CHART / "values.yaml"), set(_closed(_schema()))
    paths -= {("global",), *_in_the_schema_alone()}  # Helm hands the first to every chart
    for path in paths:
        _at(values, path)  # or a KeyError

    def written(part: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if path in paths or not isinstance(part, dict):
            yield path
            return
        for name, value in part.items():
            yield from written(value, (*path, name))

    assert set(written(values, ())) == paths


def _in_the_schema_alone() -> set[tuple[str, ...]]:
    """The settings that values.yaml leaves out: the operator has the default."""
    listed = _read(CHART / "values.yaml")["settings"]
    named = _schema()["properties"]["settings"]["properties"]
    return {("settings", name) for name in named.keys() - listed.keys()}


def test_every_value_is_documented() -> None:
    """A comment right above it, or for a setting that few need the setting's own words."""
    named = _schema()["properties"]["settings"]["properties"]
    for _, name in _in_the_schema_alone():
        assert named[name]["description"] == Settings.model_fields[_setting(name)].description
    lines = (CHART / "values.yaml").read_text().splitlines()
    parents: list[str] = []
    undocumented = {*_closed(_schema())} - {("global",), *_in_the_schema_alone()}
    for above, line in pairwise(["", *lines]):
        match = re.match(r"( *)([A-Za-z]+):", line)
        if match is None:
            continue
        parents[len(match[1]) // 2 :] = [match[2]]
        if above.strip().startswith("# "):
            undocumented.discard(tuple(parents))
    assert undocumented == set()


def test_the_container_is_locked_down() -> None:
    """No root, no writing but to volumes, no privileges, no variables of Services."""
    pod = _template("deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["volumeMounts"][0] == {"name": "tmp", "mountPath": "/tmp"}
    assert container["command"] == ["python", "-m", "tutti", "run"]


EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*.yaml") if path.stem != "queues"
)  # of gangs


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_one_gang_whose_pods_all_name_it(path: Path) -> None:
    """A pod without the label or the scheduler's name would start alone."""
    written = list(yaml.safe_load_all(path.read_text()))
    (gang,) = (each for each in written if each["kind"] == "PodGroup")
    pods = [
        each if each["kind"] == "Pod" else each["spec"]["template"]
        for each in written
        if each["kind"] not in ("PodGroup", "Service", "ResourceClaimTemplate")
    ]
    known = {role["name"] for role in gang["spec"].get("roles", [])} or {None}
    assert pods
    for pod in pods:
        assert pod["spec"]["schedulerName"] == Settings().scheduler_name
        assert pod["metadata"]["labels"]["tutti.dev/pod-group"] == gang["metadata"]["name"]
        assert pod["metadata"]["labels"].get("tutti.dev/role") in known
