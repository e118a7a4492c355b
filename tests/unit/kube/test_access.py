"""Which kubeconfig is read: those of a list that are there, as kubectl reads it."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.aio.config import ConfigException

from tutti.kube import access, errors, kinds
from tutti.kube.client import Client

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


@pytest.mark.parametrize(
    ("host", "why"),
    [("", "Service host/port is not set"), ("10.0.0.1", "Service token file does not exist")],
)
async def test_neither_a_kubeconfig_nor_a_pod_is_said(
    host: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a pod and outside."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in (("HOST", host), ("PORT", "443" * bool(host))):
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{name}", value)
        if not value:
            monkeypatch.delenv(f"KUBERNETES_SERVICE_{name}")
    with pytest.raises(errors.NoAccess) as refused:
        await access.Access.load()
    where = "no kubeconfig and no pod service account"
    assert str(refused.value) == f"cannot reach a cluster: {where}: {why}"


async def test_of_several_files_those_that_are_there_count(
    config: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"/nowhere/config:{config}")
    assert (await access.Access.load()).server == "https://127.0.0.1:6443"
    assert access.namespace_of() == "ml"
    assert caplog.text == ""


def _written(path: Path, contexts: list[str], current: str | None) -> str:
    """A kubeconfig with these contexts, each with a namespace of its own."""
    about = [
        {"name": context, "context": {"cluster": "c", "user": "u", "namespace": f"of-{context}"}}
        for context in contexts
    ]
    config: dict[str, Any] = {**CONFIG, "contexts": about}
    if current is None:
        del config["current-context"]
    else:
        config["current-context"] = current
    path.write_text(yaml.safe_dump(config))
    return str(path)


MANY = [f"c{n}" for n in range(access.NAMED + 3)]
SOME = "c0, c1, c10, c2, c3, c4, c5, c6 and 3 more"
LACKING = {
    "another one is asked for": (["b", "a"], "a", "x", "no context x; it has a, b"),
    "the current one is gone": (["a"], "x", None, "no context x; it has a"),
    "none is the current one": (["a"], None, None, "no current context; it has a"),
    "there is none": ([], None, "x", "no context x; it has none"),
    "there are many": (MANY, "c0", "x", f"no context x; it has {SOME}"),
}


@pytest.mark.parametrize("case", LACKING)
async def test_a_context_that_is_not_there_is_told_which_there_are(
    case: str, tmp_path: Path
) -> None:
    contexts, current, asked, words = LACKING[case]
    path = _written(tmp_path / "config", contexts, current)
    with pytest.raises(errors.NoAccess) as refused:
        await access.Access.load(path, asked)
    assert str(refused.value) == f"cannot reach a cluster: kubeconfig {path} has {words}"
    assert access.namespace_of(path, asked) == "default"


async def test_a_context_that_is_named_needs_no_current_one(tmp_path: Path) -> None:
    path = _written(tmp_path / "config", ["a", "b"], None)
    assert (await access.Access.load(path, "b")).server == "https://127.0.0.1:6443"
    assert access.namespace_of(path, "b") == "of-b"


UNREADABLE = "it does not have the format of a kubeconfig file"
NONE = {
    "nothing": ("", " is empty"),
    "a remark": ("# soon", " is empty"),
    "a list": ("[]", f": {UNREADABLE}"),
    "a word": ("config", f": {UNREADABLE}"),
    "no YAML": (
        "a: [",
        ": it is not YAML: in line 1: expected the node content, but found '<stream end>'",
    ),
    "no text": ("\0", ": it is not YAML: it is not text"),
    "contexts without a name": ("contexts: [{}]", f": {UNREADABLE}"),
    "contexts that are words": ("contexts: [a, b]", ": name is not there, or is empty"),
    "contexts that are one word": ("contexts: ab", ": name is not there, or is empty"),
    "a context that is a word": (
        "{current-context: a, contexts: [{name: a, context: b}]}",
        f": {UNREADABLE}",
    ),
    "a context of nothing": (
        "{current-context: a, contexts: [{name: a}]}",
        ": context is not there, or is empty",
    ),
    "a cluster that is not there": (
        "{current-context: a, contexts: [{name: a, context: {cluster: b}}]}",
        ": there is no b among its clusters",
    ),
    "no list of clusters": (
        "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b}]}",
        ": cluster is not there, or is empty",
    ),
}


@pytest.mark.parametrize("case", NONE)
async def test_what_is_no_kubeconfig_is_one_line(case: str, tmp_path: Path) -> None:
    content, words = NONE[case]
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(errors.NoAccess) as refused:
        await access.Access.load(str(path))
    assert str(refused.value) == f"cannot reach a cluster: kubeconfig {path}{words}"
    assert access.namespace_of(str(path)) == "default"


def _with(path: Path, user: dict[str, Any], **cluster: str) -> str:
    """A kubeconfig with such a user, at such a cluster."""
    server = {"server": "https://127.0.0.1:6443", **cluster}
    parts = {"users": [{"name": "u", **user}], "clusters": [{"name": "c", "cluster": server}]}
    path.write_text(yaml.safe_dump({**CONFIG, **parts}))
    return str(path)


PEM = base64.b64encode(b"hunter2").decode()
WRONG: Mapping[str, tuple[dict[str, Any], str]] = {
    "an entry with a token in the wrong place": (
        {"token": "hunter2"},
        "user is not there, or is empty",
    ),
    "a token's file that is not there": (
        {"user": {"tokenFile": "/nowhere/token"}},
        "/nowhere/token: No such file or directory",
    ),
    "a certificate's file that is not there": (
        {"user": {"client-certificate": "/nowhere/pem"}},
        "/nowhere/pem does not exist",
    ),
    "a certificate that is none": (
        {"user": {"client-certificate-data": PEM, "client-key-data": PEM}},
        "a certificate or key in it cannot be read",
    ),
    "a provider of which nothing is said": (
        {"user": {"auth-provider": {"name": "oidc"}}},
        "oidc: missing configuration",
    ),
}


@pytest.mark.parametrize("case", WRONG)
async def test_what_is_wrong_in_a_kubeconfig_is_said_without_its_secrets(
    case: str, tmp_path: Path
) -> None:
    user, words = WRONG[case]
    path = _with(tmp_path / "config", user)
    with pytest.raises(errors.NoAccess) as refused:
        await access.Access.load(path)
    assert str(refused.value) == f"cannot reach a cluster: kubeconfig {path}: {words}"
    assert refused.value.todo == ""


def _plugin(command: str, *arguments: str) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"user": {"exec": {"apiVersion": version, "command": command, "args": [*arguments]}}}


NOT_JSON = "failed to decode process output: Expecting value: line 1 column 1 (char 0)"
PLUGINS = {
    "is not there": (
        _plugin("no-such-plugin"),
        "no-such-plugin gives no credentials: No such file or directory",
    ),
    "says nothing": (_plugin("false"), "false gives no credentials: it ended with exit code 1"),
    "says why": (
        _plugin("sh", "-c", "echo 'log in,' >&2; echo please. >&2; exit 3"),
        "sh gives no credentials: it ended with exit code 3: log in, please",
    ),
    "answers nonsense": (
        _plugin("echo", "hunter2"),
        f"echo gives no credentials: {NOT_JSON}",
    ),
}


@pytest.mark.parametrize("case", PLUGINS)
async def test_an_exec_plugin_that_gives_nothing_is_said_and_nothing_else(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user, words = PLUGINS[case]
    path = _with(tmp_path / "config", user)
    with pytest.raises(errors.NoAccess) as refused:
        await access.Access.load(path)
    why = f"its exec plugin {words}"
    assert str(refused.value) == f"cannot reach a cluster: kubeconfig {path}: {why}"
    assert refused.value.todo == "mend that, or log in again"
    assert caplog.text == ""


async def test_an_exec_plugin_is_asked_for_a_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What else the loader logs stays where it goes."""
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    told = json.dumps({**answer, "status": {"token": "hunter2"}})
    caplog.set_level("DEBUG")
    found = await access.Access.load(_with(tmp_path / "config", _plugin("echo", told)))
    assert found.server == "https://127.0.0.1:6443"
    assert "exec provider" in caplog.text


async def test_credentials_that_cannot_be_renewed_are_an_error_like_any_other(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request fails, and may be sent again; whoever sends it goes on."""

    async def gone(*_: object, **__: object) -> str:
        raise ConfigException("Token file exists but empty.")

    reached = await access.Access.load(config)
    monkeypatch.setattr(reached._configuration, "get_api_key_with_prefix", gone)
    async with Client(reached) as api:
        with pytest.raises(errors.Unavailable, match=r"^credentials cannot be renewed: Token file"):
            await api.page(kinds.NODE.stream())
