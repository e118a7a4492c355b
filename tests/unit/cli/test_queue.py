"""``tutti queue``, and queues in ``status``, ``top`` and ``plan``."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tutti import cli, dump
from tutti.cli import queue as command
from tutti.cli.output import live_cluster, watch
from tutti.cli.output.gang_rows import rows
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Policy
from tutti.model.keys import Uid
from tutti.model.queues import Amounts, PastUse, Queue, QueueMode, Stop

from ...harness.builders import gang, node, snapshot_of, space

SETUP = dump.PlannerConfig("tutti", "ilp", Policy(), {"nodes": 20_000, "seconds": 30.0})
GPU = "nvidia.com/gpu"
QUEUES = (
    Queue("ml", Uid("m"), guaranteed=((GPU, 4),), limits=(("pods", 9),)),
    Queue("nlp", Uid("n"), parent="ml", guaranteed=((GPU, 1),), stop=Stop.HOLD),
    Queue("vision", Uid("v"), parent="ml", guaranteed=((GPU, 2),), limits=((GPU, 6),)),
)


def cluster(*queues: Queue) -> Snapshot:
    """A gang that runs in vision on four GPUs, and one that its limit keeps waiting."""
    snapshot = snapshot_of(
        node("n1", cpu=8, memory=16, gpu=8, pods=20),
        space("ml"),
        gang("a").of(2, gpu=2).bound_on("n1", "n1").but(queue="vision"),
        gang("b").of(2, gpu=2).but(queue="vision").priority(5),
        gang("c").of(1, gpu=1),
        gang("none").but(queue="vision"),
    )
    return replace(snapshot, queues=queues or QUEUES, namespaces=(space("ml"),))


def tutti(*words: str, of: Snapshot | None = None) -> Result:
    """What is printed for a command line, with a dump on standard input."""
    text = dump.write(of or cluster(), SETUP)
    return CliRunner().invoke(cli.main, words, input=text, prog_name="tutti")


def queue(*words: str, of: Snapshot | None = None) -> Result:
    return tutti("queue", "-f", "-", *words, of=of)


def lines(result: Result) -> Sequence[str]:
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


def test_the_table_is_a_tree_with_a_line_for_each_quota() -> None:
    header, *body = lines(queue())
    assert header.split() == [
        *("QUEUE", "RESOURCE", "USE", "CHARGED", "COVERED", "GUARANTEED", "LIMIT", "WAITING"),
        *("SHARE", "STATE"),
    ]
    assert body[-1].endswith("the guarantee")
    indents = [len(line) - len(line.lstrip()) for line in body[:-1]]
    assert indents == [0, 2, 12, 4, 4]
    cells = [line.split() for line in body[:-1]]
    assert [line[0] for line in cells] == ["root", "ml", "pods", "nlp", "vision"]
    assert cells[-1] == [
        *("vision", GPU, "███████|███████······", "4", "4", "2", "6", "1", "25%", "Accepting")
    ]
    assert cells[-2][-1] == "Held"


@pytest.mark.parametrize(
    ("guaranteed", "limits", "bar"),
    [
        (((GPU, 4),), ((GPU, 4),), "█" * 20 + "|"),
        ((), ((GPU, 2),), "▒" * 20),
        (((GPU, 2),), ((GPU, 4),), "▒" * 10 + "|" + "▒" * 10),
        (((GPU, 6),), (), "█" * 10 + "·" * 5 + "|" + "·" * 5),
        (((GPU, 99),), (), "█" * 10 + "·" * 10 + "|"),
    ],
)
def test_a_bar_shows_what_is_covered_and_the_rest(
    guaranteed: Amounts, limits: Amounts, bar: str
) -> None:
    alone = Queue("vision", Uid("v"), guaranteed=guaranteed, limits=limits)
    told = [line.split() for line in lines(queue(of=cluster(alone)))]
    assert next(line for line in told if line[0] == "vision")[2] == bar


def test_one_queue_has_those_below_it_its_faults_and_its_gangs() -> None:
    broken = replace(QUEUES[2], limits=((GPU, 1),), parent="elsewhere")
    told = lines(queue("vision", of=cluster(*QUEUES[:2], broken)))
    assert "Held, not valid" in told[1]
    assert "its limit of 1 nvidia.com/gpu is below its guarantee of 2" in " ".join(told)
    assert "queue vision: its parent elsewhere does not exist" in " ".join(told)
    gangs = [line.split()[:4] for line in told[-2:]]
    assert gangs == [["ml/a", "vision", "runs", "0"], ["ml/b", "vision", "waits", "5"]]
    assert lines(queue("nlp"))[-1] == "No gang is in queue nlp."


def test_quotas_in_shadow_are_in_parentheses() -> None:
    shadow = replace(QUEUES[2], mode=QueueMode.SHADOW, guaranteed=((GPU, 1), ("cpu", 3000)))
    told = lines(queue(of=cluster(QUEUES[0], shadow)))
    rows = [line.split() for line in told]
    assert next(row for row in rows if row[0] == "vision")[3:6] == ["0", "0", "(3)"]
    assert ["4", "4", "(1)", "(6)"] in [row[2:] for row in rows]
    assert told[-1].startswith("(in parentheses) a quota of a queue in shadow")
    assert not any("(" in line for line in lines(queue())[:-1])


def test_wide_has_weights_modes_and_what_has_no_quota() -> None:
    past = PastUse(400_000, 200_000, 0.0, 1.0)
    shadow = replace(QUEUES[2], mode=QueueMode.SHADOW, weight=7, past_use=past)
    told = lines(queue("-o", "wide", of=cluster(QUEUES[0], shadow)))
    assert told[0].split()[-4:] == ["PAST", "WEIGHT", "MODE", "STATE"]
    vision = next(line for line in told if line.strip().startswith("vision"))
    assert vision.split()[-6:] == ["40%", "7", "Shadow", "Accepting,", "in", "shadow"]
    ml = next(line for line in told if line.strip().startswith("ml"))
    assert ml.split()[-4] == "-"
    assert any(line.split()[:1] == ["pods"] for line in told)


def test_programs_get_all_of_it() -> None:
    told = json.loads(queue("-o", "json").stdout)
    assert [one["name"] for one in told["queues"]] == ["root", "ml", "nlp", "vision"]
    vision = told["queues"][-1]
    assert vision == {
        "name": "vision",
        "parent": "ml",
        "depth": 2,
        "guaranteed": {GPU: "2"},
        "limits": {GPU: "6"},
        "charged": {GPU: "4", "pods": "2"},
        "covered": {GPU: "4"},
        "borrowed": {},
        "waiting": 1,
        "share": 0.25,
        "pastShare": None,
        "weight": 1,
        "stop": "None",
        "mode": "Active",
        "state": "Accepting",
        "wouldStop": [],
        "faults": [],
    }
    assert [gang["gang"] for gang in told["gangs"]] == ["ml/a", "ml/c", "ml/b"]
    assert yaml.safe_load(queue("-o", "yaml").stdout) == told


def test_without_queues_it_says_so() -> None:
    none = replace(cluster(), queues=())
    assert lines(queue(of=none)) == [
        "There is no Queue: all gangs share the cluster without quotas."
    ]
    assert json.loads(queue("-o", "json", of=none).stdout) == {"queues": [], "gangs": []}


@pytest.mark.parametrize(
    ("words", "of", "code", "sentence"),
    [
        (["vison"], None, 1, "there is no queue vison; did you mean vision?"),
        (["x"], None, 1, "there is no queue x: there are ml, nlp, root, vision"),
        (["x"], replace(cluster(), queues=()), 1, "there is no queue x: there are none"),
        (["-w"], None, 2, "-f and -w contradict each other"),
    ],
)
def test_what_cannot_be_shown_ends_with_what_to_do(
    words: Sequence[str], of: Snapshot | None, code: int, sentence: str
) -> None:
    result = queue(*words, of=of)
    assert (result.exit_code, result.stdout) == (code, "")
    assert sentence in result.stderr


def test_a_cluster_is_looked_at_once_or_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([cluster(), cluster(*QUEUES[:1])])

    def look(*_: object) -> watch.View:
        seen = next(looks, None)
        if seen is None:
            raise KeyboardInterrupt
        return watch.View(seen, (), None)

    monkeypatch.setattr(watch, "look", look)
    monkeypatch.setattr(watch, "WATCH_SECONDS", 0.0)
    result = tutti("queue", "-w")
    assert result.exit_code == 0
    assert result.stdout.count("QUEUE") == 2


def test_a_cluster_that_cannot_be_seen_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> watch.View:
        raise live_cluster.OutOfReach("it is away; turn it on")

    monkeypatch.setattr(watch, "look", look)
    result = tutti("queue")
    assert (result.exit_code, result.stderr) == (1, "tutti queue: it is away; turn it on\n")


def test_names_of_queues_are_completed_from_the_files_that_are_named(tmp_path: Path) -> None:
    path = tmp_path / "now.json"
    path.write_text(dump.write(cluster(), SETUP))

    def words(*paths: str) -> Any:
        context: Any = type("Context", (), {"params": {"paths": paths}})
        return command._queue_names(context, command.command.params[0], "v")

    assert words(str(path)) == ["vision"]
    assert words() == []


def test_status_and_top_say_the_queue_of_each_gang() -> None:
    found = {row.gang.key.name: row.queue for row in rows(cluster(), {}, None)}
    assert found == {"a": "vision", "b": "vision", "c": "root", "none": "vision"}
    assert {row.queue for row in rows(replace(cluster(), queues=()), {}, None)} == {""}


def differences(*words: str) -> dict[str, str]:
    told = json.loads(tutti("plan", "-f", "-", "-o", "json", *words).stdout)
    return {one["gang"]: one["after"]["answer"] for one in told["difference"]}


def test_a_plan_can_be_tried_with_another_limit_or_queue(tmp_path: Path) -> None:
    assert differences("--set-queue", "vision.limit=7") == {}
    assert differences("--set-queue", "vision.limit=8")["ml/b"] == "starts"
    added = tmp_path / "queue.yaml"
    spec = {"parent": "ml", "namespaces": {}, "resources": [{"name": GPU, "limit": 9}]}
    named = {"apiVersion": "tutti.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "vision"}}
    added.write_text(yaml.safe_dump({**named, "spec": spec}))
    assert differences("--add-queue", str(added))["ml/b"] == "starts"


def test_the_first_queues_can_be_tried_for_namespaces_by_their_labels(tmp_path: Path) -> None:
    """In files of kubectl, and before the cluster has any Queue."""
    team = {"matchLabels": {"team": "vision"}}
    quota = {"name": GPU, "limit": 1}
    tried = {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "vision"},
        "spec": {"namespaces": team, "defaultFor": team, "resources": [quota]},
    }
    files = {"queue": tried}
    for name, labels in (("ml", {"team": "vision"}), ("etl", {})):
        meta = {"name": name, "labels": labels}
        files[name] = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    for name, content in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(content))
    free = snapshot_of(node("n1", gpu=8, pods=20), gang("b").of(2, gpu=1))
    words = ["plan", "-f", "-", "-f", str(tmp_path / "ml"), "-f", str(tmp_path / "etl")]
    told = tutti(*words, "-o", "json", "--add-queue", str(tmp_path / "queue"), of=free)
    (waits,) = json.loads(told.stdout)["difference"]
    assert (waits["gang"], waits["before"]["answer"]) == ("ml/b", "starts")
    assert waits["after"]["reason"] == "QueueAtLimit"


@pytest.mark.parametrize("bound_at", [50.0, 70.0])
def test_gangs_that_run_count_in_the_first_queue_that_is_tried(
    bound_at: float, tmp_path: Path
) -> None:
    """They name it already, and they count as started before it, also if a clock is fast."""
    quota = {"name": GPU, "limit": 7}
    (tmp_path / "queue").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "tutti.dev/v1alpha1",
                "kind": "Queue",
                "metadata": {"name": "vision"},
                "spec": {"namespaces": {}, "resources": [quota]},
            }
        )
    )
    runs = gang("a").of(2, gpu=2).each(bound_at=bound_at).bound_on("n1", "n1")
    waits = gang("b").of(2, gpu=2).but(queue="vision")
    now = snapshot_of(node("n1", gpu=8, pods=20), runs.but(queue="vision"), waits, at=60.0)
    words = ["plan", "-f", "-", "-o", "json", "--add-queue", str(tmp_path / "queue")]
    (told,) = json.loads(tutti(*words, of=now).stdout)["difference"]
    assert (told["gang"], told["before"]["answer"]) == ("ml/b", "starts")
    assert told["after"]["reason"] == "QueueAtLimit"
    assert "4 of 7 nvidia.com/gpu are in use" in told["after"]["sentence"]


def test_a_change_of_queues_that_makes_no_sense_ends_the_command(tmp_path: Path) -> None:
    result = tutti("plan", "-f", "-", "--set-queue", "vision.max=8")
    assert result.exit_code == 2
    assert "max is no such field" in result.stderr
    empty = tmp_path / "empty.yaml"
    empty.write_text("apiVersion: v1\nkind: List\nitems: []\n")
    result = tutti("plan", "-f", "-", "--add-queue", str(empty))
    assert result.exit_code == 2
    assert "this file has no Queue" in result.stderr
