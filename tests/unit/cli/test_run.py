"""``tutti run`` where there is nothing to run against."""

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tutti import cli


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Leave logging as it was."""
    loggers = [logging.getLogger(name) for name in ("", "kopf", "aiohttp")]
    levels, handlers = [logger.level for logger in loggers], list(loggers[0].handlers)
    yield
    loggers[0].handlers[:] = handlers
    for one, level in zip(loggers, levels, strict=True):
        one.setLevel(level)


PLUGIN = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin}}"
NAMED = f"""
current-context: it
contexts: [{{name: it, context: {{cluster: it, user: it}}}}]
clusters: [{{name: it, cluster: {{server: "http://127.0.0.1:1"}}}}]
users: [{{name: it, user: {PLUGIN}}}]
"""
NOTHING = "its exec plugin no-such-plugin gives no credentials: No such file or directory"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", " is empty; name a cluster with --kubeconfig"),
        (NAMED, f": {NOTHING}; mend that, or log in again"),
    ],
)
def test_no_cluster_is_one_line_and_exit_code_1(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    result = CliRunner().invoke(cli.main, ["run", "--kubeconfig", str(path)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"tutti run: cannot reach a cluster: kubeconfig {path}{words}\n"


def test_a_port_that_is_taken_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(NAMED.replace(PLUGIN, "{}"))
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = ["run", "--kubeconfig", str(path)]
        result = CliRunner().invoke(cli.main, words, env={"TUTTI_PROBE_PORT": port})
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert f"{port}): address already in use" in result.stderr
