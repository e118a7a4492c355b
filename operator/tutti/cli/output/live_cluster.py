"""Lists a live cluster once, for the commands that need no files.

It lists everything that the operator watches, and writes nothing. An error is one sentence that
ends with what to do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..inputs import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...kube.client import Source
    from ...operator.settings import Settings
    from ...state.cluster_state import ClusterState
    from ...state.reflectors import Reflector, Reflectors

NO_SUCH_KIND = 404  # the API server's status for a kind that it does not know
FORBIDDEN, STRANGER = 403, 401


class OutOfReach(Exception):  # noqa: N818 - named for the situation, as those of ``kube.errors`` are
    """The cluster cannot be listed; the message says why, and what to do."""


async def _listed(settings: Settings, kubeconfig: str | None, context: str | None) -> ClusterState:
    """List everything once, in the operator's order: the demand before the supply."""
    from ...kube import list_watch
    from ...kube.access import Access
    from ...kube.client import Client
    from ...kube.gang_sources import chosen
    from ...model.queues import Preemption
    from ...state.cluster_state import ClusterState
    from ...state.reflectors import (
        capacities_into,
        device_classes_into,
        devices_into,
        reflectors_into,
        storage_into,
    )

    sources = chosen(settings.gang_sources)
    state = ClusterState(
        lambda: None,
        reads_devices=settings.devices_enabled,
        binds_volumes=settings.bind_volumes,
    )

    def warn(sentence: str) -> None:
        say(sentence, aside=True)

    feeds = reflectors_into(
        state,
        settings.scheduler_name,
        settings.namespaces,
        sources=sources,
        preempts=settings.preemption is not Preemption.OFF,
        hands_over=settings.hand_over,
    )
    access = await Access.load(kubeconfig, context)
    async with Client(access) as api:
        await list_all(api, feeds, warn)
        for reflector in storage_into(state) if state.storage.are_wanted else ():
            await list_watch.relist(api, reflector)
        for reflector in capacities_into(state) if state.storage.needs_capacities else ():
            await list_watch.relist(api, reflector)
        if state.devices.are_classes_wanted:
            await list_devices(api, device_classes_into(state), warn)
        if state.devices.are_wanted:
            await list_devices(api, devices_into(state), warn)
    return state


async def list_all(api: Source, feeds: Reflectors, warn: Callable[[str], None]) -> None:
    """List everything once; kinds that are left out if the right to list them is missing.

    These are optional kinds of gangs, and Topologies of other projects. ``warn`` gets a sentence
    for each of them, which names the missing right.

    Raises:
        errors.ApiError: something else could not be listed.
    """
    from ...kube import errors, kinds, list_watch

    for feed in feeds:
        try:
            await list_watch.relist(api, feed)
        except errors.ApiError as problem:
            right = feed.stream.lists
            if problem.status != FORBIDDEN:
                raise
            if feed.is_optional and feed in feeds.gangs:
                what = "gangs"
                follows = "Their pods are shown as pods whose PodGroup does not exist"
            elif right.group in {kind.api.group for kind in kinds.FOREIGN_TOPOLOGIES}:
                what = "levels"
                follows = (
                    "Gangs that name a level which only these have are shown as waiting for it"
                )
            else:
                raise
            resource = f"{right.resource}.{right.group}"
            warn(
                f"{what} of {resource} are left out, because you may not list {right.resource} of "
                f"{right.group}: ask for this right. {follows}"
            )


async def list_devices(
    api: Source, feeds: Iterable[Reflector], warn: Callable[[str], None]
) -> None:
    """List what devices need; without the right, pods that name claims for devices wait.

    ``warn`` gets a sentence that names the missing right.
    """
    from ...kube import errors, list_watch

    try:
        for feed in feeds:
            await list_watch.relist(api, feed)
    except errors.Refused as problem:
        warn(
            f"{str(problem).rstrip('.')}; so pods that name claims for devices are shown as "
            "waiting for them: ask for this right"
        )


def look(settings: Settings, kubeconfig: str | None, context: str | None) -> ClusterState:
    """The cluster as it is now, as an operator with these settings would see it.

    Raises:
        OutOfReach: the cluster cannot be listed.
    """
    from ...kube import errors

    try:
        return asyncio.run(_listed(settings, kubeconfig, context))
    except errors.ApiError as problem:
        raise OutOfReach(what_to_do(problem.status, str(problem))) from problem
    except errors.NoAccess as problem:
        todo = problem.todo or "name a cluster with --kubeconfig or --context"
        raise OutOfReach(f"{problem}; {todo}") from problem


def what_to_do(status: int, sentence: str) -> str:
    """The message of an API server that refused, with what to do about it."""
    refusal = sentence.rstrip(".")
    if status == NO_SUCH_KIND:
        return "this cluster has no Tutti: use helm install or tutti crds | kubectl apply -f -"
    if status == FORBIDDEN:
        return f"{refusal}; ask for this right, or see your own gangs with kubectl get ptg -o wide"
    if status == STRANGER:
        return "the API server does not know you: log in, or use another --context"
    return f"{refusal}; check that the API server runs and that --context is right"
