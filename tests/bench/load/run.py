"""One run of the load generator: made, followed, measured, removed."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from demo.cluster import DemoError, RefusedError, collection

from .figures import percentile
from .following import Following
from .gangs import Load, gang_of, version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from demo.cluster import Cluster, Manifest

LABEL = "tutti.dev/load"
_GONE_SECONDS = 180.0
_ACCOUNT_SECONDS = 30.0
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown; waits are a gang's last member created to its last one bound."""

    pods: int
    bound: int
    gangs: int
    whole: int
    created_per_second: float
    pods_per_second: float
    wait_p50: float
    wait_p99: float


class Run:
    """Some gangs of one size on one cluster, known by a label."""

    def __init__(self, cluster: Cluster, load: Load, sizes: Mapping[str, int]) -> None:
        """``sizes`` holds the members of each gang, by its name."""
        self._cluster = cluster
        self._load = load
        self._sizes = sizes
        self._created: dict[str, float] = {}
        self._owns_namespace = False

    @property
    def pods(self) -> int:
        """The members of all gangs."""
        return sum(self._sizes.values())

    def check(self) -> None:
        """See that the cluster can take the gangs; nothing is written.

        Raises:
            DemoError: it cannot.
        """
        try:
            api = version(self._load.form)
        except ValueError as unknown:
            raise DemoError(str(unknown)) from unknown
        if api is not None and self._cluster.find(f"/apis/{api}") is None:
            raise DemoError(f"this cluster does not serve {api}: install its CRDs first")

    def prepare(self, *, creates_namespace: bool) -> None:
        """Make the namespace, or see that it is there."""
        path = f"/api/v1/namespaces/{self._load.namespace}"
        if creates_namespace:
            metadata = {"name": self._load.namespace, "labels": dict(self._load.labels)}
            self._owns_namespace = True
            self._cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            _await(lambda: self._cluster.find(f"{path}/serviceaccounts/default"), "service account")
        elif self._cluster.find(path) is None:
            raise DemoError(f"there is no namespace {self._load.namespace}")

    def play(self, in_flight: int, seconds: float, tick: Callable[[int, int], None]) -> Outcome:
        """Create all gangs, and wait until they are bound or the time is over.

        ``tick`` hears how many pods are created and how many are bound.
        """
        names = [f"{gang}-{i}" for gang, n in self._sizes.items() for i in range(n)]
        path = f"/api/v1/namespaces/{self._load.namespace}/pods"
        following = Following(self._cluster, path, names, time.monotonic)
        try:
            groups = [self._load.group(gang, n) for gang, n in self._sizes.items()]
            self._create([group for group in groups if group is not None], in_flight, lambda: None)
            pods = [pod for gang, n in self._sizes.items() for pod in self._load.pods(gang, n)]
            self._create(pods, in_flight, lambda: tick(len(self._created), len(following.bound)))
            following.wait(seconds, lambda n: tick(len(self._created), n))
            return self._outcome(dict(following.bound))
        finally:
            following.close()

    def remove(self) -> None:
        """Delete what was made and wait until it is gone; what was not made here stays."""
        selector = "%2C".join(f"{key}%3D{value}" for key, value in self._load.labels.items())
        group = self._load.group("any", 1)
        groups = [collection(group)] if group is not None else []
        pods = f"/api/v1/namespaces/{self._load.namespace}/pods"
        for path in (pods, *groups):
            self._cluster.request("DELETE", f"{path}?labelSelector={selector}")
        if self._owns_namespace:
            path = f"/api/v1/namespaces/{self._load.namespace}"
            self._cluster.delete(path)
            _await(lambda: self._cluster.find(path) is None, "end of the namespace", _GONE_SECONDS)
            return
        listed = f"{pods}?labelSelector={selector}&limit=1"
        _await(lambda: not self._cluster.items(listed), "end of the pods", _GONE_SECONDS)

    def _create(
        self, manifests: Sequence[Manifest], in_flight: int, tick: Callable[[], None]
    ) -> None:
        waiting = deque(manifests)

        def drain() -> None:
            while True:
                try:
                    manifest = waiting.popleft()
                except IndexError:
                    return
                self._create_one(manifest)

        with ThreadPoolExecutor(in_flight) as pool:
            drains = [pool.submit(drain) for _ in range(in_flight)]
            try:
                while not all(each.done() for each in drains):
                    tick()
                    time.sleep(0.1)
                for each in drains:
                    each.result()
            except BaseException:
                waiting.clear()
                raise

    def _create_one(self, manifest: Manifest) -> None:
        while True:
            try:
                self._cluster.create(manifest)
            except RefusedError as refusal:
                if refusal.status != HTTPStatus.TOO_MANY_REQUESTS:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                break
        if manifest["kind"] == "Pod":
            self._created[str(manifest["metadata"]["name"])] = time.monotonic()

    def _outcome(self, bound: Mapping[str, float]) -> Outcome:
        whole: dict[str, list[float]] = {gang: [] for gang in self._sizes}
        for name, at in bound.items():
            whole[gang_of(name)].append(at)
        waits = [
            # Its binding may have been seen before its creation was answered.
            max(0.0, max(times) - max(self._created[f"{gang}-{i}"] for i in range(len(times))))
            for gang, times in whole.items()
            if len(times) == self._sizes[gang]
        ]
        first, last = min(self._created.values()), max(self._created.values())
        return Outcome(
            pods=self.pods,
            bound=len(bound),
            gangs=len(self._sizes),
            whole=len(waits),
            created_per_second=len(self._created) / max(last - first, 1e-3),
            pods_per_second=len(bound) / max(max(bound.values(), default=last) - first, 1e-3),
            wait_p50=percentile(waits, 50),
            wait_p99=percentile(waits, 99),
        )


def _await(look: Callable[[], object], what: str, seconds: float = _ACCOUNT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not look():
        if time.monotonic() > deadline:
            raise DemoError(f"waited {seconds:.0f} s in vain for the {what}")
        time.sleep(0.2)
