"""Which kubeconfig is read: those of a list that are there, as kubectl reads it."""

from pathlib import Path

import pytest
import yaml

from tutti.kube import access, errors

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
    "users": [{"name": "u", "user": {}}],
}


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(CONFIG))
    return str(path)


async def test_a_file_that_is_not_there_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(errors.NoAccess) as refused:
        await access.Access.load()
    assert str(refused.value) == "cannot reach a cluster: kubeconfig /nowhere/config does not exist"
    assert access.namespace_of() == "default"
    assert capfd.readouterr().err == ""


async def test_of_several_files_those_that_are_there_count(
    config: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"/nowhere/config:{config}")
    assert (await access.Access.load()).server == "https://127.0.0.1:6443"
    assert access.namespace_of() == "ml"
    assert caplog.text == ""
