"""A console that is asked as a browser asks it, without a browser."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

from tutti import dump
from tutti.cli.output import offline
from tutti.cli.output.answers import CommandAnswers
from tutti.console import security
from tutti.console.observation import Cluster, Files
from tutti.console.server import Console, serving
from tutti.dump.load import snapshot_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tutti.console.observation import Answers


@dataclass
class Client:
    """The browser that used the token."""

    port: int
    session: security.Session
    http: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)
    responses: list[aiohttp.ClientResponse] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Where the console is."""
        return f"http://127.0.0.1:{self.port}"

    async def open(self, token: str) -> aiohttp.ClientResponse:
        """Use a token."""
        own = {"Origin": self.address}
        body = {"token": token}
        response = await self.http.post(f"{self.address}/api/session", json=body, headers=own)
        self.responses.append(response)
        if response.status == 200:
            name = security.cookie_name(self.port)
            answer = await response.json()
            self.headers = {
                "Cookie": f"{name}={response.cookies[name].value}",
                security.KEY_HEADER: answer["key"],
            }
        return response

    async def raw(self, path: str, method: str = "GET", **more: Any) -> aiohttp.ClientResponse:
        """A request with other headers than the page would send, where ``headers`` has some."""
        headers = {**self.headers, **more.pop("headers", {})}
        response = await self.http.request(method, self.address + path, headers=headers, **more)
        self.responses.append(response)
        return response

    async def get(self, path: str, **query: str) -> Any:
        """An answer as data."""
        return await (await self.raw(path, params=query)).json()

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """An answer to a question that has a body."""
        own = {"Origin": self.address}
        return await (await self.raw(path, "POST", json=body, headers=own)).json()

    async def explain(self, gang: str) -> list[Any]:
        """The lines of an explanation."""
        response = await self.raw("/api/explain", params={"gang": gang})
        return [json.loads(line) for line in (await response.text()).splitlines()]


@asynccontextmanager
async def console(cluster: Cluster, answers: Answers) -> AsyncIterator[Client]:
    """A console, and a client whose cookies nobody keeps for it."""
    numbers = itertools.count(1)
    session = security.Session(lambda: f"secret-{next(numbers)}")
    served = Console(cluster, answers, session, monotonic=time.monotonic)
    async with (
        serving(served, 0) as port,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
    ):
        client = Client(port, session, http)
        try:
            yield client
        finally:
            for response in client.responses:
                response.close()


@asynccontextmanager
async def console_of(text: str | bytes) -> AsyncIterator[Client]:
    """The console of a dump, opened."""
    texts = [dump.Text("standard input", text if isinstance(text, bytes) else text.encode())]
    objects = dump.read(texts)
    answers = CommandAnswers(offline.setup_of(objects), texts)
    async with console(Files("a file", snapshot_of(objects)), answers) as client:
        await client.open(client.session.token)
        yield client
