"""Gangs of all fates, many at a time: each is created, comes to something, and goes.

The lives are played by the API alone, as users, controllers and kubelets would; what a gang has
come to is read from its PodGroup, through one watch for all.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from ...harness import rig
from ...harness.judge.kubeconfig import read_door

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

NAMESPACE = "soak"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GROUPS = f"/apis/tutti.dev/v1alpha1/namespaces/{NAMESPACE}/podgroups"
PATIENCE = 120.0  # seconds for one step of a life; on a busy machine it takes one or two
RUN_SECONDS = 1.0
LOOK_SECONDS = 0.5
MOST_MEMBERS = 6
TOO_MUCH = 1_000  # CPUs, which no node has
SOON_SECONDS = 2  # that members are awaited for who never come
REFUSED = 400
NOT_FOUND = 404
MERGE = "application/merge-patch+json"


class Stuck(AssertionError):  # noqa: N818 - it says what happened
    """A gang did not come to what it should have come to."""


class Fate(StrEnum):
    """What becomes of a gang."""

    FINISHES = "finishes"
    LOSES = "loses a member"
    REPAIRED = "loses a member, which is replaced"
    DELETED = "deleted under way"
    WAITS = "waits for room that there is not"
    LATE = "members come late"
    NEVER = "members never come"
    ALONE = "one pod without a group"


SHARES: Mapping[Fate, int] = {
    Fate.FINISHES: 40,
    Fate.LOSES: 10,
    Fate.REPAIRED: 10,
    Fate.DELETED: 20,
    Fate.WAITS: 10,
    Fate.LATE: 10,
    Fate.NEVER: 10,
    Fate.ALONE: 10,
}


@dataclass(frozen=True, slots=True)
class Casting:
    """How many lives, which, how many of them at a time, and how many finished ones stay."""

    gangs: int
    seed: int = 0
    at_once: int = 64
    kept: int = 500


class Stage:
    """The API as the players use it; a context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        door = read_door(kubeconfig)
        self._session = aiohttp.ClientSession(
            door.server, headers=door.headers, connector=aiohttp.TCPConnector(ssl=door.tls or True)
        )
        self._phases: dict[str, str] = {}
        self._changed = asyncio.Condition()
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._following = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._following is not None
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)
        await self._session.close()

    async def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Make one request; what is gone already may be deleted again."""
        headers = {"Content-Type": MERGE if method == "PATCH" else "application/json"}
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, path, data=data, headers=headers) as response:
            answer: dict[str, Any] = await response.json()
            is_gone = method == "DELETE" and response.status == NOT_FOUND
            if response.status >= REFUSED and not is_gone:
                raise Stuck(f"{method} {path}: {answer.get('message')}")
            return answer

    async def create(self, *objects: Mapping[str, Any]) -> None:
        """Create pods and PodGroups."""
        paths = {"Pod": PODS, "PodGroup": GROUPS}
        await asyncio.gather(*(self.call("POST", paths[o["kind"]], o) for o in objects))

    async def delete(self, path: str, *names: str) -> None:
        """Delete objects of one kind, at once."""
        query = "?gracePeriodSeconds=0"
        await asyncio.gather(*(self.call("DELETE", f"{path}/{name}{query}") for name in names))

    async def fail(self, pod: str) -> None:
        """Let a pod end as its kubelet would say that it did."""
        await self.call("PATCH", f"{PODS}/{pod}/status", {"status": {"phase": "Failed"}})

    async def until(self, group: str, *phases: str) -> None:
        """Wait until a PodGroup has come to one of these phases."""
        try:
            async with asyncio.timeout(PATIENCE), self._changed:
                await self._changed.wait_for(lambda: self._phases.get(group) in phases)
        except TimeoutError:
            seen = self._phases.get(group)
            raise Stuck(f"{group} is {seen!r}, not {' or '.join(phases)}") from None

    async def until_over(self, pod: str) -> None:
        """Wait until a pod has succeeded."""
        async with asyncio.timeout(PATIENCE):
            while True:
                seen = await self.call("GET", f"{PODS}/{pod}")
                if seen["status"]["phase"] == "Succeeded":
                    return
                await asyncio.sleep(LOOK_SECONDS)

    async def _follow(self) -> None:
        while True:
            listed = await self.call("GET", GROUPS)
            for item in listed["items"]:
                await self._see("MODIFIED", item)
            version = listed["metadata"]["resourceVersion"]
            timeout = aiohttp.ClientTimeout(total=None)
            path = f"{GROUPS}?watch=1&resourceVersion={version}"
            async with self._session.get(path, timeout=timeout) as response:
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    await self._see(event["type"], event["object"])

    async def _see(self, what: str, group: Mapping[str, Any]) -> None:
        name = group["metadata"]["name"]
        async with self._changed:
            if what == "DELETED":
                self._phases.pop(name, None)
            else:
                self._phases[name] = group.get("status", {}).get("phase", "")
            self._changed.notify_all()


class Play:
    """All lives of a casting."""

    def __init__(self, stage: Stage, casting: Casting) -> None:
        self._stage = stage
        self._casting = casting
        self._kept: deque[tuple[str, tuple[str, ...]]] = deque()
        self.played: Counter[Fate] = Counter()

    async def run(self, tell: Callable[[int], None]) -> None:
        """Play them; ``tell`` hears how many are over."""
        numbers = iter(range(self._casting.gangs))

        async def player() -> None:
            for number in numbers:
                await self._live(number)
                tell(self.played.total())

        async with asyncio.TaskGroup() as players:
            for _ in range(self._casting.at_once):
                players.create_task(player())

    async def _live(self, number: int) -> None:
        chance = random.Random(f"{self._casting.seed}/{number}")
        (fate,) = chance.choices(list(SHARES), list(SHARES.values()))
        name = f"{fate.name.lower()}-{number}"
        members = chance.randint(1, MOST_MEMBERS)
        pods = tuple(f"{name}-{i}" for i in range(members))
        match fate:
            case Fate.ALONE:
                await self._alone(name)
            case Fate.FINISHES:
                await self._finish(name, pods, keeps_pods=chance.random() < 0.5)
            case Fate.LOSES | Fate.REPAIRED:
                await self._lose(name, pods, is_repaired=fate is Fate.REPAIRED)
            case Fate.DELETED:
                await self._vanish(name, pods, chance)
            case Fate.WAITS:
                await self._create(name, pods, cpu=TOO_MUCH)
                await self._stage.until(name, "Waiting")
                await self._clear(name, pods)
            case Fate.LATE:
                await self._late(name, pods)
            case Fate.NEVER:
                await self._never(name, pods, chance)
        self.played[fate] += 1

    async def _create(self, name: str, pods: tuple[str, ...], **about: Any) -> None:
        await self._stage.create(
            rig.pod_group(name, len(pods), namespace=NAMESPACE),
            *(rig.pod(pod, name, namespace=NAMESPACE, **({"cpu": 1} | about)) for pod in pods),
        )

    async def _clear(self, name: str, pods: tuple[str, ...]) -> None:
        await self._stage.delete(PODS, *pods)
        await self._stage.delete(GROUPS, name)

    async def _alone(self, name: str) -> None:
        pod = rig.pod(name, namespace=NAMESPACE, cpu=1, run_seconds=RUN_SECONDS)
        await self._stage.create(pod)
        await self._stage.until_over(name)
        await self._stage.delete(PODS, name)

    async def _finish(self, name: str, pods: tuple[str, ...], *, keeps_pods: bool) -> None:
        await self._create(name, pods, run_seconds=RUN_SECONDS)
        await self._stage.until(name, "Finished")
        if not keeps_pods:
            await self._stage.delete(PODS, *pods)
        self._kept.append((name, pods))
        if len(self._kept) > self._casting.kept:
            await self._clear(*self._kept.popleft())

    async def _lose(self, name: str, pods: tuple[str, ...], *, is_repaired: bool) -> None:
        await self._create(name, pods)
        await self._stage.until(name, "Running")
        await self._stage.fail(pods[0])
        await self._stage.until(name, "Degraded", "Waiting")  # a gang of one has none left
        if is_repaired:
            pods = (*pods, f"{name}-again")
            await self._stage.create(rig.pod(pods[-1], name, namespace=NAMESPACE, cpu=1))
            await self._stage.until(name, "Running")
        await self._clear(name, pods)

    async def _declare(self, name: str, workers: int, seconds: float) -> str:
        """Create a driver and its PodGroup, with room for workers that are awaited so long."""
        group = rig.pod_group(name, namespace=NAMESPACE, driver=1, worker=workers)
        group["spec"]["roles"][1]["template"] = {"resources": {"cpu": "1"}}
        group["spec"]["absentMemberTimeoutSeconds"] = int(seconds)
        driver = f"{name}-driver"
        await self._stage.create(group, self._of_role("driver", driver, name))
        await self._stage.until(name, "Reserved", "Degraded")  # the latter if it has been quick
        return driver

    def _of_role(self, role: str, pod: str, group: str) -> dict[str, Any]:
        return rig.pod(pod, group, role=role, namespace=NAMESPACE, cpu=1)

    async def _late(self, name: str, workers: tuple[str, ...]) -> None:
        """Let workers come once their driver has a node, one batch after the other."""
        driver = await self._declare(name, len(workers), PATIENCE)
        first = len(workers) // 2
        for batch in (workers[:first], workers[first:]):
            await self._stage.create(*(self._of_role("worker", pod, name) for pod in batch))
        await self._stage.until(name, "Running")
        await self._clear(name, (driver, *workers))

    async def _never(self, name: str, workers: tuple[str, ...], chance: random.Random) -> None:
        """Let some come, and the last one never: it is given up, or all go while it is awaited."""
        is_given_up = chance.random() < 0.5
        seconds = SOON_SECONDS if is_given_up else PATIENCE
        driver = await self._declare(name, len(workers), seconds)
        came = workers[: chance.randrange(len(workers))]
        await self._stage.create(*(self._of_role("worker", pod, name) for pod in came))
        if is_given_up:
            await self._stage.until(name, "Degraded")
        await self._clear(name, (driver, *came))

    async def _vanish(self, name: str, pods: tuple[str, ...], chance: random.Random) -> None:
        """Go at any moment: before a node is found, under way, or a little later."""
        await self._create(name, pods)
        await asyncio.sleep(chance.uniform(0.0, 1.0))
        if chance.random() < 0.5:
            await self._stage.delete(GROUPS, name)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
        await self._clear(name, pods)
