"""``tutti plan``: tables, JSON and the picture; replay, what-if, and what is said of bad input."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tutti import cli, dump
from tutti.dump import load
from tutti.model.cluster import Snapshot
from tutti.model.decisions import Objective, Plan, Policy
from tutti.model.owners import Owner
from tutti.model.queues import Preemption
from tutti.planning.plan import plan
from tutti.strategies import STRATEGIES
from tutti.strategies.problem import Budget

from ...harness.builders import Part, gang, node, reservation, single, snapshot_of

SETUP = dump.PlannerConfig(
    "tutti", "ilp", Policy(Objective.GANGS), {"nodes": 20_000, "seconds": 30.0}
)
BATCH = Owner("Job", "a", "batch")


def run(*words: str, text: str = "") -> Result:
    return CliRunner().invoke(cli.main, ["plan", *words], input=text, catch_exceptions=False)


def dumped(*parts: Part, setup: dump.PlannerConfig = SETUP) -> str:
    return dump.write(snapshot_of(*parts), setup)


def contended() -> str:
    """Room for one of two gangs."""
    return dumped(
        node("n1", cpu=4), gang("a").of(3, cpu=1).each(owner=BATCH), gang("b").of(4, cpu=1)
    )


def answers(told: dict[str, Any]) -> dict[str, str]:
    return {gang["gang"]: gang["answer"] for gang in told["gangs"]}


def changed(*words: str, text: str) -> dict[str, str]:
    result = run("-f", "-", "-o", "json", *words, text=text)
    assert result.exit_code == 0, result.stderr
    return {each["gang"]: each["change"] for each in json.loads(result.stdout)["difference"]}


def test_the_table_has_a_line_for_every_gang_and_one_that_sums_up() -> None:
    result = run("-f", "-", text=contended())
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].split() == [
        "GANG",
        "PRIORITY",
        "NEEDED",
        "ANSWER",
        "NODES,",
        "OR",
        "WHY",
        "NOT",
    ]
    assert lines[1].split() == ["ml/a", "0", "3", "starts", "3", "on", "n1"]
    assert lines[2].split()[:5] == ["ml/b", "0", "4", "waits", "NotEnoughRoom"]
    assert lines[3] == "1 gang would start, 1 would wait; proved: no better admission exists"


def test_json_has_the_claims_of_a_plan_that_ends_somebody() -> None:
    parts: list[Part] = [
        node("n1", cpu=4),
        gang("low").of(4, cpu=1).bound_on(*["n1"] * 4),
        gang("high").of(2, cpu=2).priority(3),
    ]
    told = json.loads(run("-f", "-", "-o", "json", text=dumped(*parts)).stdout)
    assert "claims" not in told
    on = replace(SETUP, policy=Policy(preemption=Preemption.FULL))
    told = json.loads(run("-f", "-", "-o", "json", text=dumped(*parts, setup=on)).stdout)
    (claim,) = told["claims"]
    assert (claim["gang"], claim["by"]) == ("ml/high", "priority")
    assert [victim["gang"] for victim in claim["victims"]] == ["ml/low"]
    assert answers(told)["ml/high"] == "waits"


def test_who_would_end_is_shown_before_preemption_is_turned_on() -> None:
    """The cluster is that of an operator that ends nobody."""
    some = gang("some").of(3, cpu=2).needing(1).bound_on(*["n2"] * 3).priority(9)
    leaving = gang("leaving").of(1, cpu=2).each(node="n3", terminating=True)
    parts: list[Part] = [
        *(node("n1", cpu=4), node("n2", cpu=6), node("n3", cpu=2)),
        gang("low").of(4, cpu=1).bound_on(*["n1"] * 4),
        some,
        leaving,
        gang("high").of(2, cpu=2).priority(3),
        gang("next").of(1, cpu=2).priority(2),
    ]
    text = dumped(*parts)
    lines = run("-f", "-", "--preemption", "Full", text=text).stdout.splitlines()
    ends = [line for line in lines if line.startswith("so that")]
    why = "its priority is higher"
    assert ends == [
        f"so that ml/high starts, these would end: 4 pods of ml/low; {why}",
        f"so that ml/next starts, these would end: pods that terminate already; {why}",
    ]
    other = run("-f", "-", "-n", "etl", "--preemption", "Full", text=text).stdout
    assert "so that" not in other
    reclaim = run("-f", "-", "--preemption", "Reclaim", text=text).stdout
    assert "so that" not in reclaim
    told = json.loads(run("-f", "-", "-o", "json", "--preemption", "Full", text=text).stdout)
    assert "claims" not in told["before"]
    assert [claim["gang"] for claim in told["after"]["claims"]] == ["ml/high", "ml/next"]


def test_json_says_the_same_to_programs() -> None:
    told = json.loads(run("-f", "-", "-o", "json", text=contended()).stdout)
    assert answers(told) == {"ml/a": "starts", "ml/b": "waits"}
    first, second = told["gangs"]
    assert first["placement"] == [{"node": "n1", "pods": ["a-0", "a-1", "a-2"]}]
    assert second["reason"] == "NotEnoughRoom"
    assert second["sentence"]
    assert told["proved"] is True
    assert told["levels"] == [{"priority": 0, "admitted": 1, "bound": 1, "gap": 0.0}]
    assert (told["strategy"], told["objective"]) == ("ilp", "gangs")
    assert yaml.safe_load(run("-f", "-", "-o", "yaml", text=contended()).stdout) == told


def test_the_picture_shows_who_would_have_what() -> None:
    drawn = run("-f", "-", "-o", "picture", text=contended()).stdout
    assert "1×4 CPU" in drawn  # noqa: RUF001 - a multiplication
    assert "a reserved 3" in drawn
    assert "1 of 4 free" in drawn


def test_names_are_no_markup_and_move_no_cursor() -> None:
    """Files may come from anybody."""
    text = contended().replace('"a"', '"[/x]\\u001b[2J"').replace('"n1"', '"[/n]"')
    tables = run("-f", "-", text=text).stdout
    drawn = run("-f", "-", "-o", "picture", text=text).stdout
    removed = run("-f", "-", "--remove-node", "[/n]", text=text).stdout
    for shown in (tables, drawn, removed):
        assert r"[/x]\x1b[2J" in shown
        assert "\x1b" not in shown
    assert "[/n]" in tables
    assert "[/n]" in drawn


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two namespaces: one gang starts in each, and in one of them another waits."""
    path = tmp_path_factory.mktemp("two") / "dump.json"
    parts = (node("n1", cpu=4).using(cpu=1), gang("a").of(1, cpu=1), gang("b").of(9, cpu=1))
    other = gang("c", namespace="etl").of(2, cpu=1)
    path.write_text(dumped(*parts, other))
    return str(path)


def test_gangs_of_one_namespace_are_shown_of_the_plan_of_all(two: str) -> None:
    first, of_all = run("-n", "etl", two).stdout.splitlines()[1:]
    assert first.split() == ["etl/c", "0", "2", "starts", "2", "on", "n1"]
    assert of_all.startswith("in all namespaces, 2 gangs would start, 1 would wait; ")
    assert run("-n", "etl", "-A", two).stdout == run(two).stdout
    nobody, again = run("-n", "nope", two).stdout.splitlines()
    assert (nobody, again) == ("no gang is in namespace nope", of_all)
    told = json.loads(run("-n", "etl", "-o", "json", two).stdout)
    assert answers(told) == {"etl/c": "starts"}
    assert told["levels"] == json.loads(run("-o", "json", two).stdout)["levels"]


def test_pods_without_their_podgroup_are_counted_in_one_namespace(tmp_path: Path) -> None:
    group = "metadata: {name: p, namespace: ml, labels: {tutti.dev/pod-group: gone}}"
    pod = f"{{apiVersion: v1, kind: Pod, {group}, spec: {{schedulerName: tutti, containers: []}}}}"
    (tmp_path / "pod.yaml").write_text(pod)
    said = "1 pods name a PodGroup that does not exist\n"
    assert run("-n", "ml", str(tmp_path)).stdout.endswith(said)
    assert "PodGroup" not in run("-n", "etl", str(tmp_path)).stdout


def test_who_fares_otherwise_is_shown_of_one_namespace(two: str) -> None:
    less = ("--remove-node", "n1", two)
    assert "ml/a" in run(*less).stdout
    lines = run("-n", "etl", *less).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["GANG", "etl/c", "before:", "after:", "in"]
    assert lines[2].startswith("before: in all namespaces, 2 gangs would start")
    assert lines[4].startswith("in namespace etl, 1 gang would change: ")
    quiet = run("-n", "nope", *less).stdout.splitlines()
    assert quiet[-1] == "in namespace nope, no gang changes"
    told = json.loads(run("-n", "etl", "-o", "json", *less).stdout)
    assert [one["gang"] for one in told["difference"]] == ["etl/c"]
    assert list(answers(told["before"])) == list(answers(told["after"])) == ["etl/c"]


def test_the_picture_of_one_namespace_draws_the_others_as_strangers(two: str) -> None:
    drawn = run("-n", "etl", "-o", "picture", two).stdout
    assert "c reserved 2" in drawn
    assert "others 2" in drawn
    assert "0 of 4 free" in drawn
    held = gang("held").of(1, cpu=1).bound_on("n1")
    drawn = run("-o", "picture", "-n", "x", "-", text=dumped(node("n1", cpu=2), held)).stdout
    assert "held" not in drawn


def test_devices_are_drawn_where_members_ask_for_them() -> None:
    text = dumped(
        node("n1", cpu=8, gpu=4).using(gpu=1),
        node("plain", cpu=8),
        gang("a").of(2, cpu=1, gpu=1).bound_on("n1", "n1"),
    )
    drawn = run("-f", "-", "-o", "picture", text=text).stdout
    assert "1×4 GPU" in drawn  # noqa: RUF001 - a multiplication
    assert "a 2" in drawn
    assert "others 1" in drawn
    assert "plain" not in drawn


def test_every_state_of_a_gang_has_its_answer() -> None:
    held = gang("held").of(2, cpu=1)
    told = json.loads(
        run(
            *("-f", "-", "-o", "json"),
            text=dumped(
                node("n1", cpu=16),
                gang("bound").of(2, cpu=1).bound_on("n1", "n1"),
                gang("grown").of(3, cpu=1).needing(2).bound_on("n1", "n1"),
                gang("new").of(2, cpu=1),
                gang("empty").needing(2),
                held,
                single("alone", cpu=1),
                reservation(held, ("held-0", "n1"), ("held-1", "n1")),
            ),
        ).stdout
    )
    assert answers(told) == {
        "ml/bound": "bound",
        "ml/grown": "grows",
        "ml/new": "starts",
        "ml/empty": "waits",
        "ml/held": "reserved",
        "ml/alone": "starts",
    }


def busy(seed: int) -> Snapshot:
    """Twelve nodes of several kinds, and twelve gangs that do not all fit."""
    chance = random.Random(seed)
    nodes = [
        node(f"n{i:02}", cpu=chance.choice([8, 16, 32]), gpu=chance.choice([0, 4, 8]), memory=64)
        .labelled(zone=chance.choice("ab"))
        .using(pods=chance.randint(1, 4), cpu=chance.randint(0, 8))
        for i in range(12)
    ]
    gangs = [
        gang(f"g{i:02}")
        .of(chance.randint(2, 12), cpu=chance.randint(1, 6), gpu=chance.choice([0, 1, 2, 4]))
        .priority(chance.choice([0, 0, 5]))
        .but(created=float(chance.randint(0, 5000)))
        for i in range(12)
    ]
    return snapshot_of(*nodes, *gangs, at=7200.5)


@pytest.mark.parametrize(("name", "times"), [("bestfit", 100), ("ilp", 5)])
def test_the_plan_in_a_dump_is_reproduced_from_its_objects_in_any_order(
    name: str, times: int
) -> None:
    setup = dump.PlannerConfig("tutti", name, Policy(), {"nodes": 20_000, "seconds": 30.0})
    of, enough = busy(1), replace(Budget(), seconds=3600.0)  # only the nodes of the search count
    made = plan(of, STRATEGIES[name](), STRATEGIES["bestfit"](), enough, setup.policy)
    assert made.placements
    assert made.rejections
    body = json.loads(dump.write(of, setup, made))
    for seed in range(times):
        random.Random(seed).shuffle(body["items"])
        found = dump.read([dump.Text("dump", json.dumps(body).encode())])
        snapshot = load.snapshot_of(found)
        assert snapshot == of
        again = plan(snapshot, STRATEGIES[name](), STRATEGIES["bestfit"](), enough)
        assert dump.plan_record(again) == body_plan(body)


def body_plan(body: dict[str, Any]) -> Any:
    return json.loads(body["metadata"]["annotations"]["tutti.dev/plan"])


def test_a_replay_says_whether_the_plan_is_the_same() -> None:
    of = snapshot_of(node("n1", cpu=4), gang("a").of(3, cpu=1))
    made = plan(of, STRATEGIES["ilp"](), STRATEGIES["bestfit"](), Budget(), SETUP.policy)
    same = run("-f", "-", text=dump.write(of, SETUP, made))
    assert (same.exit_code, same.stderr) == (0, "the plan is the one in the dump\n")
    other = run("-f", "-", text=dump.write(of, SETUP, Plan()))
    assert other.exit_code == 3
    assert "differs from the one in the dump" in other.stderr


def test_more_nodes_let_more_start() -> None:
    assert changed("--add-nodes", "1", "--like", "n1", text=contended()) == {"ml/b": "starts now"}


def test_a_node_less_leaves_room_for_fewer() -> None:
    two = dumped(
        node("n1", cpu=4), node("n2", cpu=3), gang("a").of(3, cpu=1), gang("b").of(4, cpu=1)
    )
    assert changed("--remove-node", "n1", text=two) == {"ml/b": "no longer starts"}


def test_what_ran_on_a_lost_node_waits_again_where_somebody_makes_it_again() -> None:
    bound = gang("a").of(2, cpu=1).bound_on("n1", "n1")
    for owner, change in ((BATCH, "other nodes"), (None, "no longer starts")):
        text = dumped(node("n1", cpu=4), node("n2", cpu=4), bound.each(owner=owner))
        assert changed("--remove-node", "n1", text=text) == {"ml/a": change}


def test_a_higher_priority_goes_first() -> None:
    assert changed("--set-priority", "ml/b=7", text=contended()) == {
        "ml/b": "starts now",
        "ml/a": "no longer starts",
    }
    told = json.loads(
        run("-f", "-", "-o", "json", "--set-priority", "b=7", text=contended()).stdout
    )
    assert [gang["priority"] for gang in told["after"]["gangs"]] == [7, 0]


def test_another_objective_chooses_others() -> None:
    text = dumped(
        node("n1", cpu=4),
        gang("large").of(1, cpu=4),
        gang("small").of(1, cpu=1),
        gang("tiny").of(1, cpu=1),
        setup=dump.PlannerConfig("tutti", "ilp", Policy(age_seconds=1e9), {}),
    )
    assert changed("--objective", "gangs", text=text) == {
        "ml/large": "no longer starts",
        "ml/small": "starts now",
        "ml/tiny": "starts now",
    }
    assert changed("--strategy", "bestfit", text=text) == {}


def test_a_manifest_is_planned_before_it_is_created(tmp_path: Path) -> None:
    job = tmp_path / "train.yaml"
    job.write_text((Path(__file__).parents[3] / "examples" / "job.yaml").read_text())
    text = dumped(node("n1", cpu=64, memory=64, gpu=8), gang("a").of(3, cpu=1))
    result = run("-f", "-", "--add", str(job), "-o", "json", text=text)
    (change,) = json.loads(result.stdout)["difference"]
    assert change["change"] == "new"
    assert change["after"]["answer"] == "starts"
    assert change["after"]["members"] > 1


def test_the_difference_is_a_table_too() -> None:
    result = run("-f", "-", "--add-nodes", "1", "--like", "n1", text=contended())
    head, row, before, after, sums_up = result.stdout.splitlines()
    assert head.split() == ["GANG", "CHANGE", "BEFORE", "AFTER"]
    assert row.split()[:3] == ["ml/b", "starts", "now"]
    assert before.startswith("before: 1 gang would start, 1 would wait")
    assert after.startswith("after:  2 gangs would start, 0 would wait")
    assert sums_up == "1 gang would change: 1 starts now"
    same = run("-f", "-", "--strategy", "bestfit", text=contended())
    assert same.stdout.splitlines()[-1] == "no gang changes"


def test_files_and_directories_are_one_cluster(tmp_path: Path) -> None:
    body = json.loads(contended())
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "some.yml").write_text(yaml.safe_dump(body["items"][0]))
    (tmp_path / "nodes" / "notes.txt").write_text("{")
    rest = {**body, "items": body["items"][1:]}
    (tmp_path / "rest.json").write_text(json.dumps(rest))
    result = run("-f", str(tmp_path / "nodes"), str(tmp_path / "rest.json"))
    assert "starts" in result.stdout
    assert result.exit_code == 0


def test_what_is_passed_over_is_said() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "uid": "u"}}
    group = json.loads(contended())["items"][1]
    text = yaml.safe_dump_all([json.loads(contended()), secret, group])
    assert run("-f", "-", text=text).stderr.splitlines() == [
        "skipped, because no decision depends on them: 1 Secret",
        "objects that occur more than once: 1; the last of each counts",
    ]


def test_pods_of_a_group_that_is_not_there_are_said() -> None:
    body = json.loads(contended())
    body["items"] = [
        item
        for item in body["items"]
        if (item["kind"], item["metadata"]["name"]) != ("PodGroup", "b")
    ]
    assert (
        "4 pods name a PodGroup that does not exist" in run("-f", "-", text=json.dumps(body)).stdout
    )


WRONG = {
    "no file": ([], "name a file"),
    "a missing one": (["-f", "/nowhere/at/all.yaml"], "/nowhere/at/all.yaml: No such file"),
    "an unknown node": (["-f", "-", "--remove-node", "n9"], "n9: there is no such node"),
    "an unknown kind": (["-f", "-", "--add-nodes", "1", "--like", "x"], "x: there is no such node"),
    "half a kind": (["-f", "-", "--add-nodes", "1"], "--like NODE together"),
    "no nodes": (["-f", "-", "--add-nodes", "0", "--like", "n1"], "--add-nodes 0: between 1 and"),
    "an unknown gang": (
        ["-f", "-", "--set-priority", "ml/aa=3"],
        "ml/aa: there is no such gang; did you mean ml/a?",
    ),
    "no priority": (["-f", "-", "--set-priority", "ml/a"], "write it as namespace/name=number"),
    "a strategy": (
        ["-f", "-", "--strategy", "bestfitt"],
        "strategy 'bestfitt' is not one of bestfit, firstfit, flow, ilp, ilp-highs, spread; did",
    ),
    "an objective": (["-f", "-", "--objective", "money"], "'money' is not one of 'resources'"),
    "an option": (["-f", "-", "--remove"], "No such option"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_ends_with_one_line_and_exit_code_2(name: str) -> None:
    words, sentence = WRONG[name]
    result = run(*words, text=contended())
    assert result.exit_code == cli.WRONG_INPUT
    assert sentence in result.stderr.splitlines()[-1]
    assert result.stdout == ""


def test_a_bad_file_ends_with_its_name_document_and_field(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("---\nkind: Node\napiVersion: v1\nmetadata: {name: n, labels: {a: 1}}\n")
    result = run("-f", str(bad))
    assert result.exit_code == cli.WRONG_INPUT
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"main plan: {bad}, document 1 (Node n): metadata.labels.a: Input")


def test_an_empty_directory_is_said(tmp_path: Path) -> None:
    assert "this directory has no" in run("-f", str(tmp_path)).stderr


def test_room_for_members_that_do_not_exist_yet_is_told() -> None:
    late = gang("a").role("driver", 1, cpu=1).role("worker", 2, 0).declaring(cpu=1).needing(3)
    text = dump.write(snapshot_of(node("n1", cpu=1), node("n2", cpu=2), late), SETUP)
    told = json.loads(run("-f", "-", "-o", "json", text=text).stdout)
    assert answers(told) == {"ml/a": "starts"}
    (one,) = told["gangs"]
    assert one["nodes"] == {"n1": 1, "n2": 2}
    assert one["placement"] == [
        {"node": "n1", "pods": ["a-0"]},
        {"node": "n2", "pods": [], "slots": {"worker": 2}},
    ]
