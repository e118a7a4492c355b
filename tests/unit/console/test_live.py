"""A live cluster: what may be seen is shown, what may not is named, and a lost connection heals."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tutti.console.live import LiveCluster
from tutti.console.observation import Observation, WrongQuestion
from tutti.kube import errors, gang_sources
from tutti.kube.calls import Right, Stream
from tutti.kube.gang_sources import GangSource
from tutti.model.cluster import Member
from tutti.model.keys import GangKey

NODE = {
    "metadata": {"name": "n1", "uid": "n1", "resourceVersion": "1"},
    "status": {
        "allocatable": {"cpu": "4", "pods": "9"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "ml",
        "uid": "a",
        "resourceVersion": "2",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {"schedulerName": "tutti", "containers": [{"name": "c"}]},
}
FORBIDDEN = errors.Refused("nodes is forbidden", status=403)
AWAY = errors.Unavailable("n1:6443 refused the connection.")


class Source:
    """An API server: objects by path, problems by path, and events that a test sends."""

    def __init__(self, objects: dict[str, list[Any]]) -> None:
        self.objects = objects
        self.problems: dict[str, errors.ApiError] = {}
        self.watching: dict[str, asyncio.Queue[bytes | errors.ApiError]] = {}
        self.asked: list[str] = []

    async def page(self, stream: Stream, after: str = "") -> bytes:  # noqa: ARG002 - one page
        """See ``Source.page``."""
        self.asked.append(stream.path)
        if stream.path in self.problems:
            raise self.problems[stream.path]
        items = self.objects.get(
            f"{stream.path}?{stream.selector}", self.objects.get(stream.path, [])
        )
        return json.dumps({"metadata": {"resourceVersion": "5"}, "items": items}).encode()

    async def get(
        self,
        right: Right,  # noqa: ARG002
        path: str,
        query: Mapping[str, str] | None = None,  # noqa: ARG002
        *,
        most: int,  # noqa: ARG002
    ) -> bytes:
        """See ``Reader.get``."""
        return json.dumps({"items": self.objects.get(path, [])}).encode()

    async def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:  # noqa: ARG002
        """See ``Source.watch``."""
        lines = self.watching.setdefault(stream.name, asyncio.Queue())
        if stream.path in self.problems:
            raise self.problems[stream.path]
        while True:
            line = await lines.get()
            if isinstance(line, errors.ApiError):
                raise line
            yield line


NODES = "/api/v1/nodes"
PENDING = "/api/v1/pods?spec.nodeName=,spec.schedulerName=tutti"


@asynccontextmanager
async def followed(
    source: Source, sources: Sequence[GangSource] = gang_sources.ALWAYS
) -> AsyncIterator[LiveCluster]:
    cluster = LiveCluster(
        source, "https://x", "tutti", sources=sources, namespace="ml", now=lambda: 7.0
    )
    following = asyncio.create_task(cluster.follow())
    try:
        async with asyncio.timeout(10):
            await cluster.is_listed.wait()
        yield cluster
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following


async def until(cluster: LiveCluster, wanted: Any) -> None:
    async with asyncio.timeout(10):
        while not wanted(cluster.observe()):
            await cluster.changed(cluster.observe().version)


async def test_what_is_there_is_seen_and_what_changes_too() -> None:
    source = Source({NODES: [NODE], PENDING: [POD]})
    async with followed(source) as cluster:
        first = cluster.observe()
        assert [node.name for node in first.snapshot.nodes] == ["n1"]
        assert [gang.key.name for gang in first.snapshot.gangs] == ["a"]
        assert (first.snapshot.taken_at, first.missing) == (7.0, [])
        assert cluster.observe() is first, "nothing has changed"
        await asyncio.sleep(0)
        metadata = {"name": "n2", "uid": "n2", "resourceVersion": "6"}
        event = {"type": "ADDED", "object": {**NODE, "metadata": metadata}}
        source.watching.setdefault("Nodes", asyncio.Queue()).put_nowait(json.dumps(event).encode())
        await until(cluster, lambda seen: len(seen.snapshot.nodes) == 2)
        assert cluster.observe().version > first.version


CLAIMING: dict[str, Any] = {
    **POD,
    "spec": {**POD["spec"], "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]},
}
META = {"uid": "u", "resourceVersion": "3"}
DEVICES = {
    "/apis/resource.k8s.io/v1/deviceclasses": [
        {"metadata": {**META, "name": "gpu"}, "spec": {"selectors": []}}
    ],
    "/apis/resource.k8s.io/v1/resourceclaims": [
        {
            "metadata": {**META, "name": "c", "namespace": "ml"},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
            },
        }
    ],
}


async def test_devices_are_read_if_a_pod_claims_some() -> None:
    def member(seen: Observation) -> Member | None:
        return next((m for gang in seen.snapshot.gangs for m in gang.members), None)

    source = Source({NODES: [NODE], PENDING: [CLAIMING], **DEVICES})
    async with followed(source) as cluster:
        claiming = member(cluster.observe())
        assert claiming is not None
        assert not claiming.device_problems
        assert not claiming.unsupported_fields
    source = Source({NODES: [NODE], **DEVICES})
    async with followed(source) as cluster:
        assert not any("resource.k8s.io" in path for path in source.asked)
        late = {**CLAIMING, "metadata": {**POD["metadata"], "resourceVersion": "6"}}
        event = json.dumps({"type": "ADDED", "object": late}).encode()
        source.watching.setdefault("pending pods", asyncio.Queue()).put_nowait(event)
        await until(cluster, lambda seen: (m := member(seen)) and not m.device_problems)


async def test_a_missing_right_is_named_and_the_rest_is_shown() -> None:
    source = Source({PENDING: [POD]})
    source.problems[NODES] = FORBIDDEN
    async with followed(source) as cluster:
        seen = cluster.observe()
        assert [tuple(one) for one in seen.missing] == [
            ("Nodes", "list nodes", "nodes is forbidden", True)
        ]
        assert [gang.key.name for gang in seen.snapshot.gangs] == ["a"]
        assert cluster.trouble is None
        assert "/api/v1/namespaces/ml/nodes" not in source.asked


async def test_who_may_read_one_namespace_alone_sees_that_one() -> None:
    source = Source({"/api/v1/namespaces/ml/pods?" + PENDING.partition("?")[2]: [POD]})
    for path in ("/api/v1/pods", "/apis/tutti.dev/v1alpha1/reservations"):
        source.problems[path] = errors.Refused("no", status=403)
    async with followed(source) as cluster:
        seen = cluster.observe()
        assert [gang.key.name for gang in seen.snapshot.gangs] == ["a"]
        assert {one.right for one in seen.missing} == {"list pods", "list reservations.tutti.dev"}
        assert all("shown is namespace ml" in one.sentence for one in seen.missing)


async def test_a_lost_connection_is_said_and_heals_by_itself() -> None:
    source = Source({NODES: [NODE]})
    async with followed(source) as cluster:
        await asyncio.sleep(0)
        source.problems[NODES] = AWAY
        source.watching.setdefault("Nodes", asyncio.Queue()).put_nowait(AWAY)
        await until(cluster, lambda seen: seen.missing)
        (missing,) = cluster.observe().missing
        assert not missing.is_forbidden
        assert [node.name for node in cluster.observe().snapshot.nodes] == ["n1"], "as it was"
        del source.problems[NODES]
        await until(cluster, lambda seen: not seen.missing)


async def test_a_cluster_that_nobody_can_reach_is_trouble() -> None:
    source = Source({})
    for path in ("nodes", "namespaces", "pods"):
        source.problems[f"/api/v1/{path}"] = AWAY
    for path in ("podgroups", "queues", "reservations", "topologies"):
        source.problems[f"/apis/tutti.dev/v1alpha1/{path}"] = AWAY
    for path in ("scheduling.k8s.io/v1/priorityclasses", "policy/v1/poddisruptionbudgets"):
        source.problems[f"/apis/{path}"] = AWAY
    source.problems["/apis/batch/v1/jobs"] = AWAY
    for path in ("kueue.x-k8s.io/v1beta2/topologies", "kai.scheduler/v1alpha1/topologies"):
        source.problems[f"/apis/{path}"] = AWAY
    async with followed(source) as cluster:
        assert cluster.trouble is AWAY


async def test_a_cluster_without_tutti_is_trouble_and_one_without_an_optional_kind_is_none() -> (
    None
):
    source = Source({NODES: [NODE]})
    unknown = errors.Gone("the server could not find the requested resource", status=404)
    source.problems["/apis/tutti.dev/v1alpha1/podgroups"] = unknown
    async with followed(source) as cluster:
        assert cluster.trouble is unknown
    source = Source({NODES: [NODE]})
    for name, optional in gang_sources.OPTIONAL.items():
        for kind in optional.kinds:
            source.problems[kind.stream().path] = unknown
        async with followed(source, sources=gang_sources.chosen([name])) as cluster:
            assert cluster.trouble is None
            assert cluster.observe().missing == []


async def test_a_kind_that_the_cluster_does_not_have_is_not_missed_after_a_lost_connection() -> (
    None
):
    source = Source({NODES: [NODE]})
    name, optional = next(iter(gang_sources.OPTIONAL.items()))
    paths = [kind.stream().path for kind in optional.kinds]
    source.problems = dict.fromkeys(paths, AWAY)
    async with followed(source, sources=gang_sources.chosen([name])) as cluster:
        await until(cluster, lambda seen: seen.missing)
        unknown = errors.Gone("the server could not find the requested resource", status=404)
        source.problems = dict.fromkeys(paths, unknown)
        await until(cluster, lambda seen: not seen.missing)
        assert cluster.trouble is None


async def test_the_newest_event_about_a_gang_is_first_and_odd_ones_do_no_harm() -> None:
    events = [
        {"lastTimestamp": "2026-01-01T00:00:00Z", "reason": "Old", "message": "m", "count": 3},
        {"eventTime": "2026-01-02T00:00:00Z", "reason": "New", "series": {"count": 2}},
        {},
    ]
    source = Source({"/api/v1/namespaces/ml/events": events})
    async with followed(source) as cluster:
        found = await cluster.events(GangKey("ml", "a"))
        assert [(one["reason"], one["count"]) for one in found] == [("New", 2), ("Old", 3), ("", 1)]
        source.problems["/api/v1/namespaces/ml/events"] = FORBIDDEN
        with pytest.raises(WrongQuestion, match="forbidden"):
            await cluster.events(GangKey("ml", "a"))


async def test_without_pods_of_the_operator_there_are_no_figures() -> None:
    cluster = LiveCluster(Source({}), "x", "tutti", now=lambda: 0.0)
    assert await cluster.operators() == []
