"""One watch of a namespace's pods that only asks which of them have a node by now.

A line of a watch is a whole pod, and it may be one of thousands a second: a search in its bytes
answers the question for most, and only the first line that may show a pod on a node is parsed.
"""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING

import urllib3
from demo.cluster import DemoError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from demo.cluster import Cluster

_NODE = b'"nodeName":"'
_ERROR = b'{"type":"ERROR"'
_NAME = re.compile(rb'"metadata":\{"name":"([^"]+)"')
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
_AGAIN_SECONDS = 0.5


def bound_pod(line: bytes) -> str | None:
    """The name of the pod that a watch's line speaks of, if the line shows it on a node."""
    if _NODE not in line:
        return None
    try:
        pod = json.loads(line)["object"]
        return str(pod["metadata"]["name"]) if pod["spec"].get("nodeName") else None
    except (ValueError, KeyError, TypeError):
        return None


class Following:
    """The pods that are on a node, and when each was first seen there, by this machine's clock."""

    def __init__(
        self, cluster: Cluster, path: str, names: Collection[str], clock: Callable[[], float]
    ) -> None:
        """``path`` is where the pods are; ``names`` says which of them count."""
        self._cluster = cluster
        self._path = path
        self._names = frozenset(names)
        self._clock = clock
        self._over = threading.Event()
        self.bound: dict[str, float] = {}
        self._version = self._listed()
        threading.Thread(target=self._follow, daemon=True, name="following").start()

    def close(self) -> None:
        """Tell it to end; its thread goes within seconds, or with the program."""
        self._over.set()

    def wait(self, seconds: float, tick: Callable[[int], None]) -> bool:
        """Whether all are bound within this time; ``tick`` hears how many are."""
        deadline = time.monotonic() + seconds
        while len(self.bound) < len(self._names) and time.monotonic() < deadline:
            tick(len(self.bound))
            self._over.wait(0.1)
        tick(len(self.bound))
        return len(self.bound) == len(self._names)

    def _listed(self) -> str:
        answer = self._cluster.request("GET", self._path)
        for pod in answer["items"]:
            if pod["spec"].get("nodeName"):
                self._note(str(pod["metadata"]["name"]))
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                for line in self._cluster.stream(self._path, self._version):
                    if line.startswith(_ERROR):
                        # What was missed in between is in the list.
                        self._version = self._listed()
                        break
                    self._see(line)
            except (DemoError, urllib3.exceptions.HTTPError):
                self._over.wait(_AGAIN_SECONDS)

    def _see(self, line: bytes) -> None:
        if found := _VERSION.search(line):
            self._version = found.group(1).decode()
        if (found := _NAME.search(line)) and found.group(1).decode() in self.bound:
            return
        if (name := bound_pod(line)) is not None:
            self._note(name)

    def _note(self, name: str) -> None:
        if name in self._names:
            self.bound.setdefault(name, self._clock())
