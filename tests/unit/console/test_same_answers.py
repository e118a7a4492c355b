"""What the page is told of gangs and plans is what the commands print, over generated dumps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from tutti import cli, dump
from tutti.cli.output import watch
from tutti.cli.output.gang_rows import rows
from tutti.cli.output.watch import View
from tutti.console.cluster_map import gang_name
from tutti.dump.load import snapshot_of
from tutti.model.decisions import Policy
from tutti.model.queues import QueueMode

from ...conformance.queues import instances, planner
from ...conformance.unchanged import cases
from ...harness.console import Client, console_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tutti.model.cluster import Snapshot

EXAMPLE = Path(__file__).parents[3] / "docs" / "queues" / "cluster.yaml"
NUMBER = 50
STEP = 97  # so that all strategies and themes are among them
CHANGE = {"--add-nodes": 2, "--remove-node": -1}  # of the number of nodes
POD = """
apiVersion: v1
kind: Pod
metadata: {name: added, namespace: default}
spec: {schedulerName: %s, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""


def tutti(command: str, *words: str, text: bytes = b"") -> Any:
    done = CliRunner().invoke(
        cli.main, [command, "-o", "json", *words], input=text, catch_exceptions=False
    )
    assert done.exit_code in (0, 3), done.stderr
    return json.loads(done.stdout)


def named(row: Mapping[str, Any]) -> str:
    """A gang of a plan, as the page names it."""
    return row["gang"] if row["kind"] == "PodGroup" else f"{row['gang']}/{row['kind']}"


DUMPS = [cases.generated(number * STEP).text for number in range(NUMBER)]


@pytest.mark.parametrize("number", range(NUMBER))
async def test_the_page_says_what_the_commands_say(
    number: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = DUMPS[number]
    snapshot = snapshot_of(dump.read([dump.Text("dump", text)]))
    view = View(snapshot, rows(snapshot, {}, None), None)
    monkeypatch.setattr(watch, "look", lambda *_: view)
    async with console_of(text) as client:
        plan = (await client.get("/api/plan"))["plan"]
        assert plan == tutti("plan", "-f", "-", text=text)
        assert (await client.get("/api/queues"))["answer"] == tutti("queue")
        await _gangs(client, snapshot, tutti("status", "-A"))
        await _claims(client, text)
        await _explained(client, plan, text)
        if snapshot.nodes and number % 5 == 0:
            await _what_if(client, snapshot, text, tmp_path)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


async def _gangs(client: Client, snapshot: Snapshot, status: Any) -> None:
    """The list of those that wait, and each gang's own page, have what the status has."""
    room = await client.get("/api/room")
    assert room == {key: status[key] for key in ("nodes", "resources")}
    answer = await client.get("/api/waiting")
    waiting = answer["rows"]
    assert answer["states"] == status["states"]
    states = ("waiting", "degraded")
    told = [one for one in status["gangs"] if one["state"] in states]
    keys = ("namespace", "name", "state", "bound", "needed", "priority", "reason", "message")

    def compared(rows: Any) -> list[list[Any]]:
        return sorted([row[key] for key in keys] for row in rows)

    assert compared(waiting) == compared(told)
    assert compared((await client.get("/api/gangs"))["rows"]) == compared(status["gangs"])
    status_rows = {(row["namespace"], row["name"]): row for row in status["gangs"]}
    for gang in snapshot.gangs:
        record = await client.get("/api/gang", name=gang_name(gang.key))
        row = status_rows.get((gang.key.namespace, gang.key.name))
        if row is None:
            assert record["state"] == "finished"
            continue
        for key in ("state", "bound", "needed", "priority"):
            assert record[key] == row[key]


async def _claims(client: Client, text: bytes) -> None:
    """With preemption, who would end is what ``tutti plan`` says; so is another objective."""
    for option, value in (("preemption", "Full"), ("objective", "members")):
        told = (await client.post("/api/what-if", {option: value}))["plan"]
        assert told == tutti("plan", "-f", "-", f"--{option}", value, text=text)


async def _explained(client: Client, plan: Any, text: bytes) -> None:
    waits = [row for row in plan["gangs"] if row["answer"] == "waits" and row["kind"] == "PodGroup"]
    for row in waits[:1]:
        *progress, last = await client.explain(named(row))
        answer = last["answer"]
        assert answer["gangs"] == tutti("explain", "-f", "-", row["gang"], text=text)["gangs"]
        done = CliRunner().invoke(cli.main, ["explain", "-f", "-", row["gang"]], input=text)
        assert answer["sentences"] == done.stdout.splitlines()
        assert [line["plans"] for line in progress] == list(range(1, len(progress) + 1))


async def test_the_page_says_of_queues_what_the_commands_say() -> None:
    text = EXAMPLE.read_bytes()
    async with console_of(text) as client:
        told = (await client.get("/api/queues"))["answer"]
        assert told == tutti("queue", "-f", "-", text=text)
        assert [queue["name"] for queue in told["queues"]] == ["root", "research", "nlp", "vision"]
        words = "vision.limit.nvidia.com/gpu=12"
        changed = (await client.post("/api/what-if", {"queues": [words]}))["plan"]
        assert changed == tutti("plan", "-f", "-", "--set-queue", words, text=text)
        assert [one["gang"] for one in changed["difference"]] == ["vision/sweep"]
        wrong = await client.post("/api/what-if", {"queues": ["vision.max=1"]})
        assert "max is no such field" in wrong["problem"]


@pytest.mark.parametrize("seed", range(1, NUMBER + 1))
async def test_the_page_says_of_generated_queues_what_the_commands_say(seed: int) -> None:
    picture = planner.snapshot(instances.world(seed))
    if seed % 2:
        shadows = [replace(queue, mode=QueueMode.SHADOW) for queue in picture.queues]
        picture = replace(picture, queues=tuple(shadows))
    text = dump.write(picture, dump.PlannerConfig("tutti", "bestfit", Policy(), {})).encode()
    async with console_of(text) as client:
        told = (await client.get("/api/queues"))["answer"]
        assert told == tutti("queue", "-f", "-", text=text)
        assert len(told["queues"]) == len(picture.queues) + 1, "and the root"
        assert (await client.get("/api/plan"))["plan"] == tutti("plan", "-f", "-", text=text)
        await _claims(client, text)


async def _what_if(client: Client, snapshot: Any, text: bytes, folder: Path) -> None:
    node = snapshot.nodes[0].name
    manifest = POD % dump.read([dump.Text("dump", text)]).scheduler
    added = _written(folder / "added.yaml", manifest)
    questions: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"addNodes": [{"count": 2, "like": node}]}, ("--add-nodes", "2", "--like", node)),
        ({"removeNodes": [node]}, ("--remove-node", node)),
        ({"manifest": manifest}, ("--add", str(added))),
    ]
    for gang in snapshot.gangs[:1]:
        change = {"priorities": [{"gang": str(gang.key), "priority": 7}]}
        questions.append((change, ("--set-priority", f"{gang.key}=7")))
    for body, words in questions:
        told = await client.post("/api/what-if", body)
        assert told["plan"] == tutti("plan", "-f", "-", *words, text=text)
        assert len(told["maps"][0]["rows"]) == len(snapshot.nodes)
        assert len(told["maps"][1]["rows"]) == len(snapshot.nodes) + CHANGE.get(words[0], 0)
