"""``tutti ui``: what is said where there is nothing to show; tests/e2e/test_console.py opens it."""

import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tutti import cli

CLUSTER = Path(__file__).parents[3] / "docs" / "explain" / "cluster.yaml"


def ui(*words: str, **more: Any) -> Result:
    return CliRunner().invoke(cli.main, ["ui", *words], prog_name="tutti", **more)


def test_a_file_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    result = ui("-f", str(tmp_path / "none.json"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tutti ui: ")
    assert result.stderr.count("\n") == 1


def test_a_cluster_that_is_not_there_ends_with_1(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    result = ui("--kubeconfig", str(config))
    assert result.exit_code == 1
    assert result.stderr.startswith("tutti ui: cannot reach a cluster: ")


def test_an_api_server_that_does_not_answer_ends_with_1(tmp_path: Path) -> None:
    config = tmp_path / "config"
    with socket.socket() as deaf:  # it has the port and does not listen: nobody else can
        deaf.bind(("127.0.0.1", 0))
        config.write_text(_kubeconfig(deaf.getsockname()[1]))
        result = ui("--kubeconfig", str(config))
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "refused the connection" in result.stderr


def _kubeconfig(port: int) -> str:
    return f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def test_a_wrong_setting_and_an_unknown_strategy_end_with_2(tmp_path: Path) -> None:
    assert ui(env={"TUTTI_OBJECTIVE": "x"}).exit_code == 2
    result = ui("--kubeconfig", str(_file(tmp_path)), env={"TUTTI_STRATEGY": "ilpp"})
    assert result.exit_code == 2
    assert "did you mean ilp?" in result.stderr


def _file(folder: Path) -> Path:
    path = folder / "config"
    path.write_text("{}")
    return path


@pytest.mark.parametrize("words", [("--port", "70000"), ("--port", "x"), ("extra",)])
def test_a_wrong_command_line_ends_with_2(words: tuple[str, ...]) -> None:
    assert ui(*words).exit_code == 2


def test_a_port_that_was_asked_for_and_is_taken_ends_with_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = ui("-f", str(CLUSTER), "--port", str(port), "--no-browser")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"tutti ui: port {port}: ")
