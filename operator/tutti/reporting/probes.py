"""/healthz, /readyz and /metrics: whether the process lives and knows the cluster; its metrics.

kopf's own endpoint is not used: it serves one path, and answers 200 whatever its probes say.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

METRICS = "text/plain; version=0.0.4; charset=utf-8"  # Prometheus' text format
Check = Callable[[], str]  # empty if the check passes, else the reason in a sentence


@asynccontextmanager
async def serving(
    port: int, *, healthy: Check, ready: Check, metrics: Callable[[], bytes]
) -> AsyncIterator[int]:
    """Serve the paths while the context is open; yield the port that is served.

    Raises:
        OSError: the port is in use.
    """

    def answer(check: Check) -> Callable[[web.Request], web.Response]:
        def respond(_request: web.Request) -> web.Response:
            reason = check()
            return web.Response(text=reason or "ok", status=503 if reason else 200)

        return respond

    async def healthz(request: web.Request) -> web.Response:
        return answer(healthy)(request)

    async def readyz(request: web.Request) -> web.Response:
        return answer(ready)(request)

    async def metrics_text(_request: web.Request) -> web.Response:
        return web.Response(body=metrics(), headers={"Content-Type": METRICS})

    paths = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics_text}
    app = web.Application()
    app.add_routes([web.get(path, answers) for path, answers in paths.items()])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, port=port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
