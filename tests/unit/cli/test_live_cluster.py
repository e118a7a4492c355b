"""A live cluster of which the user may not list everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tutti.cli.output import live_cluster
from tutti.kube import errors, gang_sources
from tutti.state.cluster_state import ClusterState
from tutti.state.reflectors import device_classes_into, devices_into, reflectors_into

if TYPE_CHECKING:
    from tutti.kube.calls import Stream

EMPTY = b'{"metadata": {"resourceVersion": "1"}, "items": []}'


class Listed:
    """An API server without objects, which refuses to list some kinds."""

    def __init__(self, status: int, *refused: str) -> None:
        self.status = status
        self.refused = refused
        self.listed: list[str] = []

    async def page(self, stream: Stream, _more: str = "") -> bytes:
        """An empty list, or a refusal."""
        name = f"{stream.lists.resource}.{stream.lists.group}"
        if name in self.refused:
            raise errors.Refused("it is forbidden", status=self.status)
        self.listed.append(name)
        return EMPTY


async def warnings(api: Listed) -> list[str]:
    """What is said while everything is listed, with the sources that are read by default."""
    sentences: list[str] = []
    sources = gang_sources.chosen(source.name for source in gang_sources.DEFAULT)
    feeds = reflectors_into(ClusterState(lambda: None), "tutti", sources=sources)
    await live_cluster.list_all(api, feeds, sentences.append)  # type: ignore[arg-type]
    return sentences


async def test_gangs_of_another_project_that_may_not_be_listed_are_left_out_with_a_warning() -> (
    None
):
    api = Listed(403, "podgroups.scheduling.k8s.io")
    (sentence,) = await warnings(api)
    assert "you may not list podgroups of scheduling.k8s.io" in sentence
    assert "podgroups.tutti.dev" in api.listed
    assert await warnings(Listed(403)) == []


async def test_levels_of_another_project_that_may_not_be_listed_are_left_out_with_a_warning() -> (
    None
):
    api = Listed(403, "topologies.kueue.x-k8s.io")
    (sentence,) = await warnings(api)
    assert sentence.startswith("levels of topologies.kueue.x-k8s.io are left out, because you may")
    assert {"topologies.tutti.dev", "topologies.kai.scheduler"} <= {*api.listed}


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (403, "topologies.tutti.dev"),
        (503, "topologies.kai.scheduler"),
        (403, "podgroups.tutti.dev"),
        (403, "queues.tutti.dev"),
        (503, "podgroups.scheduling.k8s.io"),
    ],
)
async def test_without_anything_else_there_is_no_answer(status: int, name: str) -> None:
    with pytest.raises(errors.Refused):
        await warnings(Listed(status, name))


async def test_devices_that_may_not_be_listed_are_left_out_with_a_warning() -> None:
    sentences: list[str] = []
    state = ClusterState(lambda: None, reads_devices=True)
    api = Listed(403)
    await live_cluster.list_devices(api, devices_into(state), sentences.append)  # type: ignore[arg-type]
    assert "resourceslices.resource.k8s.io" in api.listed
    assert not sentences
    api = Listed(403, "deviceclasses.resource.k8s.io")
    await live_cluster.list_devices(api, device_classes_into(state), sentences.append)  # type: ignore[arg-type]
    (sentence,) = sentences
    assert sentence.startswith("it is forbidden; so pods that name claims for devices")
