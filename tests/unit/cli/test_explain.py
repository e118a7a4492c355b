"""``tutti explain`` on files: sentences, data and exit codes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tutti import cli, dump
from tutti.cli import explain as explain_command
from tutti.cli import inputs
from tutti.cli.output import live_cluster
from tutti.model.decisions import Policy
from tutti.model.queues import Preemption
from tutti.operator.settings import Settings

from ...harness.builders import gang, node, snapshot_of

ROOT = Path(__file__).parents[3]
CLUSTER = ROOT / "docs" / "explain" / "cluster.yaml"


FITS = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, pods: 9},
   conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: tutti.dev/v1alpha1, kind: PodGroup, metadata: {name: fits, namespace: ml, uid: u},
   spec: {minMember: 1}}
- {apiVersion: v1, kind: Pod, metadata: {name: fits-0, namespace: ml, uid: v,
   labels: {tutti.dev/pod-group: fits}}, spec: {schedulerName: tutti, containers: [{name: c}]}}
"""


def explain(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli.main, ["explain", *arguments], env=env, prog_name="tutti")


def on_the_example(*arguments: str) -> Result:
    return explain("-f", str(CLUSTER), *arguments)


def test_all_that_wait_are_explained_without_a_name() -> None:
    result = on_the_example()
    assert result.exit_code == 0
    assert result.stdout.startswith("ml/train waits: NotEnoughRoom\n")
    assert "starts in the next cycle" not in result.stdout


def test_gangs_of_one_namespace_are_explained() -> None:
    """All that wait there, or the one of this name there."""
    assert on_the_example("-n", "ml").stdout == on_the_example().stdout
    assert on_the_example("-n", "other").stdout == "no gang waits in namespace other\n"
    named = on_the_example("train", "-n", "ml")
    assert (named.exit_code, named.stdout) == (0, on_the_example("ml/train").stdout)
    assert on_the_example("ml/train", "-n", "ml").stdout == named.stdout
    assert on_the_example("ml/train", "-n", "other", "-A").stdout == named.stdout
    assert "no gang other/train" in on_the_example("train", "-n", "other").stderr
    assert on_the_example("-n", "other", "-A").stdout == on_the_example().stdout


def test_two_namespaces_contradict_each_other() -> None:
    result = on_the_example("ml/train", "-n", "other")
    why = "ml/train and -n other contradict each other: leave one of them out"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"tutti explain: {why}\n")


def test_where_nobody_waits_it_is_said(tmp_path: Path) -> None:
    node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}"
    (tmp_path / "node.yaml").write_text(node)
    result = explain("-f", str(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "no gang waits\n")


def test_data_holds_what_the_sentences_say() -> None:
    result = on_the_example("ml/train", "-o", "json")
    assert result.exit_code == 0
    (found,) = json.loads(result.stdout)["gangs"]
    assert found["standing"]["state"] == "waits"
    assert found["advice"]["reason"] == "NotEnoughRoom"
    diagnosis: dict[str, Any] = found["advice"]["diagnosis"]
    requests = {"cpu": "8", "nvidia.com/gpu": "2", "pods": "1"}
    assert diagnosis["short"] == {"requests": requests, "roles": [], "forced": 4, "room": 2}
    assert diagnosis["nodes"] == {
        "count": 1,
        "like": "gpu-1",
        "kinds": 1,
        "certainty": "proved",
        "cut": False,
    }
    assert diagnosis["minMember"]["minMember"] == 2
    assert diagnosis["ended"]["gangs"] == ["ml/eval"]
    assert diagnosis["preferred"]["gangs"] == ["ml/render"]
    as_yaml = on_the_example("ml/train", "-o", "yaml").stdout
    assert yaml.safe_load(as_yaml) == json.loads(result.stdout)


def test_data_of_a_gang_that_does_not_wait_has_no_advice() -> None:
    (found,) = json.loads(on_the_example("eval", "-o", "json").stdout)["gangs"]
    assert found["standing"]["nodes"] == [["gpu-1", 1]]
    assert found["advice"] is None


def test_a_gang_that_does_not_exist_ends_with_1() -> None:
    result = on_the_example("ml/nobody")
    assert (result.exit_code, result.stderr) == (1, "tutti explain: there is no gang ml/nobody\n")
    assert on_the_example("other/train").exit_code == 1


def test_a_name_in_two_namespaces_ends_with_2(tmp_path: Path) -> None:
    group = (
        "{{apiVersion: tutti.dev/v1alpha1, kind: PodGroup,"
        " metadata: {{name: train, namespace: {0}}}, spec: {{minMember: 1}}}}"
    )
    (tmp_path / "groups.yaml").write_text("\n---\n".join(group.format(s) for s in ("b", "a")))
    result = explain("-f", str(tmp_path), "train")
    assert result.exit_code == 2
    assert result.stderr.endswith("train is in a, b: write a/train\n")
    assert explain("-f", str(tmp_path), "b/train").exit_code == 0


def test_a_file_that_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    result = explain("-f", str(tmp_path / "none.yaml"), "train")
    assert result.exit_code == 2
    assert "none.yaml" in result.stderr


def test_a_wrong_setting_ends_with_2_where_a_cluster_is_looked_at() -> None:
    result = explain("train", env={"TUTTI_STRATEGY": "ilb"})
    assert result.exit_code == 2
    assert "did you mean ilp?" in result.stderr
    assert explain("-f", str(CLUSTER), env={"TUTTI_STRATEGY": "ilb"}).exit_code == 0


def dumped(tmp_path: Path, strategy: str) -> str:
    """The example as a dump that was planned so."""
    snapshot, _ = inputs.read_files([str(CLUSTER)])
    setup = dump.PlannerConfig("tutti", strategy, Policy(), {"seconds": 600.0})
    path = tmp_path / "dump.json"
    path.write_text(dump.write(snapshot, setup, None))
    return str(path)


def test_a_dump_is_planned_as_it_says(tmp_path: Path) -> None:
    result = explain("-f", dumped(tmp_path, "bestfit"), "train")
    assert result.exit_code == 0
    assert "not proved" in result.stdout
    assert explain("-f", dumped(tmp_path, "ilp"), "train").stdout == on_the_example("train").stdout


def test_a_dump_of_a_strategy_that_is_not_known_ends_with_2(tmp_path: Path) -> None:
    result = explain("-f", dumped(tmp_path, "magic"), "train")
    assert result.exit_code == 2
    assert "strategy 'magic' is not one of bestfit, " in result.stderr


def test_who_would_end_is_said_before_preemption_is_turned_on(tmp_path: Path) -> None:
    low = gang("low").of(4, cpu=1).bound_on(*["n1"] * 4)
    high = gang("high").of(2, cpu=2).priority(3)
    path = tmp_path / "dump.json"
    setup = dump.PlannerConfig("tutti", "ilp", Policy(), {})
    path.write_text(dump.write(snapshot_of(node("n1", cpu=4), low, high), setup))
    told = "it starts once 4 pods of ml/low have ended: its priority is higher"
    assert told not in explain("-f", str(path), "high").stdout
    assert told in explain("-f", str(path), "high", "--preemption", "Full").stdout
    assert told not in explain("-f", str(path), "high", "--preemption", "Reclaim").stdout


@pytest.mark.parametrize("command", ["explain", "status", "dump"])
def test_a_live_cluster_is_read_as_with_another_setting_of_preemption(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So PodDisruptionBudgets are read, too."""
    seen: list[Preemption] = []

    def look(settings: Settings, *_: object) -> None:
        seen.append(settings.preemption)
        raise live_cluster.OutOfReach("no")

    monkeypatch.setattr(live_cluster, "look", look)
    for words in ([], ["--preemption", "Full"], ["--preemption", "Off"]):
        env = {"TUTTI_PREEMPTION": "Reclaim"}
        done = CliRunner().invoke(cli.main, [command, *words], env=env, prog_name="tutti")
        assert done.exit_code == 1
    assert seen == [Preemption.RECLAIM, Preemption.FULL, Preemption.OFF]


def test_a_cluster_that_cannot_be_reached_ends_with_1(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(
        """
        apiVersion: v1
        kind: Config
        current-context: it
        contexts: [{name: it, context: {cluster: it, user: it}}]
        clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
        users: [{name: it, user: {}}]
        """
    )
    result = explain("ml/train", "--kubeconfig", str(nowhere))
    assert result.exit_code == 1
    assert result.stderr.startswith("tutti explain: ")


def test_what_would_start_is_told_while_nothing_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gang that the plan places waits, too, as long as Tutti is paused."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    why = "Tutti is paused (TUTTI_MODE=paused), so nothing starts"
    fits = tmp_path / "fits.yaml"
    fits.write_text(FITS)
    question = explain_command._from_files([str(fits)])
    assert explain("-f", str(fits)).stdout == "no gang waits\n"
    paused = replace(question, hindrance=why)
    monkeypatch.setattr(explain_command, "_from_cluster", lambda *_: paused)
    said = f"ml/fits would start now, 1 on n1; {why}\n"
    assert explain().stdout == explain("ml/fits").stdout == explain("-n", "ml").stdout == said
    assert "no gang waits" in explain("-n", "other").stdout
    (told,) = json.loads(explain("-o", "json").stdout)["gangs"]
    assert (told["standing"]["hindrance"], told["advice"]) == (why, None)
