"""A loop takes its connections along when it ends."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.harness.judge import background
from tests.harness.judge.background import Background


def test_leaving_ends_the_tasks_and_closes_their_connections() -> None:
    beside = Background("beside")
    beside.start()
    ended: list[str] = []

    async def talk() -> None:
        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.read()
            finally:
                writer.close()

        server = await asyncio.start_server(hold, "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        connected.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("client")
            writer.close()
            server.close()

    async def begin() -> None:
        tasks.append(asyncio.create_task(talk()))
        await connected.wait()

    connected = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    beside.run(begin(), seconds=3600)
    beside.leave()

    assert ended == ["client"]
    assert not beside.is_running
    gc.collect()  # what were still open would be told here, as an error


def test_a_run_ends_when_its_connections_have_said_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "HANG_UP_SECONDS", 3600.0)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.sleep(0.1)
            while await reader.read(1 << 20):
                pass
        finally:
            writer.close()  # also where the loop is left before all is read

    async def serve() -> asyncio.Server:
        return await asyncio.start_server(listen, "127.0.0.1", 0)

    async def end(server: asyncio.Server) -> None:
        server.close()

    async def say(server: asyncio.Server) -> None:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(bytes(1 << 25))  # more than fits between the two
        writer.close()

    beside = Background("beside")
    beside.start()
    server = beside.run(serve(), seconds=3600)
    background.run(say(server))
    gc.collect()  # as above
    beside.run(end(server), seconds=3600)
    beside.leave()


def test_work_that_takes_too_long_is_a_time_out() -> None:
    beside = Background("beside")
    beside.start()
    with pytest.raises(TimeoutError):
        beside.run(asyncio.sleep(60), seconds=0.01)
    beside.leave()
