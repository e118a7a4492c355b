"""Whatever a file holds ends in a Snapshot, or in one line that says where and what."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tutti import dump
from tutti.dump import load
from tutti.kube.gang_sources import pod_group

KINDS = ("Node", "Pod", "PodGroup", "Reservation", "Job", "List", "PodList", "Deployment")
VERSIONS = ("v1", "tutti.dev/v1alpha1", "batch/v1", "apps/v1", "")
NAMES = (
    *("metadata", "spec", "status", "items", "name", "namespace", "uid", "labels", "annotations"),
    *("creationTimestamp", "resourceVersion", "generation", "containers", "resources", "requests"),
    *("limits", "template", "parallelism", "replicas", "completions", "schedulerName", "nodeName"),
    *("affinity", "tolerations", "placement", "podGroup", "roles", "minMember", "allocatable"),
    *("apiVersion", "conditions", "capacity", "taints", "volumes", "cpu", "tutti.dev/taken-at"),
    *(
        "tutti.dev/settings",
        "tutti.dev/plan",
        "tutti.dev/finished",
        "tutti.dev/bereft",
        "tutti.dev/refused",
        "kind",
    ),
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.dates()
    | st.sampled_from(["tutti", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1e99", "{}", "[]"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=25,
)
OBJECTS = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS) | VALUES, "apiVersion": st.sampled_from(VERSIONS) | VALUES},
    optional={
        "metadata": st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5) | VALUES,
        "spec": st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5) | VALUES,
        "status": VALUES,
        "items": st.lists(VALUES, max_size=3) | VALUES,
    },
)


def swallowed(content: bytes) -> str:
    """What is said of a text: nothing where it makes a Snapshot, else one line."""
    try:
        load.snapshot_of(dump.read([dump.Text("some.yaml", content)]))
    except dump.BadFile as problem:
        said = str(problem)
        assert said.startswith("some.yaml")
        assert len(said.splitlines()) == 1
        return said
    return ""


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(OBJECTS | VALUES, max_size=3))
def test_no_yaml_of_any_shape_is_more_than_one_line_of_complaint(documents: list[Any]) -> None:
    swallowed(yaml.safe_dump_all(documents).encode())


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(OBJECTS, max_size=3))
def test_neither_is_any_json(documents: list[Any]) -> None:
    swallowed(json.dumps({"kind": "List", "items": documents}, default=str).encode())


@given(st.binary())
@example(b"\x00\x01\x02")
@example(b"\xff\xfe\x00")
@example(b"\x1f\x8b\x08\x00")
@example(b"\xef\xbb\xbf")
def test_neither_are_bytes(content: bytes) -> None:
    swallowed(content)


@given(st.text(alphabet="{}[]&*!<>|:-?,'\"#% \n\tab0.~@`=", max_size=60))
@example("a: &a [*a]")
@example("!!int ''")
@example("!!float ''")
@example("!!timestamp x")
@example("!!bool x")
@example("!!binary '='")
@example("!!python/object/apply:os.system [ls]")
@example("? [a, b]\n: c")
@example("a: 0b_")
@example("a: 2026-99-99")
@example("a: " + "9" * 5000)
@example("*a")
@example("- - -")
def test_neither_is_what_looks_like_yaml(content: str) -> None:
    swallowed(content.encode())


def _laughs() -> str:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    return "kind: Pod\n" + "\n".join(lines)


def _merges() -> str:
    keys = ", ".join(f"k{n}: 1" for n in range(50))
    lines = [f"a0: &a0 {{{keys}}}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 20)]
    return "kind: Pod\n" + "\n".join(lines)


BOMBS: dict[str, Callable[[], str]] = {
    "aliases that multiply": _laughs,
    "merge keys that multiply": _merges,
    "a merge of very many": lambda: (
        "kind: Pod\na: &a {b: 1}\nc: {<<: [" + ", ".join(["*a"] * 5000) + "]}"
    ),
    "an alias of itself": lambda: "kind: Pod\nspec: &a {spec: *a}",
    "lists in lists": lambda: "kind: Pod\nspec: " + "[" * 5000 + "]" * 5000,
    "maps in maps": lambda: '{"kind": "Pod", "spec": ' + '{"a":' * 5000 + "1" + "}" * 5001,
    "Lists in Lists": lambda: '{"kind": "List", "items": [' * 100 + '{"kind": "Pod"}' + "]}" * 100,
    "lists without end": lambda: "kind: Pod\nspec: " + "[" * 1_000_000,
    "maps without end": lambda: "kind: Pod\nspec: " + "{a: " * 200_000,
    "items of items": lambda: "- " * 200_000,
    "keys of keys": lambda: "? " * 200_000,
    "a second document": lambda: "kind: Pod\n---\n" + "[" * 200_000,
    "blocks in blocks": lambda: "\n".join(" " * n + "a:" for n in range(2000)),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_one_line_of_complaint(name: str) -> None:
    assert swallowed(BOMBS[name]().encode())


def pod(**changes: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **changes}


def ours(**container: object) -> dict[str, Any]:
    return pod(spec={"schedulerName": "tutti", "containers": [container]})


GROUP = {"apiVersion": "tutti.dev/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}

WRONG: dict[str, tuple[Any, str]] = {
    "a list": ([1], "some.yaml, document 1: is no API object but a list"),
    "text": ("hello", "some.yaml, document 1: is no API object but text: 'hello'"),
    "no kind": ({"metadata": {}}, "some.yaml, document 1: kind: is missing, or no text"),
    "no name": (
        {"apiVersion": "v1", "kind": "Pod"},
        "some.yaml, document 1 (Pod default): its metadata has no name",
    ),
    "no text for a label": (
        pod(metadata={"name": "a", "labels": {"a": True}}),
        "some.yaml, document 1 (Pod default/a): metadata.labels.a: Input should be a valid string",
    ),
    "no amount": (
        ours(name="main", resources={"requests": {"cpu": "much"}}),
        "some.yaml, document 1 (Pod default/a): its request cannot be read: 'much'",
    ),
    "no number": (
        {**GROUP, "spec": {"minMember": "many"}},
        "some.yaml, document 1 (PodGroup default/g): spec.minMember: Input should be a valid",
    ),
    "an item": (
        {"kind": "List", "items": [pod(), {"kind": "Node", "apiVersion": "v1", "metadata": 5}]},
        "some.yaml, document 1, item 2 (Node): metadata: Input should be",
    ),
    "a pod of a Job": (
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {"template": {"spec": {"schedulerName": "tutti", "containers": 1}}},
        },
        "some.yaml, document 1, pod 0 (Pod default/j-0): spec.containers: Input should be",
    ),
    "a moment": (
        {"kind": "List", "metadata": {"annotations": {"tutti.dev/taken-at": "then"}}},
        "some.yaml, document 1: metadata.annotations.tutti.dev/taken-at: 'then' is not a time",
    ),
    "a moment with a fraction that is none": (
        {
            "kind": "List",
            "metadata": {"annotations": {"tutti.dev/taken-at": "2026-01-01T00:00:00.1e2Z"}},
        },
        "some.yaml, document 1: metadata.annotations.tutti.dev/taken-at: '2026-01-01T00:00:00.1e2",
    ),
    "gangs without their Reservation": (
        {
            "kind": "List",
            "metadata": {
                "annotations": {
                    "tutti.dev/taken-at": "2026-01-01T00:00:00Z",
                    "tutti.dev/settings": '{"schedulerName": "tutti", "strategy": "ilp"}',
                    "tutti.dev/bereft": '{"ml/a": 7}',
                }
            },
        },
        "some.yaml, document 1: metadata.annotations.tutti.dev/bereft: ml/a: not a uid",
    ),
    "what was refused": (
        {
            "kind": "List",
            "metadata": {
                "annotations": {
                    "tutti.dev/taken-at": "2026-01-01T00:00:00Z",
                    "tutti.dev/settings": '{"schedulerName": "tutti", "strategy": "ilp"}',
                    "tutti.dev/refused": '{"a": 7}',
                }
            },
        },
        "some.yaml, document 1: metadata.annotations.tutti.dev/refused: a: no sentence and a time",
    ),
    "settings": (
        {
            "kind": "List",
            "metadata": {
                "annotations": {
                    "tutti.dev/taken-at": "2026-01-01T00:00:00Z",
                    "tutti.dev/settings": '{"policy": {"objective": "money"}}',
                }
            },
        },
        "some.yaml, document 1: metadata.annotations.tutti.dev/settings: policy: 'money' is not",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_document_object_and_field(name: str) -> None:
    raw, sentence = WRONG[name]
    assert swallowed(json.dumps(raw).encode()).startswith(sentence)
    assert swallowed(yaml.safe_dump(raw).encode()).startswith(sentence)


def test_a_document_is_counted_as_people_count() -> None:
    good = yaml.safe_dump(pod())
    said = swallowed(f"---\n{good}---\n---\n{good}---\nkind: [\n".encode())
    assert said.startswith("some.yaml, document 4: cannot be read: line ")


def test_two_dumps_are_one_too_many() -> None:
    over = {"tutti.dev/taken-at": "2026-01-01T00:00:00Z"}
    over["tutti.dev/settings"] = '{"schedulerName": "tutti", "strategy": "ilp"}'
    one = json.dumps({"kind": "List", "metadata": {"annotations": over}})
    assert swallowed(f"{one}\n---\n{one}".encode()).startswith("some.yaml, document 2: is a second")


def read(*raw: object) -> dump.Objects:
    text = yaml.safe_dump_all(raw).encode()
    return dump.read([dump.Text("some.yaml", text)])


def test_kinds_that_no_decision_looks_at_are_counted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": base64.b64encode(b"b")}}
    foreign = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    assert read(secret, secret, foreign, GROUP).skipped == {
        "Secret": 2,
        "PodGroup.scheduling.x-k8s.io": 1,
    }


def test_of_an_object_that_comes_twice_the_last_counts() -> None:
    twice = read({**GROUP, "spec": {"minMember": 2}}, {**GROUP, "spec": {"minMember": 3}})
    assert [group.min_member for group in twice.of(pod_group.KIND)] == [3]
    assert twice.repeated == 1


def test_an_empty_file_is_an_empty_cluster() -> None:
    for nothing in (b"", b"---\n", b"# nothing\n", b"{}\n---\n"[3:], b"kind: List\n"):
        assert swallowed(nothing) == ""
