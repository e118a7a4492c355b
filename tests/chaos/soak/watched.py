"""The operator in a process that answers SIGUSR1: its asyncio tasks, and its World against a list.

Runs `tutti.operator.main.serve` as it is. The World is found among the interpreter's objects; what
it is compared with is a second one, fed with fresh lists of the same streams.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tutti.kube import list_watch
from tutti.kube.access import Access
from tutti.kube.client import Client
from tutti.operator import main
from tutti.operator.settings import Settings
from tutti.reporting import logs
from tutti.state.cluster_state import ClusterState
from tutti.state.reflectors import reflectors_into

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tutti.model.cluster import Snapshot
    from tutti.state.store import Store

ANSWER = "answer.json"
SAID = 20  # differences that are told; more would not tell more


def differences(known: ClusterState, listed: ClusterState) -> list[str]:
    """What one World knows and the other does not, in lines."""
    found: list[str] = []
    for name, store in _stores(known).items():
        found += _between(name, _by_name(store), _by_name(_stores(listed)[name]))
    seen, fresh = known.snapshot(0.0), listed.snapshot(0.0)
    found += _between("nodes and their use", _nodes(seen), _nodes(fresh))
    found += _between("gangs", _living(seen), _living(fresh))
    found += [f"unsure: {member.key}" for member in known.pods.unconfirmed_bindings()]
    return found


def _stores(state: ClusterState) -> Mapping[str, Store[Any]]:
    return {
        "nodes": state.nodes,
        "pending": state.pods.pending,
        "bound": state.pods.bound,
        "pinned": state.pods.pinned,
        "groups": state.groups,
        "reservations": state.reservations.store,
        "classes": state.classes,
        "namespaces": state.namespaces,
    }


def _by_name(values: Iterable[Any]) -> Mapping[str, Any]:
    return {str(getattr(value, "uid", None) or value.name): value for value in values}


def _nodes(snapshot: Snapshot) -> Mapping[str, Any]:
    return {node.name: node for node in snapshot.nodes}


def _living(snapshot: Snapshot) -> Mapping[str, Any]:
    """The gangs with members that wait or run; of the others nothing is left to decide."""
    return {
        str(gang.key): gang
        for gang in snapshot.gangs
        if any(not member.is_over for member in gang.members)
    }


def _between(what: str, known: Mapping[str, Any], listed: Mapping[str, Any]) -> list[str]:
    names = [name for name in known.keys() | listed.keys() if known.get(name) != listed.get(name)]
    return [
        f"{what}: {name}: known as {known.get(name)}, listed as {listed.get(name)}"
        for name in sorted(names)
    ]


async def _answer(path: Path, kubeconfig: str, name: str) -> None:
    """Write down what is in this process."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    tasks = Counter(str(getattr(one.get_coro(), "__qualname__", one)) for one in others)
    gc.unfreeze()  # the operator hides from the collector what lives as long as the process
    gc.collect()  # what earlier answers compared with
    (state,) = (item for item in gc.get_objects() if isinstance(item, ClusterState))
    listed = ClusterState(lambda: None)
    async with Client(await Access.load(kubeconfig)) as api:
        for feed in reflectors_into(listed, name):
            await list_watch.relist(api, feed)
    unequal = differences(state, listed)
    answer = {
        "tasks": dict(sorted(tasks.items())),
        "differences": unequal[:SAID],
        "sizes": {name: len(store) for name, store in _stores(state).items()},
    }
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(answer))
    fresh.rename(path)


@click.command()
@click.option("--kubeconfig", required=True, help="The cluster; answers are written beside it.")
def watched(kubeconfig: str) -> None:
    """Run the operator; each SIGUSR1 is answered in a file."""
    answer = Path(kubeconfig).with_name(ANSWER)
    settings = Settings.from_environment(os.environ)
    logs.configure(settings.log_format, settings.log_level)

    async def run() -> None:
        answering: set[asyncio.Task[None]] = set()

        def ask() -> None:
            asked = asyncio.create_task(_answer(answer, kubeconfig, settings.scheduler_name))
            answering.add(asked)
            asked.add_done_callback(answering.discard)

        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, ask)
        await main.serve(settings, kubeconfig)

    asyncio.run(run())


if __name__ == "__main__":
    watched()
