"""``tutti ui``: the console in the browser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .inputs import CONTEXT, FILE, KUBECONFIG, contents, decode_texts, fail, say

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ..console.live import LiveCluster
    from ..console.observation import Answers, Cluster
    from ..operator.settings import Settings

NO_CLUSTER = 1
PORT = 8026
SECRET_BYTES = 32
# Seconds that a thread runs before another thread may: pages do not wait for a long computation.
SWITCH_SECONDS = 0.0005

EXAMPLES = """\b
Examples:
  kubectl tutti ui                   # the cluster of your kubeconfig
  tutti ui -f now.json               # a dump, without a cluster
  tutti ui --no-browser --port 9000  # then ssh -L 9000:127.0.0.1:9000
\b
Exit codes: 0 ended by Ctrl-C; 1 the cluster cannot be reached;
2 a file, an option or a setting is wrong, or the port is in use.
"""


@click.command(
    "ui", epilog=EXAMPLES, short_help="Show the cluster, its gangs and what-if in your browser."
)
@click.option(
    "-f",
    "--filename",
    "paths",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="Show files instead of a cluster: a dump, output of `kubectl get -o yaml`, manifests, or "
    "a directory of such files; - for standard input. You can repeat this option.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port on 127.0.0.1; 0 for a free one. Default: {PORT}, or a free one if that port "
    "is taken.",
)
@click.option("--no-browser", is_flag=True, help="Print the link instead of opening a browser.")
@KUBECONFIG
@CONTEXT
def command(
    paths: Sequence[str],
    *,
    port: int | None,
    no_browser: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Show the cluster in your browser: where gangs are, why others wait, and what if.

    The console serves one page on 127.0.0.1, to the one browser that opens its link. It reads the
    cluster with the rights of your kubeconfig, as kubectl does, and changes nothing. If you lack a
    right, the page says which, and shows the rest.

    For a live cluster, the settings come from the environment, as for the operator. Ctrl-C ends it.
    """
    opening = _Opening(port, no_browser=no_browser)
    sys.setswitchinterval(SWITCH_SECONDS)
    with contextlib.suppress(KeyboardInterrupt):
        if paths:
            asyncio.run(_show_files(paths, opening))
        else:
            asyncio.run(_show_cluster(kubeconfig, context, opening))


class _Opening:
    """How the console is opened."""

    def __init__(self, port: int | None, *, no_browser: bool) -> None:
        self.port = port
        self.no_browser = no_browser


async def _show_files(paths: Sequence[str], opening: _Opening) -> None:
    from ..console.observation import Files
    from .output import offline

    texts = contents(paths)
    snapshot, objects = decode_texts(texts)
    answers = _answers(offline.setup_of(objects), texts)
    await _serve(Files(", ".join(paths), snapshot), answers, opening)


async def _show_cluster(kubeconfig: str | None, context: str | None, opening: _Opening) -> None:
    from ..operator import main as operator
    from ..operator.settings import Settings, SettingsError

    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as wrong:
        fail("; ".join(wrong.sentences))
    answers = _answers(operator.setup_of(settings), ())
    async with _following(settings, kubeconfig, context) as cluster:
        await _serve(cluster, answers, opening)


def _answers(setup: object, texts: Sequence[object]) -> Answers:
    from ..strategies import StrategyError
    from .output.answers import CommandAnswers

    try:
        return CommandAnswers(setup, texts)  # type: ignore[arg-type]
    except StrategyError as problem:
        fail(str(problem))


@contextlib.asynccontextmanager
async def _following(
    settings: Settings, kubeconfig: str | None, context: str | None
) -> AsyncIterator[LiveCluster]:
    """The cluster, listed once and then followed; if it cannot be reached, the command ends."""
    import gc
    import logging
    import time

    from ..console.live import LiveCluster
    from ..kube import errors
    from ..kube.access import Access, namespace_of
    from ..kube.client import Client
    from ..kube.gang_sources import chosen
    from .output import live_cluster

    # The page shows what is missing: without a handler, Python would print it here, too.
    logging.getLogger("tutti").addHandler(logging.NullHandler())
    try:
        access = await Access.load(kubeconfig, context)
    except errors.NoAccess as problem:
        todo = problem.todo or "name a cluster with --kubeconfig or --context"
        fail(f"{problem}; {todo}", NO_CLUSTER)
    async with Client(access) as api:
        cluster = LiveCluster(
            api,
            access.server,
            settings.scheduler_name,
            settings.namespaces,
            sources=chosen(settings.gang_sources),
            reads_devices=settings.devices_enabled,
            binds_volumes=settings.bind_volumes,
            hands_over=settings.hand_over,
            namespace=namespace_of(kubeconfig, context),
            now=time.time,
        )
        following = asyncio.create_task(cluster.follow())
        try:
            await cluster.is_listed.wait()
            if (trouble := cluster.trouble) is not None:
                fail(live_cluster.what_to_do(trouble.status, str(trouble)), NO_CLUSTER)
            gc.freeze()  # listed objects stay: the collector need not walk them again
            yield cluster
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following


async def _serve(cluster: Cluster, answers: Answers, opening: _Opening) -> None:
    import secrets
    import time
    import webbrowser

    from ..console.redirect_file import address_of, redirect_file
    from ..console.security import Session
    from ..console.server import Console, serving

    session = Session(lambda: secrets.token_urlsafe(SECRET_BYTES))
    token = session.token
    console = Console(cluster, answers, session, monotonic=time.monotonic)
    async with contextlib.AsyncExitStack() as stack:
        try:
            port = await stack.enter_async_context(serving(console, _first_port(opening)))
        except OSError as problem:
            if opening.port is not None:
                fail(f"port {opening.port}: {problem.strerror or problem}")
            port = await stack.enter_async_context(serving(console, 0))
        path = stack.enter_context(redirect_file(port, token))
        say(f"the console of {cluster.title} is at http://127.0.0.1:{port}/; Ctrl-C ends it")
        if opening.no_browser:
            say(f"open this link, which is good for one browser: {address_of(port, token)}")
        else:
            say(
                f"if no browser opens, open this file, which is good for one: {Path(path).as_uri()}"
            )
            await asyncio.to_thread(webbrowser.open, Path(path).as_uri())
        await asyncio.Event().wait()


def _first_port(opening: _Opening) -> int:
    return PORT if opening.port is None else opening.port
