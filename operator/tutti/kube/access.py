"""How to reach the API server: kubeconfig or service account, and sessions that sign every request.

Separate from the client because kopf needs a session too. Credentials are the kubernetes client's
business: exec plugins, rotated tokens, certificates.
"""

import os
from typing import Self

import aiohttp
import yaml
from kubernetes.aio import client as kubernetes_client
from kubernetes.aio import config as kubernetes_config

from . import errors

# What a file that is no kubeconfig may raise.
_UNREADABLE = (
    kubernetes_config.ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,
)

DEFAULT_NAMESPACE = "default"


class Access:
    """Where the API server is and how to be let in; makes sessions, ours and kopf's."""

    def __init__(self, configuration: kubernetes_client.Configuration) -> None:
        self._configuration = configuration
        self.server: str = configuration.host
        rest = kubernetes_client.rest.RESTClientObject(configuration)
        self._ssl = rest.ssl_context

    @classmethod
    async def load(cls, kubeconfig: str | None = None, context: str | None = None) -> Self:
        """Load a kubeconfig if one is named or set, else the pod's own service account.

        Raises:
            errors.NoAccess: neither can be read, in one sentence.
        """
        configuration = kubernetes_client.Configuration()
        named = kubeconfig or os.environ.get("KUBECONFIG") or _default_kubeconfig()
        path = _existing(named)
        if named and not path:
            raise errors.NoAccess(f"cannot reach a cluster: kubeconfig {named} does not exist")
        try:
            if path:
                await kubernetes_config.load_kube_config(
                    config_file=path, context=context, client_configuration=configuration
                )
            else:
                kubernetes_config.load_incluster_config(client_configuration=configuration)
        except _UNREADABLE as problem:
            where = f"kubeconfig {path}" if path else "no kubeconfig and no pod service account"
            raise errors.NoAccess(f"cannot reach a cluster: {where}: {problem}") from problem
        return cls(configuration)

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
        # What an exec plugin or a rotated service account token says is asked for every time.
        token = await self._configuration.get_api_key_with_prefix(
            "BearerToken", alias="authorization"
        )
        if token:
            request.headers["Authorization"] = token
        return await send(request)


def namespace_of(kubeconfig: str | None = None, context: str | None = None) -> str:
    """The namespace that a context of a kubeconfig names, as kubectl reads it; else default."""
    path = _existing(kubeconfig or os.environ.get("KUBECONFIG") or _default_kubeconfig())
    if not path:
        return DEFAULT_NAMESPACE
    try:
        contexts, active = kubernetes_config.list_kube_config_contexts(path)
    except _UNREADABLE:
        return DEFAULT_NAMESPACE
    chosen = next((one for one in contexts if one["name"] == context), active)
    return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)


def _existing(path: str | None) -> str | None:
    """Of several files, separated by colons, those that are there, as for kubectl."""
    found = (each for each in (path or "").split(os.pathsep) if os.path.exists(each))  # noqa: PTH110
    return os.pathsep.join(found) or None


def _default_kubeconfig() -> str | None:
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return None
    path = os.path.expanduser("~/.kube/config")  # noqa: PTH111 - a string is what is needed
    return path if os.path.exists(path) else None  # noqa: PTH110 - likewise
