"""What the judge reads: quantities, requests, the audit log; and what it must not import."""

import ast
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ...harness import judge as package
from ...harness.judge import audit, findings, quantities
from .writing import US, two_nodes, whole_gang

NANO = quantities.NANO


def test_the_judge_imports_nothing_of_tutti() -> None:
    for path in Path(next(iter(package.__path__))).glob("[!t]*.py"):  # all but its tests
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1, f"{path.name} imports from outside its package"
                names = [node.module or ""] if node.level == 0 else []
            assert not [name for name in names if name.split(".")[0] in ("tutti", "operator")]


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("2", 2 * NANO),
        ("100m", NANO // 10),
        ("1.5Gi", 3 * 2**29 * NANO),
        ("1e3", 1000 * NANO),
        ("1E", 10**18 * NANO),
        ("5u", 5000),
        ("0.1n", 1),
        (".5", NANO // 2),
        ("-1k", -1000 * NANO),
    ],
)
def test_quantities_are_exact(text: str, nanos: int) -> None:
    assert quantities.amount(text) == nanos


@pytest.mark.parametrize("text", ["", "x", "1Gb", "1 Gi", "."])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantities.amount(text)


def _container(cpu: str, **more: str) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu}}} | more


def test_effective_requests_take_the_larger_of_init_phase_and_running_phase() -> None:
    spec = {
        "containers": [_container("1"), _container("1")],
        "initContainers": [
            _container("2"),
            _container("500m", restartPolicy="Always"),
            _container("4"),
        ],
        "overhead": {"cpu": "250m"},
    }
    assert quantities.effective_requests(spec) == {"cpu": 4_750_000_000, "pods": NANO}


def test_pod_level_requests_replace_the_sum_of_the_containers() -> None:
    spec = {"containers": [_container("1")], "resources": {"requests": {"cpu": "3"}}}
    assert quantities.effective_requests(spec)["cpu"] == 3 * NANO


def _line(**fields: Any) -> str:
    raw = {
        "auditID": str(fields.pop("id", "1")),
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/ml/pods/p/binding",
        "verb": "create",
        "user": {"username": US},
        "objectRef": {
            "resource": "pods",
            "namespace": "ml",
            "name": "p",
            "apiVersion": "v1",
            "subresource": "binding",
        },
        "responseStatus": {"code": 201},
        "requestObject": {"metadata": {"name": "p", "uid": "u1"}},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "annotations": {"authorization.k8s.io/decision": "allow"},
    }
    return json.dumps(raw | fields, separators=(",", ":")) + "\n"


def test_the_audit_log_is_read_without_reads_doubles_and_its_unfinished_line(
    tmp_path: Path,
) -> None:
    log = tmp_path / "audit.log"
    denial = {"code": 403}
    log.write_text(
        _line()
        + _line()
        + _line(id=2, verb="list")
        + _line(id=3, verb="list", responseStatus=denial, annotations={})
        + _line(id=4, responseStatus=denial)
        + _line(id=5, requestURI="/api/v1/namespaces/ml/pods/p/binding?dryRun=All")
        + _line(id=6)[:50],
        encoding="utf-8",
    )
    entries = audit.read_audit(log)
    assert [(entry.verb, entry.code, entry.denied) for entry in entries] == [
        ("create", 201, False),
        ("list", 403, True),
        ("create", 403, False),
        ("get", 201, False),
    ]
    first = entries[0]
    assert (str(first.key), first.resource, first.uid) == ("ml/p", "pods/binding", "u1")


def test_a_line_of_the_audit_log_that_was_half_written_before_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    first, second = _line().encode(), _line(id=2).encode()
    log.write_bytes(first + second)
    assert audit.lines_from(log, 0) == first + second
    assert audit.lines_from(log, len(first)) == second
    assert audit.lines_from(log, len(first) - 1) == second
    assert audit.lines_from(log, 9) == second
    assert audit.lines_from(log, len(first) + 9) == b""


def test_only_requests_of_the_witnessed_time_count() -> None:
    entry = audit.entry_of(json.loads(_line()))
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    second = timedelta(seconds=1)
    assert audit.between([entry], moment - second, moment + second) == (entry,)
    assert not audit.between([entry], moment + second, None)
    assert not audit.between([entry], None, moment - second)


def test_assert_clean_says_what_is_wrong() -> None:
    findings.assert_clean(whole_gang(two_nodes()).verdict())
    story = two_nodes()
    story.group("train", 2)
    story.pods("train", 2)
    story.bind("train-0", "a")
    with pytest.raises(AssertionError, match=r"(?s)2 violations in 1 bindings.*ml/train"):
        findings.assert_clean(story.verdict())


def test_a_long_history_is_judged_at_once() -> None:
    """Thousands of events in under two seconds; counted in steps, for a clock would be noisy."""
    story = two_nodes()
    for index in range(40):
        story.node(f"n{index}", gpu="512", cpu="512")
    for index in range(30):
        name = f"g{index}"
        story.group(name, 64)
        story.pods(name, 64, gpu="1")
        nodes = {f"{name}-{member}": f"n{index}" for member in range(64)}
        story.reserve(name, nodes)
        for pod, node in nodes.items():
            story.bind(pod, node)
        story.release(name)
    assert len(story.events) > 3000
    verdict = story.verdict()
    assert not verdict.violations
    assert verdict.bindings == 30 * 64
