"""Drives Chromium by its DevTools protocol: real clicks, real keys, pictures, errors of a page.

aiohttp is here anyway and speaks WebSocket; a package for this would bring a driver of its own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import re
import tempfile
import time
from typing import TYPE_CHECKING, Any

import aiohttp

from .chromium import browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0"),
)
START_SECONDS = 30.0
SECONDS = 60.0  # in which what is waited for has to come
KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "Space": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


class PageError(AssertionError):
    """The page did not do what was expected of it."""


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: str) -> None:
        self._socket = socket
        self._session = session
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.complaints: list[str] = []  # exceptions, and what the browser blocked or missed
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            message_body = json.loads(message.data)
            if (number := message_body.get("id")) in self._answers:
                self._answers.pop(number).set_result(message_body)
            elif message_body.get("method") == "Runtime.exceptionThrown":
                details = message_body["params"]["exceptionDetails"]
                text = details.get("exception", {}).get("description") or details["text"]
                self.complaints.append(text)
            elif message_body.get("method") == "Log.entryAdded":
                entry = message_body["params"]["entry"]
                if entry["level"] == "error":
                    self.complaints.append(f"{entry['text']} {entry.get('url', '')}")

    async def send(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json(
            {"id": number, "method": method, "params": params, "sessionId": self._session}
        )
        async with asyncio.timeout(SECONDS * 2):
            response = await answer
        if "error" in response:
            raise PageError(f"{method}: {response['error']['message']}")
        return response["result"]

    async def begin(self) -> None:
        """Have the browser tell of errors."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")

    async def go(self, address: str) -> None:
        """Open an address."""
        await self.send("Page.navigate", url=address)

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        response = await self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in response:
            details = response["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description") or details["text"])
        return response["result"].get("value")

    async def until(self, expression: str, seconds: float = SECONDS) -> Any:
        """Wait until an expression is true, and answer its value."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(PageError):
                if value := await self.evaluate(expression):
                    return value
            if time.monotonic() > end:
                text = await self.evaluate("document.body?.innerText ?? ''")
                raise PageError(f"{expression} is not true; {self.complaints}; the page: {text}")
            await asyncio.sleep(0.03)

    async def text(self, selector: str = "body") -> str:
        """What people read there."""
        return str(await self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def point(self, selector: str, *, at: tuple[float, float] | None = None) -> list[float]:
        """Where the middle of an element is, or a point of it, once it can be seen."""
        where = json.dumps(selector)
        await self.until(f"document.querySelector({where}) !== null")
        x, y, width, height = await self.evaluate(
            f"(() => {{ const e = document.querySelector({where}); e.scrollIntoView({{block: "
            "'nearest'}); const b = e.getBoundingClientRect(); "
            "return [b.left, b.top, b.width, b.height]; })()"
        )
        return [x + width / 2, y + height / 2] if at is None else [x + at[0], y + at[1]]

    async def click(self, selector: str, *, at: tuple[float, float] | None = None) -> None:
        """Click the middle of an element, or a point of it."""
        await self.click_at(*await self.point(selector, at=at))

    async def click_at(self, x: float, y: float) -> None:
        """Click a point of the window."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key: one of ``KEYS``, or the one of a character."""
        text = {"Enter": "\r", "Space": " "}.get(key, key if key not in KEYS else "")
        code = KEYS.get(key) or ord(key.upper())
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            await self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=" " if key == "Space" else key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=8 if shift else 0,
                **more,
            )

    async def write(self, text: str) -> None:
        """Type into what has the focus."""
        await self.send("Input.insertText", text=text)

    async def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def dark(self, *, is_dark: bool) -> None:
        """Prefer dark or light."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        response = await self.send("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(response["data"]))

    def close(self) -> None:
        """Stop listening."""
        self._reading.cancel()


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    """A new Chromium with an empty profile and one tab.

    Raises:
        NoBrowser: there is none.
    """
    installed = await asyncio.to_thread(browser)
    with tempfile.TemporaryDirectory(
        prefix="tutti-chromium-", ignore_cleanup_errors=True
    ) as profile:
        process = await asyncio.create_subprocess_exec(
            installed.path,
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            env=installed.environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        drained = None
        try:
            assert process.stderr is not None
            async with asyncio.timeout(START_SECONDS):
                address = await _address(process.stderr)
            drained = asyncio.create_task(process.stderr.read())
            async with (
                aiohttp.ClientSession() as http,
                http.ws_connect(address, max_msg_size=1 << 28) as socket,
            ):
                page = await _tab(socket)
                try:
                    yield page
                finally:
                    page.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if drained is not None:
                await drained


async def _address(stream: asyncio.StreamReader) -> str:
    output = ""
    while line := await stream.readline():
        output += line.decode(errors="replace")
        if match := re.search(r"DevTools listening on (ws://\S+)", output):
            return match[1]
    raise PageError(f"Chromium does not start: {output[-1000:]}")


async def _tab(socket: aiohttp.ClientWebSocketResponse) -> Page:
    async def call(method: str, **params: Any) -> Any:
        await socket.send_json({"id": 0, "method": method, "params": params})
        while True:
            response = await socket.receive_json()
            if response.get("id") == 0:
                return response["result"]

    target = await call("Target.createTarget", url="about:blank")
    attached = await call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
    page = Page(socket, attached["sessionId"])
    await page.begin()
    return page
