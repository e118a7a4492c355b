"""The Api: every call that Tutti makes, and the only code that speaks HTTP.

One protocol with the writes and single reads of the cycle, one with lists and watches of the
supply side; ``Client`` implements both. The ClusterRole is derived from ``Call``.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import aiohttp

from ..model.cluster import Member, Reservation
from ..model.decisions import Assignment
from ..model.keys import GangKey, PodKey
from . import decode, encode, errors, wire
from .access import Access

REQUEST_SECONDS = 30.0
WATCH_SECONDS = 290  # asked of the server; it ends a watch by itself after 30 to 60 minutes
PAGE = 500  # kubectl's and client-go's page size
TUTTI = "/apis/tutti.dev/v1alpha1"


class Right(NamedTuple):
    """What a ClusterRole rule must grant for one call."""

    group: str
    resource: str
    verb: str


class Call(Enum):
    """Every kind of call that Tutti makes; kopf makes the lists and watches of the demand side."""

    LIST_NODES = Right("", "nodes", "list")
    WATCH_NODES = Right("", "nodes", "watch")
    LIST_PODS = Right("", "pods", "list")
    WATCH_PODS = Right("", "pods", "watch")
    GET_POD = Right("", "pods", "get")
    BIND = Right("", "pods/binding", "create")
    PATCH_POD_STATUS = Right("", "pods/status", "patch")
    CREATE_EVENT = Right("", "events", "create")
    LIST_POD_GROUPS = Right("tutti.dev", "podgroups", "list")
    WATCH_POD_GROUPS = Right("tutti.dev", "podgroups", "watch")
    PATCH_POD_GROUP_STATUS = Right("tutti.dev", "podgroups/status", "patch")
    LIST_RESERVATIONS = Right("tutti.dev", "reservations", "list")
    WATCH_RESERVATIONS = Right("tutti.dev", "reservations", "watch")
    CREATE_RESERVATION = Right("tutti.dev", "reservations", "create")
    DELETE_RESERVATION = Right("tutti.dev", "reservations", "delete")


class Api(Protocol):
    """What the cycle does to the cluster: the seam that the in-memory fake stands behind.

    Every method raises ``errors.ApiError``.
    """

    async def bind(self, assignment: Assignment) -> None:
        """Bind one pod, on condition that its uid and resourceVersion are still the same."""

    async def read_member(self, key: PodKey) -> Member:
        """Read one pod as it is now; raises ``Gone`` where there is none."""

    async def say_of_pod(self, member: Member, why: encode.Why) -> Member:
        """Set PodScheduled to False and say why; answers the pod as it then is."""

    async def reserve(self, reservation: Reservation) -> Reservation:
        """Create a Reservation; raises ``Conflict`` where the gang already has one."""

    async def release(self, reservation: Reservation) -> None:
        """Delete a Reservation, on condition that it is still the same object."""

    async def write_status(self, gang: GangKey, status: Mapping[str, Any]) -> decode.PodGroup:
        """Merge fields into a PodGroup's status; answers the PodGroup as it then is."""

    async def say(self, event: encode.Event) -> None:
        """Create an Event."""


class Stream(NamedTuple):
    """One list-and-watch: where it is, and which objects of it are wanted."""

    name: str
    path: str
    selector: str = ""


class Source(Protocol):
    """Lists and watches, as bytes: what they hold is the decoder's business."""

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """List one page, the first or the one ``after`` a continue token of the same list.

        Raises ``errors.ApiError``.
        """

    def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:
        """Follow from ``version``, one JSON line per event; ends when the server ends it."""


NODES = Stream("nodes", "/api/v1/nodes")
BOUND = Stream("bound pods", "/api/v1/pods", "spec.nodeName!=")
GROUPS = Stream("PodGroups", f"{TUTTI}/podgroups")
RESERVATIONS = Stream("Reservations", f"{TUTTI}/reservations")


def pending(scheduler_name: str) -> Stream:
    """The pods that wait for us."""
    return Stream("pending pods", "/api/v1/pods", pending_selector(scheduler_name))


def pending_selector(scheduler_name: str) -> str:
    """Select unbound pods that name this scheduler."""
    return f"spec.nodeName=,spec.schedulerName={scheduler_name}"


def others_pending(scheduler_name: str) -> Stream:
    """The unbound pods of other schedulers, of which those pinned to a node use its room."""
    return Stream(
        "pinned pods", "/api/v1/pods", f"spec.nodeName=,spec.schedulerName!={scheduler_name}"
    )


class Client:
    """The real Api and Source; never retries: what failed is looked at again by the next cycle."""

    def __init__(self, access: Access) -> None:
        self._server = access.server.rstrip("/")
        self._session = access.session()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def bind(self, assignment: Assignment) -> None:
        """See ``Api.bind``; the server honours uid and resourceVersion of a Binding's metadata."""
        path = f"/api/v1/namespaces/{assignment.pod.namespace}/pods/{assignment.pod.name}/binding"
        await self._send("POST", path, encode.binding(assignment))

    async def read_member(self, key: PodKey) -> Member:
        """See ``Api.read_member``."""
        body = await self._send("GET", f"/api/v1/namespaces/{key.namespace}/pods/{key.name}")
        return decode.decode_member(wire.parse_one(body, wire.Pod))

    async def say_of_pod(self, member: Member, why: encode.Why) -> Member:
        """See ``Api.say_of_pod``; the uid in the patch keeps it off a recreated namesake."""
        key = member.key
        path = f"/api/v1/namespaces/{key.namespace}/pods/{key.name}/status"
        patch = encode.pod_condition(member, why)
        body = await self._send("PATCH", path, patch, kind="strategic-merge-patch")
        return decode.decode_member(wire.parse_one(body, wire.Pod))

    async def reserve(self, reservation: Reservation) -> Reservation:
        """See ``Api.reserve``."""
        path = f"{TUTTI}/namespaces/{reservation.gang.namespace}/reservations"
        body = await self._send("POST", path, encode.reservation(reservation))
        return decode.decode_reservation(wire.parse_one(body, wire.Reservation))

    async def release(self, reservation: Reservation) -> None:
        """See ``Api.release``."""
        path = f"{TUTTI}/namespaces/{reservation.gang.namespace}/reservations/{reservation.uid}"
        await self._send("DELETE", path, encode.delete_options(reservation))

    async def write_status(self, gang: GangKey, status: Mapping[str, Any]) -> decode.PodGroup:
        """See ``Api.write_status``."""
        path = f"{TUTTI}/namespaces/{gang.namespace}/podgroups/{gang.name}/status"
        body = await self._send("PATCH", path, {"status": status}, kind="merge-patch")
        return decode.decode_group(wire.parse_one(body, wire.PodGroup))

    async def say(self, event: encode.Event) -> None:
        """See ``Api.say``."""
        path = f"/api/v1/namespaces/{event.regarding.namespace}/events"
        await self._send("POST", path, encode.event(event))

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """See ``Source.page``."""
        query = {"limit": str(PAGE)}
        if stream.selector:
            query["fieldSelector"] = stream.selector
        if after:
            query["continue"] = after
        return await self._send("GET", stream.path, query=query)

    async def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:
        """See ``Source.watch``."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "1",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        if stream.selector:
            query["fieldSelector"] = stream.selector
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=REQUEST_SECONDS, sock_read=WATCH_SECONDS + REQUEST_SECONDS
        )
        try:
            async with self._session.get(
                self._server + stream.path, params=query, timeout=timeout
            ) as response:
                if response.status >= 400:  # noqa: PLR2004 - HTTP's own boundary
                    raise _refusal(response, await response.read())
                async for line in _lines(response.content):
                    yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise errors.Unavailable(f"watching {stream.name}: {problem!r}") from problem

    async def _send(
        self,
        verb: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        kind: str = "",
    ) -> bytes:
        headers = {"Content-Type": f"application/{kind}+json" if kind else "application/json"}
        try:
            async with self._session.request(
                verb,
                self._server + path,
                data=None if body is None else json.dumps(body),
                params=query,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
            ) as response:
                answer = await response.read()
                if response.status >= 400:  # noqa: PLR2004 - HTTP's own boundary
                    raise _refusal(response, answer)
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise errors.Unavailable(f"{verb} {path}: {problem!r}") from problem


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> errors.ApiError:
    seconds = response.headers.get("Retry-After", "")
    # The header may also be a date, which the API server never sends.
    return errors.from_response(
        response.status, body, float(seconds) if seconds.isdigit() else None
    )


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Cut a stream into lines of any length; aiohttp's own reader refuses long ones."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
                # A burst of thousands of events must not keep the cycle from its turn.
        await asyncio.sleep(0)
