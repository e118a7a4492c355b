"""``status`` and ``top``: rows, tables and data; what is said where there is no cluster to see."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tutti import cli
from tutti.cli import live, looking, status, top
from tutti.cli.looking import Seen
from tutti.cli.standing import largest, rows
from tutti.kube import access
from tutti.kube.decode import PodGroup
from tutti.model.cluster import Phase, Said, Slots, Snapshot
from tutti.model.keys import GangKey, NodeName, Uid

from ...builders import NAMESPACE, gang, node, reservation, single, snapshot


def said(name: str, kind: str, reason: str, message: str) -> PodGroup:
    """A PodGroup whose condition says this."""
    line = {"type": kind, "status": "False", "reason": reason, "message": message}
    return PodGroup(
        NAMESPACE, name, Uid(name), 1, 1, (), 0.0, terminating=False, version="1",
        status={"conditions": [{"type": "Bound", "status": "False"}, line]},
    )  # fmt: skip


def cluster() -> Snapshot:
    return snapshot(
        node("n1", cpu=8, memory=16, gpu=4, pods=20),
        gang("waits").of(9, cpu=1),
        gang("new").of(1, cpu=1).needing(2),
        gang("runs").of(2, cpu=1, gpu=1).bound_on("n1", "n1").priority(5),
        gang("lost").of(2, cpu=1).bound_on("n1"),
        gang("over").of(1, cpu=1).each(phase=Phase.SUCCEEDED),
        single("s1", cpu=9).each(said=Said("Unschedulable", "no room")),
    )


GROUPS = {
    GangKey(NAMESPACE, "waits"): said("waits", "Reserved", "NotEnoughRoom", "9 members need 1 cpu"),
    GangKey(NAMESPACE, "lost"): said("lost", "Healthy", "MemberLost", "1 of 2 members is bound"),
}


def seen(namespace: str | None = None) -> Seen:
    picture = cluster()
    return Seen(picture, rows(picture, GROUPS, namespace), namespace)


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
        groups = {GangKey(NAMESPACE, "waits"): PodGroup(**{**fields(odd), "status": broken})}
        assert all(row.reason != "x" for row in rows(cluster(), groups, None))


def fields(group: PodGroup) -> dict[str, Any]:
    return {name: getattr(group, name) for name in group.__slots__}


def test_who_holds_the_largest_share_comes_first() -> None:
    assert [row.gang.key.name for row in largest(seen().rows, cluster())] == ["runs", "lost"]


def test_what_is_held_for_absent_members_is_held() -> None:
    app = gang("app").role("driver", 1, cpu=1).role("worker", 3, 0).declaring(cpu=2).needing(4)
    app = app.bound_on("n1")
    workers = [Slots(NodeName("n1"), "worker", 1), Slots(NodeName("n2"), "worker", 2)]
    nodes = (node("n1", cpu=8), node("n2", cpu=8))
    (row,) = rows(snapshot(*nodes, app, reservation(app, slots=workers)), {}, None)
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


def test_wide_lists_those_that_run_too(capsys: pytest.CaptureFixture[str]) -> None:
    status._print(seen(NAMESPACE), "wide")
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert lines["runs"][:5] == ["runs", "started", "2/2", "1", "5"]


def test_nobody_who_waits_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for output, words in (("table", "No gang waits"), ("wide", "No gang is there")):
        status._print(Seen(snapshot(), (), "ml"), output)
        assert capsys.readouterr().out.endswith(f"{words} in namespace ml.\n")
    top._print(Seen(snapshot(), (), None), "table")
    assert capsys.readouterr().out == "No gang holds anything.\n"


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_says_what_the_tables_say(
    output: str, read: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    status._print(seen(), output)
    told = read(capsys.readouterr().out)
    assert told["states"] == {"waiting": 3, "reserved": 0, "started": 1, "degraded": 1}
    assert told["resources"]["cpu"]["free"] == 5000
    assert {one["name"] for one in told["gangs"]} == {"waits", "new", "runs", "lost", "s1"}
    top._print(seen(), output)
    first, _ = read(capsys.readouterr().out)["gangs"]
    assert (first["name"], first["held"], first["resources"]["nvidia.com/gpu"]) == ("runs", 2, 2)


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
        (404, "Tutti is not installed there: "),
        (403, "may not; ask for that right"),
        (401, "log in"),
        (500, "may not; is the API server up"),
    ],
)
def test_what_is_in_the_way_ends_with_what_to_do(status_code: int, words: str) -> None:
    assert words in live._what_to_do(status_code, "may not.")


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
    told = CliRunner().invoke(cli.main, [command, "--kubeconfig", str(tmp_path / "config")])
    assert (told.exit_code, told.stdout, told.stderr.count("\n")) == (1, "", 1)
    assert told.stderr.endswith("is the API server up, and this the right --context?\n")


def test_a_kubeconfig_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("- no\n- kubeconfig\n")
    told = CliRunner().invoke(cli.main, ["status", "--kubeconfig", str(tmp_path / "config")])
    assert (told.exit_code, told.stderr.count("\n")) == (1, 1)
    assert told.stderr.endswith("; name a cluster with --kubeconfig or --context\n")


def test_a_wrong_setting_is_one_line() -> None:
    told = CliRunner().invoke(cli.main, ["top"], env={"TUTTI_MODE": "off"})
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)


def test_the_namespace_is_the_contexts(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    assert access.namespace_of(str(path)) == "ml"
    assert access.namespace_of(str(path), "other") == "default"
    assert access.namespace_of(str(tmp_path / "none")) == "default"


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172800, "2d")]
)
def test_ages_are_as_kubectl_says_them(seconds: float, words: str) -> None:
    assert looking.age(0.0, seconds) == words
