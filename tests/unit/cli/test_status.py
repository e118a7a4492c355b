"""``status`` and ``top``: rows, tables and data; what is said where there is no cluster to see."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from tutti import cli
from tutti.cli import inputs, status, top
from tutti.cli.output import live_cluster, watch
from tutti.cli.output.gang_rows import hindrance, largest, rows
from tutti.cli.output.watch import View
from tutti.gang import finding_text
from tutti.kube import access
from tutti.kube.gang_sources import GangObject
from tutti.model.cluster import Phase, ScheduledCondition, SlotReservation, Snapshot
from tutti.model.keys import GangKey, NodeName, Uid
from tutti.model.queues import Preemption

from ...harness.builders import (
    NAMESPACE,
    gang,
    node,
    reservation,
    single,
    snapshot_of,
    topology,
)

DOCS = Path(__file__).parents[3] / "docs"


def tutti(*words: str, **more: Any) -> Result:
    """What is printed for a command line."""
    return CliRunner().invoke(cli.main, words, prog_name="tutti", **more)


def said(name: str, kind: str, reason: str, message: str) -> GangObject:
    """A PodGroup whose condition says this."""
    line = {"type": kind, "status": "False", "reason": reason, "message": message}
    status = {"conditions": [{"type": "Bound", "status": "False"}, line]}
    return GangObject(GangKey(NAMESPACE, name), Uid(name), 1, version="1", status=status)


def cluster() -> Snapshot:
    return snapshot_of(
        node("n1", cpu=8, memory=16, gpu=4, pods=20),
        gang("waits").of(9, cpu=1),
        gang("new").of(1, cpu=1).needing(2),
        gang("runs").of(2, cpu=1, gpu=1).bound_on("n1", "n1").priority(5),
        gang("lost").of(2, cpu=1).bound_on("n1"),
        gang("over").of(1, cpu=1).each(phase=Phase.SUCCEEDED),
        single("s1", cpu=9).each(
            scheduled_condition=ScheduledCondition("Unschedulable", "no room")
        ),
    )


GROUPS = {
    GangKey(NAMESPACE, "waits"): said("waits", "Reserved", "NotEnoughRoom", "9 members need 1 cpu"),
    GangKey(NAMESPACE, "lost"): said("lost", "Healthy", "MemberLost", "1 of 2 members is bound"),
}


def seen(namespace: str | None = None) -> View:
    picture = cluster()
    return View(picture, rows(picture, GROUPS, namespace), namespace)


def test_each_gang_says_what_the_operator_has_said_of_it() -> None:
    found = {row.gang.key.name: (row.state.value, row.reason) for row in seen().rows}
    assert found == {
        "runs": ("started", ""),
        "lost": ("degraded", "MemberLost"),
        "new": ("waiting", ""),
        "s1": ("waiting", "Unschedulable"),
        "waits": ("waiting", "NotEnoughRoom"),
    }
    assert next(iter(seen().rows)).gang.key.name == "runs", "the most important first"
    assert seen("elsewhere").rows == []


def test_a_status_that_cannot_be_read_says_nothing() -> None:
    odd = said("waits", "Reserved", "x", "y")
    for broken in ({}, {"conditions": None}, {"conditions": ["x"]}):
        groups = {GangKey(NAMESPACE, "waits"): replace(odd, status=broken)}
        assert all(row.reason != "x" for row in rows(cluster(), groups, None))


def test_who_holds_the_largest_share_comes_first() -> None:
    assert [row.gang.key.name for row in largest(seen().rows, cluster())] == ["runs", "lost"]


def test_what_is_held_for_absent_members_is_held() -> None:
    app = gang("app").role("driver", 1, cpu=1).role("worker", 3, 0).declaring(cpu=2).needing(4)
    app = app.bound_on("n1")
    workers = [
        SlotReservation(NodeName("n1"), "worker", 1),
        SlotReservation(NodeName("n2"), "worker", 2),
    ]
    nodes = (node("n1", cpu=8), node("n2", cpu=8))
    (row,) = rows(snapshot_of(*nodes, app, reservation(app, slots=workers)), {}, None)
    assert (row.held, row.bound, row.nodes) == (4, 1, 2)
    assert dict(row.resources.amounts)["cpu"] == 7000


def test_the_table_lists_whoever_waits_or_lacks_members(capsys: pytest.CaptureFixture[str]) -> None:
    status._print(seen(), "table")
    nodes, room, gangs = capsys.readouterr().out.split("\n\n")
    assert nodes.split() == [
        "NODES",
        "WAITING",
        "RESERVED",
        "STARTED",
        "DEGRADED",
        "1",
        "3",
        "0",
        "1",
        "1",
    ]
    assert "RESOURCE" in room
    assert ["cpu", "8", "3", "0", "5", "0"] in [line.split() for line in room.splitlines()]
    lines = {line.split()[1]: line for line in gangs.splitlines()}
    assert set(lines) == {"NAME", "waits", "new", "lost", "s1"}
    assert lines["NAME"].split() == [
        "NAMESPACE",
        "NAME",
        "STATE",
        "BOUND",
        "AGE",
        "REASON",
        "MESSAGE",
    ]
    assert lines["waits"].endswith("NotEnoughRoom  9 members need 1 cpu")
    assert "0/2" in lines["new"]


def levels_of(snapshot: Snapshot, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The cells of the table of levels."""
    status._print(View(snapshot, (), None), "table")
    tables = capsys.readouterr().out.split("\n\n")
    assert tables[2].split("\n")[0].split(None, 4)[:2] == ["TOPOLOGY", "LEVEL"]
    return [re.split(r"\s{2,}", line) for line in tables[2].splitlines()[1:]]


def test_each_level_says_which_domain_has_most_room(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        node(name, cpu=8, memory=16, gpu=4).labelled(block=name[0], rack=name[1])
        for name in ("a1", "b1", "b2")
    ]
    half = gang("half").of(1, cpu=1, gpu=2).bound_on("b1")
    found = levels_of(snapshot_of(*nodes, half, topology("block", "rack", "pod")), capsys)
    assert found == [
        ["network", "block", "2", "nvidia.com/gpu", "6 in b", "1 in a"],
        ["network", "rack", "3", "nvidia.com/gpu", "4 in a/1", "1 in a/1"],
        ["network", "pod", "0", "nvidia.com/gpu", "0", "0"],
    ]


def test_without_devices_a_level_has_cpu_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    one = node("n1", cpu=8, memory=16).labelled(rack="r")
    assert levels_of(snapshot_of(one, topology("rack")), capsys) == [
        ["network", "rack", "1", "cpu", "8 in r", "-"],
        ["network", "rack", "1", "memory", "16Gi in r", "-"],
    ]


def test_the_data_has_the_room_of_every_domain() -> None:
    one = node("n1", cpu=8, memory=16, gpu=4).labelled(rack="r")
    picture = snapshot_of(one, node("n2", cpu=1), topology("rack"))
    (level,) = status.data(View(picture, (), None))["levels"]
    room = {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4", "pods": "110"}
    whole = {"nvidia.com/gpu": 1}
    domains = [{"values": ["r"], "nodes": 1, "free": room, "wholeNodes": whole}]
    assert level == {"topology": "network", "label": "rack", "domains": domains}
    assert status.data(View(cluster(), (), None))["levels"] == []


def test_a_gang_that_runs_says_in_which_domains_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [node(name, cpu=8).labelled(rack=rack) for name, rack in (("n1", "r"), ("n2", "s"))]
    runs = gang("runs").of(3, cpu=1).preferring("rack").bound_on("n1", "n1", "n2")
    waits = gang("waits").of(20, cpu=1).together("rack")
    picture = snapshot_of(*nodes, topology("rack"), runs, waits)
    view = View(picture, rows(picture, {}, None), None)
    status._print(view, "wide")
    table = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()[-3:]]
    assert {cells[1]: cells[-1] for cells in table} == {
        "NAME": "DOMAINS",
        "runs": "2 in r and 1 in s of rack",
        "waits": "-",
    }
    domains = {gang["name"]: gang["domains"] for gang in status.data(view)["gangs"]}
    own = ({"values": ("r",), "members": 2}, {"values": ("s",), "members": 1})
    assert domains == {"runs": [{"level": "rack", "roles": (), "domains": own}], "waits": []}
    status._print(view, "table")
    assert "DOMAINS" not in capsys.readouterr().out.split("\n\n")[-1]


HOSTILE = (
    "spark.executor.memory=[/boom] [red]lots at TCP [fd00::1]:80 \x1b[2J\x1b]0;x\x07\nend\u202e"
)
HARMLESS = (
    r"spark.executor.memory=[/boom] [red]lots at TCP [fd00::1]:80 \x1b[2J\x1b]0;x\x07\nend\u202e"
)


def test_what_others_have_written_is_shown_as_it_is_and_moves_no_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    groups = {GangKey(NAMESPACE, "waits"): said("waits", "Reserved", "[/x]", HOSTILE)}
    picture = cluster()
    status._print(View(picture, rows(picture, groups, None), None), "table")
    line = next(line for line in capsys.readouterr().out.splitlines() if " waits " in line)
    assert line.split(None, 6)[-2:] == ["[/x]", HARMLESS]


def test_a_pause_is_known_by_what_the_operator_says() -> None:
    picture = cluster()
    for why in (*finding_text.MODES.values(), ""):
        groups = {GangKey(NAMESPACE, "waits"): said("waits", "Reserved", "x", f"{why}; and more")}
        assert hindrance(rows(picture, groups, None)) == why


def test_wide_lists_those_that_run_too(capsys: pytest.CaptureFixture[str]) -> None:
    status._print(seen(NAMESPACE), "wide")
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert lines["runs"][:5] == ["runs", "started", "2/2", "1", "5"]


def test_nobody_who_waits_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for output, words in (("table", "No gang waits"), ("wide", "There is no gang")):
        status._print(View(snapshot_of(), (), "ml"), output)
        assert capsys.readouterr().out.endswith(f"{words} in namespace ml.\n")
    top._print(View(snapshot_of(), (), None), "table")
    assert capsys.readouterr().out == "No gang holds room.\n"


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_says_what_the_tables_say(
    output: str, read: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    status._print(seen(), output)
    told = read(capsys.readouterr().out)
    assert told["states"] == {"waiting": 3, "reserved": 0, "started": 1, "degraded": 1}
    assert told["resources"]["cpu"] == {
        "allocatable": "8",
        "allocated": "3",
        "reserved": "0",
        "free": "5",
        "stranded": "0",
    }
    assert told["resources"]["memory"]["free"] == "16Gi"
    assert {gang["name"] for gang in told["gangs"]} == {"waits", "new", "runs", "lost", "s1"}
    top._print(seen(), output)
    first, _ = read(capsys.readouterr().out)["gangs"]
    assert (first["name"], first["held"]) == ("runs", 2)
    assert first["resources"] == {"cpu": "2", "nvidia.com/gpu": "2", "pods": "2"}


def test_top_shows_devices_and_who_holds_them(capsys: pytest.CaptureFixture[str]) -> None:
    for namespace in (None, NAMESPACE):
        top._print(seen(namespace), "table")
        header, first, second = (line.split() for line in capsys.readouterr().out.splitlines())
        prefix = ["NAMESPACE"] * (namespace is None)
        assert header == [
            *prefix,
            *["NAME", "STATE", "HELD", "NODES", "CPU", "MEMORY", "NVIDIA.COM/GPU"],
        ]
        assert first[-6:] == ["started", "2/2", "1", "2", "0", "2"]
        assert second[-6:] == ["degraded", "1/2", "1", "1", "0", "0"]


@pytest.mark.parametrize(
    ("status_code", "words"),
    [
        (404, "this cluster has no Tutti: "),
        (403, "may not; ask for this right"),
        (401, "log in"),
        (500, "may not; check that the API server runs"),
    ],
)
def test_what_is_in_the_way_ends_with_what_to_do(status_code: int, words: str) -> None:
    assert words in live_cluster.what_to_do(status_code, "may not.")


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
contexts:
- {name: it, context: {cluster: it, user: it, namespace: ml}}
- {name: other, context: {cluster: it, user: it}}
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: it, user: {}}]
"""


@pytest.mark.parametrize("command", ["status", "top", "explain", "dump"])
def test_a_cluster_that_is_away_is_one_line_and_exit_code_1(command: str, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    result = tutti(command, "--kubeconfig", str(tmp_path / "config"))
    asked = "GET /apis/tutti.dev/v1alpha1/podgroups: 127.0.0.1:1 refused the connection"
    todo = "check that the API server runs and that --context is right"
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"tutti {command}: {asked}; {todo}\n"


@click.command("tutti")
def watching() -> None:
    """Five looks, of which the second, third and fifth fail; then Ctrl-C."""
    away = live_cluster.OutOfReach("n1:6443 refused the connection; is it up?")
    looks = [None, away, away, None, away]

    def look() -> View:
        problem = looks.pop(0)
        if problem is not None:
            raise problem
        return seen()

    def wait(_seconds: float) -> None:
        click.echo("waits")
        if not looks:
            raise KeyboardInterrupt

    watch.again(look, lambda _: click.echo("seen"), wait)


def test_a_watch_says_once_why_it_fails_and_goes_on() -> None:
    result = CliRunner().invoke(watching)
    line = "tutti: n1:6443 refused the connection; is it up? (tried again every two seconds)"
    words = "waits seen waits waits waits seen waits waits"
    assert (result.exit_code, result.stdout.split()) == (0, words.split())
    assert result.stderr.splitlines() == [line, line]


def test_a_watch_whose_first_look_fails_ends(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG)
    result = tutti("status", "-w", "--kubeconfig", str(tmp_path / "config"))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("command", ["status", "top", "explain", "dump"])
def test_a_context_that_is_not_there_is_one_line_with_those_that_are(
    command: str, tmp_path: Path
) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    result = tutti(command, "--kubeconfig", str(path), "--context", "nope")
    said = f"kubeconfig {path} has no context nope; it has it, other"
    todo = "name a cluster with --kubeconfig or --context"
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"tutti {command}: cannot reach a cluster: {said}; {todo}\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("- no\n- kubeconfig\n", ": it does not have the format of a kubeconfig file"),
        ("", " is empty"),
    ],
)
def test_a_kubeconfig_that_is_none_is_one_line(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    result = tutti("status", "--kubeconfig", str(path))
    said = f"cannot reach a cluster: kubeconfig {path}{words}"
    todo = "name a cluster with --kubeconfig or --context"
    assert (result.exit_code, result.stderr) == (1, f"tutti status: {said}; {todo}\n")


def test_an_exec_plugin_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    plugin = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin}}"
    path.write_text(KUBECONFIG.replace("user: {}", f"user: {plugin}"))
    result = tutti("status", "--kubeconfig", str(path))
    why = "its exec plugin no-such-plugin gives no credentials: No such file or directory"
    said = f"cannot reach a cluster: kubeconfig {path}: {why}"
    assert (result.exit_code, result.stderr) == (
        1,
        f"tutti status: {said}; mend that, or log in again\n",
    )


def test_a_wrong_setting_is_one_line() -> None:
    result = CliRunner().invoke(cli.main, ["top"], env={"TUTTI_MODE": "off"})
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("word", ["json", "yaml", "wide"])
def test_a_format_is_no_file_to_write_a_dump_to(word: str) -> None:
    """Whoever knows kubectl types it, and would not look for such a file."""
    result = CliRunner().invoke(cli.main, ["dump", "-o", word])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.endswith(f"to write JSON to a file of this name, use -o ./{word}\n")


def test_the_namespace_is_the_contexts(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    assert access.namespace_of(str(path)) == "ml"
    assert access.namespace_of(str(path), "other") == "default"
    assert access.namespace_of(str(tmp_path / "none")) == "default"


AGES = {
    -5: "0s",
    119: "119s",
    120: "2m",
    599: "9m59s",
    600: "10m",
    7200: "120m",
    10800: "3h",
    17999: "4h59m",
    28800: "8h",
    172799: "47h",
    172800: "2d",
    266400: "3d2h",
    691200: "8d",
    63071999: "729d",
    63072000: "2y",
    66614400: "2y41d",
    252288000: "8y",
    290000000: "9y",
}


@pytest.mark.parametrize(("seconds", "words"), AGES.items())
def test_ages_are_as_kubectl_says_them(seconds: float, words: str) -> None:
    """On both sides of the bounds that its HumanDuration has."""
    assert watch.age(0.0, seconds) == words


def test_gangs_of_a_queue_and_below_it_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all namespaces; a queue that does not exist is an error that names those that do."""
    picture, _ = inputs.read_files([str(DOCS / "queues" / "cluster.yaml")])
    state = SimpleNamespace(groups=(), snapshot=lambda _now: picture)
    monkeypatch.setattr(live_cluster, "look", lambda *_: state)

    def names(*words: str) -> set[str]:
        answer = tutti("status", "-o", "json", *words)
        assert answer.exit_code == 0, answer.output
        return {gang["name"] for gang in json.loads(answer.output)["gangs"]}

    assert names("--queue", "vision") == names("--queue", "research") == {"train", "sweep", "tune"}
    assert names("--queue", "nlp") == names("--queue", "root", "-n", "nlp") == set()
    assert names("--queue", "vision", "-n", "elsewhere") == set()
    answer = tutti("top", "--queue", "visoin")
    assert answer.exit_code == 2
    assert "--queue visoin: no Queue has this name; there are: " in answer.output
    assert "vision" in answer.output
    picture = cluster()
    answer = tutti("top", "--queue", "vision")
    assert "there are: none" in answer.output


def test_a_gang_that_runs_in_a_queue_says_what_covers_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    picture, _ = inputs.read_files([str(DOCS / "queues" / "cluster.yaml")])
    found = rows(picture, {}, None, Preemption.RECLAIM)
    said = {row.gang.key.name: str(row.cover) for row in found if row.cover is not None}
    assert said["train"] == "covered by queue research"
    status._print(View(picture, found, None), "wide")
    assert "covered by queue research" in " ".join(capsys.readouterr().out.split())
    status._print(View(picture, found, None), "json")
    gangs = json.loads(capsys.readouterr().out)["gangs"]
    covers = {gang["name"]: gang["cover"] for gang in gangs}
    assert covers["train"] == {
        "queue": "vision",
        "coveredBy": "research",
        "extraPods": 0,
        "mayEndFor": [],
    }
    assert None in covers.values(), "a gang that waits"
