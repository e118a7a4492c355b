"""What stands beside a test takes its connections along when it leaves."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.judge.background import Background


def test_leaving_ends_the_tasks_and_closes_their_connections() -> None:
    background = Background("beside")
    background.start()
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
    background.run(begin(), seconds=5)
    background.leave()

    assert ended == ["client"]
    assert not background.is_running
    gc.collect()  # what were still open would be told here, as an error


def test_work_that_takes_too_long_is_a_time_out() -> None:
    background = Background("beside")
    background.start()
    with pytest.raises(TimeoutError):
        background.run(asyncio.sleep(60), seconds=0.01)
    background.leave()
