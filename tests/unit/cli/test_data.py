"""What ``-o json`` holds is what docs/plugin.md says, name by name."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tutti import cli, dump
from tutti.cli import status, top
from tutti.cli.output.gang_rows import rows
from tutti.cli.output.watch import View
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Policy
from tutti.model.keys import Uid
from tutti.model.queues import Preemption, Queue

from ...harness.builders import NAMESPACE, gang, node, snapshot_of, space, topology

ROOT = Path(__file__).parents[3]
QUEUES = str(ROOT / "docs" / "queues" / "cluster.yaml")
CLUSTER = str(ROOT / "docs" / "explain" / "cluster.yaml")
ROW = re.compile(r"(?m)^\| `(status|top|queue|explain|plan)` \| (`[^|]*`) \|")
# A parent without a guarantee, which is a fault, and whose children therefore borrow.
LATE_QUEUE = """
apiVersion: tutti.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec: {resources: [{name: nvidia.com/gpu, guaranteed: 1}]}
status:
  pastUse: {meanShare: 400000, share: 0, since: "2026-01-01T00:00:00Z", halfLifeSeconds: 3600}
"""
SHADOW_QUEUE = """
apiVersion: tutti.dev/v1alpha1
kind: Queue
metadata: {name: vision}
spec:
  mode: Shadow
  namespaces: {matchLabels: {team: vision}}
  defaultFor: {matchLabels: {team: vision}}
  resources: [{name: nvidia.com/gpu, limit: 1}]
"""
ANY = r"[^\[\]]+"  # what <name> stands for; names of resources have dots


def documented(command: str) -> Sequence[str]:
    """The paths of a command's fields; those after the first of a row are its neighbours."""
    found = []
    for at, cell in ROW.findall((ROOT / "docs" / "plugin.md").read_text()):
        names = re.findall(r"`([^`]+)`", cell) if at == command else []
        parent = names[0].rpartition(".")[0] if names else ""
        found += names[:1] + [f"{parent}.{name}".removeprefix(".") for name in names[1:]]
    return found


def printed(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all that is there; what is null or empty ends with a mark."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from printed(part, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, list) and value:
        for part in value:
            yield from [f"{path}[]"] if isinstance(part, list) else printed(part, f"{path}[]")
    else:
        yield f"{path}{'?' * (value in (None, [], {}))}"


def is_meant(path: str, field: str) -> bool:
    """Whether a documented field stands for a printed one, or for what is in one that is empty."""
    pattern = re.sub(r"<\w+>", lambda _: ANY, re.escape(field))
    if re.fullmatch(pattern, path):
        return True
    return path.endswith("?") and re.match(rf"{re.escape(path[:-1])}($|[.\[])", field) is not None


def lines(*words: str) -> Mapping[str, Any]:
    result = CliRunner().invoke(cli.main, [*words, "-o", "json"], catch_exceptions=False)
    found: Mapping[str, Any] = json.loads(result.stdout)
    return found


def app() -> str:
    """A dump of an application that starts, with room for executors to come, and two that wait."""
    spark = gang("app").role("driver", 1, cpu=1).role("worker", 2, 0).declaring(cpu=1).needing(3)
    twins = [gang(name).role("worker", 9, cpu=2).needing(9) for name in "bc"]
    setup = dump.PlannerConfig("tutti", "ilp", Policy(), {})
    return dump.write(snapshot_of(node("n1", cpu=8, memory=16), spark, *twins), setup)


def reclaim() -> str:
    """A dump of a cluster in which one gang ends for another."""
    setup = dump.PlannerConfig("tutti", "ilp", Policy(preemption=Preemption.FULL), {})
    low = gang("low").of(4, cpu=1).bound_on(*["n1"] * 4)
    return dump.write(
        snapshot_of(node("n1", cpu=4), low, gang("high").of(2, cpu=2).priority(3)), setup
    )


def borrowers() -> Snapshot:
    """A cluster in which a gang borrows what another queue guarantees; a role prefers one rack."""
    queues = (
        Queue("vision", Uid("v"), guaranteed=(("nvidia.com/gpu", 4),)),
        Queue("nlp", Uid("n")),
    )
    held = gang("runs").role("worker", 2, cpu=1, gpu=1).preferring("rack", "worker")
    held = held.bound_on("n1", "n1").but(queue="nlp")
    return snapshot_of(
        node("n1", cpu=8, memory=16, gpu=4).labelled(rack="r"),
        *(*queues, topology("rack"), space(NAMESPACE), held, gang("w").of(9, cpu=1)),
    )


def racks() -> str:
    """A dump of a gang that is in two racks and prefers one, and of one that needs one of them."""
    setup = dump.PlannerConfig("tutti", "ilp", Policy(), {})
    nodes = [node(name, cpu=1).labelled(rack=name) for name in ("r1", "r2")]
    wide = gang("wide").of(2, cpu=1).preferring("rack").bound_on("r1", "r2")
    near = gang("near").of(1, cpu=1).together("rack")
    return dump.write(snapshot_of(*nodes, topology("rack"), wide, near), setup)


def told(command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[str]:
    (tmp_path / "app.json").write_text(app())
    (tmp_path / "reclaim.json").write_text(reclaim())
    files = (CLUSTER, str(tmp_path / "app.json"), str(tmp_path / "reclaim.json"))
    if command == "queue":
        yield from printed(lines(command, "-f", QUEUES))
        for number, queue in enumerate((LATE_QUEUE, SHADOW_QUEUE)):
            more = tmp_path / f"{number}.yaml"
            more.write_text(queue)
            yield from printed(lines(command, "-f", QUEUES, "-f", str(more)))
        return
    if command in ("plan", "explain"):
        for file in files:
            yield from printed(lines(command, "-f", file))
        if command == "explain":
            (tmp_path / "racks.json").write_text(racks())
            yield from printed(lines(command, "-f", CLUSTER, "eval"))
            for name in ("wide", "near"):
                yield from printed(lines(command, "-f", str(tmp_path / "racks.json"), name))
            setup = dump.PlannerConfig("tutti", "ilp", Policy(preemption=Preemption.FULL), {})
            (tmp_path / "borrowers.json").write_text(dump.write(borrowers(), setup))
            yield from printed(lines(command, "-f", str(tmp_path / "borrowers.json"), "runs"))
        return
    picture = borrowers()
    print_it = {"status": status._print, "top": top._print}[command]
    print_it(View(picture, rows(picture, {}, None, Preemption.FULL), None), "json")
    yield from printed(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize("command", ["status", "top", "queue", "explain", "plan"])
def test_every_field_is_documented_and_no_other(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there, named = list(told(command, capsys, tmp_path)), documented(command)
    assert [one for one in there if not any(is_meant(one, field) for field in named)] == []
    whole = [one for one in there if not one.endswith("?")]
    assert [field for field in named if not any(is_meant(one, field) for one in whole)] == []
