"""docs/reference.md, made from the CRDs.

`python -m tests.docs.reference` writes it again; a test compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"
KINDS = ("podgroup", "queue", "reservation", "topology")
# Written as in a pod, field by field; the page does not repeat Kubernetes' own reference.
AS_IN_A_POD = ("affinity",)
INTRODUCTION = """# Reference of the API

This page lists all fields of `tutti.dev/v1alpha1`, as the CRDs and `kubectl explain ptg.spec`
describe them. The API server refuses unknown fields.
"""


def written() -> str:
    """The page."""
    return "\n".join([INTRODUCTION, *(line for name in KINDS for line in _of_kind(name))])


def _of_kind(name: str) -> Iterator[str]:
    crd = yaml.safe_load((ROOT / "charts" / "tutti" / "crds" / f"{name}.yaml").read_text())
    names, (version,) = crd["spec"]["names"], crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    short = ", ".join(f"`{shortname}`" for shortname in names.get("shortNames", ()))
    yield f"## {names['kind']}\n\n{schema['description']}\n"
    yield f"`kubectl get {names['plural']}`, short {short}; {crd['spec']['scope'].lower()}.\n"
    yield from _refusals(schema)
    for part in ("spec", "status"):
        if part in schema["properties"]:
            yield from _object(f"{names['kind']}.{part}", schema["properties"][part])
    columns = version.get("additionalPrinterColumns", ())
    if columns:
        yield f"### What `kubectl get {names['plural']}` shows\n\n| column | |\n|---|---|"
        yield from (_column(column) for column in columns)
        yield ""


def _column(column: Mapping[str, Any]) -> str:
    said = column.get("description", "The age of the object.")
    return (
        f"| {column['name'].upper()} | {said}{' With `-o wide`.' * bool(column.get('priority'))} |"
    )


def _object(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A table of an object's fields, and those of the objects in it."""
    yield f"### `{path}`\n"
    if path.endswith("]") or path.count(".") == 1:  # of others it stands in the table above
        yield f"{schema['description']}\n"
    yield "| field | type | meaning |\n|---|---|---|"
    required = schema.get("required", ())
    inner = []
    for name, field in schema["properties"].items():
        is_needed = ", required" * (name in required)
        yield f"| `{name}` | {_type(field)}{is_needed} | {_cell(field.get('description', ''))} |"
        body = field.get("items", field)
        if "properties" in body and name not in AS_IN_A_POD:
            inner.append((f"{path}.{name}{'[]' * ('items' in field)}", body))
    yield ""
    yield from _refusals(schema)
    for where, body in inner:
        yield from _object(where, body)


def _refusals(schema: Mapping[str, Any]) -> Iterator[str]:
    """What the API server says where a rule is broken: the object's, or that of a plain field."""
    rules = list(_messages(schema))
    for name, field in schema["properties"].items():
        if name in AS_IN_A_POD:
            continue
        within = field.get("items", {})
        parts = [] if "properties" in field else [field]
        parts += [] if "properties" in within else [within]
        rules += [f"`{name}`: {message}" for part in parts for message in _messages(part)]
    if rules:
        yield "Validation errors:\n"
        yield from (f"- {rule}" for rule in rules)
        yield ""


def _messages(schema: Mapping[str, Any]) -> Sequence[str]:
    return [_cell(rule["message"]) for rule in schema.get("x-kubernetes-validations", ())]


def _type(field: Mapping[str, Any]) -> str:
    """What may be written there, with its limits."""
    kind = "quantity" if field.get("x-kubernetes-int-or-string") else str(field.get("type"))
    if kind == "array":
        return f"list of {_type(field['items'])}{_within(field, 'Items', 'items')}"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        of = _type(field["additionalProperties"])
        return f"map of {of}{_within(field, 'Properties', 'entries')}"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(one) if one == '' else one}`" for one in field["enum"])
    if kind == "string":
        return str(field.get("format", kind)) + _within(field, "Length", "characters")
    return kind + _range(field)


def _range(field: Mapping[str, Any]) -> str:
    least, most = field.get("minimum"), field.get("maximum")
    if most is not None:
        return f", {least} to {most}"
    return "" if least is None else f", at least {least}"


def _within(field: Mapping[str, Any], suffix: str, of: str) -> str:
    most = field.get(f"max{suffix}")
    return "" if most is None else f", at most {most} {of}"


def _cell(text: str) -> str:
    """One line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(written())
