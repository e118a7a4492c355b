"""Access to the API server: kubeconfig or service account, and sessions that sign every request.

Both ``client`` and kopf use these sessions. The kubernetes client handles credentials: exec
plugins, rotated tokens, certificates.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.config import kube_config

from . import errors, kubeconfig_errors

# The exceptions of reading a file that is not a valid kubeconfig.
_UNREADABLE = (
    kubernetes_config.ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
)

DEFAULT_NAMESPACE = "default"
NO_WAY = "cannot reach a cluster"
NAMED = 8  # contexts that one line names at most; arbitrary


class Access:
    """The address of the API server and the credentials; makes sessions for Tutti and kopf."""

    def __init__(self, configuration: kubernetes_client.Configuration) -> None:
        self._configuration = configuration
        self.server: str = configuration.host
        rest = kubernetes_client.rest.RESTClientObject(configuration)
        self._ssl = rest.ssl_context

    @classmethod
    async def load(cls, kubeconfig: str | None = None, context: str | None = None) -> Self:
        """Load a kubeconfig if one is named or set, or else the service account of the pod.

        Raises:
            errors.NoAccess: neither can be read; the message is one sentence.
        """
        configuration = kubernetes_client.Configuration()
        paths = kubeconfig or os.environ.get("KUBECONFIG") or _default_kubeconfig()
        path = _existing(paths)
        if paths and not path:
            raise errors.NoAccess(f"{NO_WAY}: kubeconfig {paths} does not exist")
        where = f"kubeconfig {path}" if path else "no kubeconfig and no pod service account"
        try:
            if path:
                await _take_in(configuration, path, context)
            else:
                kubernetes_config.load_incluster_config(client_configuration=configuration)
            return cls(configuration)
        except _UNREADABLE as problem:
            raise errors.NoAccess(
                f"{NO_WAY}: {where}: {kubeconfig_errors.why(problem)}"
            ) from problem

    def session(self, *middlewares: aiohttp.ClientMiddlewareType) -> aiohttp.ClientSession:
        """Make a session that signs every request with fresh credentials."""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._ssl),
            middlewares=(self._sign, *middlewares),
            headers={"User-Agent": "tutti"},
            proxy=self._configuration.proxy,
        )

    async def _sign(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        url = request.url
        if url.origin() != type(url)(self.server).origin():
            return await send(request)  # after a redirect, which a proxied pod may have made
        # An exec plugin or a rotated service account may give another token at every request.
        try:
            token = await self._configuration.get_api_key_with_prefix(
                "BearerToken", alias="authorization"
            )
        except _UNREADABLE as problem:
            why = kubeconfig_errors.why(problem)
            raise errors.Unavailable(f"credentials cannot be renewed: {why}") from problem
        if token:
            request.headers["Authorization"] = token
        return await send(request)


def namespace_of(kubeconfig: str | None = None, context: str | None = None) -> str:
    """The namespace of a context of a kubeconfig, as kubectl reads it; else ``default``."""
    path = _existing(kubeconfig or os.environ.get("KUBECONFIG") or _default_kubeconfig())
    if not path:
        return DEFAULT_NAMESPACE
    try:
        _, chosen = _chosen(path, context)
        return str(chosen.get("namespace") or DEFAULT_NAMESPACE)
    except (errors.NoAccess, *_UNREADABLE):
        return DEFAULT_NAMESPACE


async def _take_in(
    configuration: kubernetes_client.Configuration, path: str, context: str | None
) -> None:
    """Set up the configuration from a context of these files.

    Raises:
        errors.NoAccess: there is no such context, or its exec plugin gives no credentials.
    """
    chosen, _ = _chosen(path, context)
    with _log_of_plugins() as messages:
        await kubernetes_config.load_kube_config(
            config_file=path, context=chosen, client_configuration=configuration
        )
    if messages:
        plugin = f"its exec plugin {_plugin(path, chosen)}"
        why = f"{plugin} gives no credentials: {kubeconfig_errors.of_plugin(messages[-1])}"
        raise errors.NoAccess(f"{NO_WAY}: kubeconfig {path}: {why}", "mend that, or log in again")


def _plugin(path: str, context: str) -> str:
    """The command of the exec plugin of a context that the loader has read."""
    merged = kube_config.KubeConfigMerger(path).config
    user = merged["contexts"].get_with_name(context)["context"]["user"]
    return str(merged["users"].get_with_name(user)["user"]["exec"]["command"])


@contextmanager
def _log_of_plugins() -> Iterator[list[str]]:
    """Collect the errors that the loader would log about an exec plugin; it raises none."""
    messages: list[str] = []

    def is_other(record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            return True
        messages.append(record.getMessage())
        return False

    kube_config.logger.addFilter(is_other)
    try:
        yield messages
    finally:
        kube_config.logger.removeFilter(is_other)


def _chosen(path: str, context: str | None) -> tuple[str, Mapping[str, Any]]:
    """Name and content of the requested context of these files, or else of the current one.

    Raises:
        errors.NoAccess: there is no such context, and the sentence names the contexts that exist;
            or a file is empty.
    """
    for file in path.split(os.pathsep):
        if yaml.safe_load(Path(file).read_text()) is None:
            raise errors.NoAccess(f"{NO_WAY}: kubeconfig {file} is empty")
    merged = kube_config.KubeConfigMerger(path).config.value
    contexts = {
        str(entry.value["name"]): entry.value.get("context") for entry in merged["contexts"]
    }
    name = str(context or merged.get("current-context") or "")
    if name in contexts:
        return name, contexts[name] or {}
    names = sorted(contexts)
    listed = ", ".join(names[:NAMED]) or "none"
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    lacking = f"no context {name}" if name else "no current context"
    where = f"kubeconfig {path} has {lacking}; it has {listed}{rest}"
    raise errors.NoAccess(f"{NO_WAY}: {where}")


def _existing(path: str | None) -> str | None:
    """The files that exist of a list separated by colons, as for kubectl; None if none exists."""
    files = (file for file in (path or "").split(os.pathsep) if os.path.exists(file))  # noqa: PTH110
    return os.pathsep.join(files) or None


def _default_kubeconfig() -> str | None:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    path = os.path.expanduser("~/.kube/config")  # noqa: PTH111 - a string is what is needed
    return path if os.path.exists(path) else None  # noqa: PTH110 - likewise
