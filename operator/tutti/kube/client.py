"""The client of the API server: every call that Tutti makes.

``Api`` has the writes and single reads of the cycle, ``Leases`` the calls of leader election, and
``Source`` lists and watches. ``Client`` implements all three.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import aiohttp

from ..model.applications import ConfigMapKey
from ..model.cluster import Member, Reservation
from ..model.decisions import Assignment
from ..model.devices.claims import Consumer, DeviceClaim, DeviceRequest
from ..model.devices.extended import RequestMapping
from ..model.keys import GangKey, LeaderTerm, Lease, LeaseKey, NodeName, PodKey, Uid
from ..model.owners import Job
from ..model.volumes import Claim, Volume
from . import connection_errors, errors, kinds, wire
from .access import Access
from .calls import HAND_OVER, Call, Right, Stream
from .clock import ServerClock
from .codec import decode, devices, encode, hand_over, queues, volumes
from .codec.devices import ClaimWrite
from .codec.queues import QueueObject
from .gang_sources import (
    ALWAYS,
    GangObject,
    GangSource,
    JobPods,
    job_kind,
    pod_group,
    status_writer,
)
from .wire import devices as device_objects

# The API server gives up before, and says so: by default after 60 s, of which a webhook has 30 at
# most. So a webhook that hangs for one object is not mistaken for a server that is away.
REQUEST_SECONDS = 65.0
CONNECT_SECONDS = 30.0
WATCH_SECONDS = 290  # requested of the server, which by itself ends watches after 30 to 60 minutes
DEFAULT_LEASE = LeaseKey("kube-system", "tutti")
BUDGET = "disruption budget"  # in the message of an eviction that a budget refuses
OK, TOO_MANY = 200, 429
REWRITTEN = (  # what to do about a claim of which no patch is accepted
    "the configuration of the claim or its class was sent with spaces between JSON values, or with "
    "characters that Go escapes; create it with kubectl"
)
PAGE = 500  # kubectl's; for each page the API server goes through all objects that are left

V = TypeVar("V")
W = TypeVar("W", bound=wire.Object)
AnswerCallback = Callable[[Right, int], None]
NO_ANSWER = 0  # the status for ``on_answer`` of a call without an answer
FIRST_BAD = 300  # the first status that is an error: a redirect may lead anywhere


def ignore_call(_call: Right, _status: int) -> None:
    """Do nothing."""


class Written(NamedTuple, Generic[V]):
    """An object as the API server answered: its uid, its version and its decoded value."""

    uid: Uid
    version: int
    value: V


class Api(Protocol):
    """The writes and single reads of a cycle; tests replace it by an in-memory API.

    Every method raises ``errors.ApiError``, ``Unavailable`` also if an answer cannot be read.
    """

    async def bind(self, assignment: Assignment) -> None:
        """Bind one pod, on condition that its uid and resourceVersion are still the same."""

    async def hand_over(self, assignment: Assignment, at: float) -> Member:
        """Pin one pod to its node and remove Tutti's gate, in one write; return the new pod.

        Raises ``Conflict`` if its uid or resourceVersion is not the same any more. ``at`` is the
        time that the pod notes, in seconds since the epoch.
        """

    async def read_member(self, key: PodKey) -> Member:
        """Read one pod as it is now; raises ``Gone`` if there is none."""

    async def say_of_pod(self, member: Member, why: encode.Why) -> Member:
        """Set a condition, by default PodScheduled, to False with a reason; return the new pod.

        Raises ``Conflict`` if the pod has changed since ``member`` was read.
        """

    async def evict(self, member: Member) -> None:
        """Evict one pod, on condition that its uid and resourceVersion are still the same.

        Raises ``Refused`` if a disruption budget does not allow it now.
        """

    async def read_job(self, namespace: str, name: str) -> Job:
        """Read how many failures a Job still tolerates; raises ``Gone`` if there is no such Job."""

    async def read_text(self, namespace: str, key: ConfigMapKey) -> str | None:
        """Read a text of a ConfigMap; None if it has no such key.

        Raises ``Gone`` if there is no such ConfigMap.
        """

    async def declare(self, namespace: str, group: Mapping[str, Any]) -> GangObject:
        """Create a PodGroup; raises ``Conflict`` if there is one of that name."""

    async def reserve(self, reservation: Reservation) -> Reservation:
        """Create a Reservation; raises ``Conflict`` if the gang already has one."""

    async def adopt(self, reservation: Reservation, term: LeaderTerm) -> Reservation:
        """Sign a standing Reservation with this term; the old term can no longer delete it."""

    async def amend(self, reservation: Reservation) -> Reservation:
        """Change the placement of a Reservation, on condition that it has not changed."""

    async def release(self, reservation: Reservation) -> None:
        """Delete a Reservation, on condition that it has not changed."""

    async def bind_claim(self, claim: Claim, volume: str) -> Written[Volume]:
        """Give an available volume to a claim, and return the volume.

        Raises ``Conflict`` if the claim or the volume is another, or another claim has the volume.
        """

    async def select_node(self, claim: Claim, node: NodeName | None) -> Written[Claim]:
        """Say for which node a volume is provisioned for a claim, or for none; return the claim.

        Raises ``Conflict`` if the claim has changed.
        """

    async def read_lease(self) -> Lease:
        """Read the Lease as it is now, not from a cache; without a version if there is none."""

    async def write_status(
        self, gang: GangKey, status: Mapping[str, Any], version: str = ""
    ) -> GangObject:
        """Merge fields into the status of the object that declares a gang; return the new object.

        Raises ``errors.Conflict`` if ``version`` is not empty and the object has another one.
        """

    async def read_job_pods(self, group: GangObject) -> JobPods:
        """Read the pods that the job of a gang will create.

        Raises ``Gone`` if there is no such job, and ``BadObject`` if it cannot be read.
        """

    async def set_finalizers(self, queue: QueueObject, finalizers: Sequence[str]) -> QueueObject:
        """Set the finalizers of a Queue, on condition that it has not changed."""

    async def write_queue_status(
        self, queue: QueueObject, status: Mapping[str, Any]
    ) -> QueueObject:
        """Merge fields into the status of a Queue; raises ``Conflict`` if it has changed."""

    async def make_claim(
        self, member: Member, name: str, requests: Sequence[DeviceRequest]
    ) -> DeviceClaim:
        """Create the claim that stands for extended resources of a pod.

        Raises ``Conflict`` if there is one of that name.
        """

    async def name_claim(
        self, member: Member, claim: str, mappings: Sequence[RequestMapping]
    ) -> Member:
        """Write into the status of a pod which claim its extended resources are from.

        Returns the new pod. Raises ``Conflict`` if the pod has changed since ``member`` was read.
        """

    async def protect_claim(self, claim: DeviceClaim, *, protected: bool) -> DeviceClaim:
        """Set or remove the finalizer of an allocated claim, on condition that it is unchanged."""

    async def allocate(self, claim: DeviceClaim, write: ClaimWrite) -> DeviceClaim:
        """Give a claim devices and a consumer, on condition that it has not changed."""

    async def leave_claim(self, claim: DeviceClaim, consumers: Sequence[Consumer]) -> DeviceClaim:
        """Leave a claim these consumers, on condition that it has not changed.

        Without any, its devices are free again.
        """

    async def say(self, event: encode.Event) -> None:
        """Create an Event."""


class Leases(Protocol):
    """The calls of leader election. Every method raises ``errors.ApiError``."""

    async def read_lease(self) -> Lease:
        """Read the Lease as it is now; without a version if there is none."""

    async def write_lease(self, lease: Lease) -> Lease:
        """Create or replace the Lease; raises ``Conflict`` if another client wrote it first."""


class Source(Protocol):
    """Lists and watches, as bytes that the caller decodes."""

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """List one page: the first page, or the page ``after`` a continue token of the same list.

        Raises ``errors.ApiError``.
        """

    def watch(self, stream: Stream, version: str) -> AsyncIterator[bytes]:
        """Watch from ``version``, one JSON line per event, until the server ends the watch."""


class Client:
    """Implements Api, Leases and Source by HTTP; it never retries, because the next cycle does."""

    def __init__(
        self,
        access: Access,
        lease: LeaseKey = DEFAULT_LEASE,
        *,
        on_answer: AnswerCallback = ignore_call,
        clock: ServerClock | None = None,
        sources: Sequence[GangSource] = ALWAYS,
        hands_over: bool = False,
    ) -> None:
        """``on_answer`` gets each call and the HTTP status of its answer; ``clock`` gets its Date.

        ``sources`` decide which gang a pod is in. If Tutti ``hands_over``, pods of the default
        scheduler are read as pods that kube-scheduler binds. Otherwise their gangs wait.
        """
        self._member = hand_over.member_decoder(sources, hands_over=hands_over)
        self._hands_over = hands_over
        self._clock = clock
        self._on_answer = on_answer
        self._lease = lease
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
        """See ``Api.bind``; the server checks the uid and resourceVersion of a Binding."""
        path = Call.BIND.path(*assignment.pod)
        await self._send(Call.BIND, path, encode.binding(assignment))

    async def hand_over(self, assignment: Assignment, at: float) -> Member:
        """See ``Api.hand_over``; the patch depends on the terms of affinity that the pod has."""
        path = Call.GET_POD.path(*assignment.pod)
        body = await self._send(Call.GET_POD, path)
        try:
            patch = hand_over.hand_over(body, assignment, at)
        except errors.BadObject as problem:
            raise errors.Unavailable(
                f"the answer cannot be read: {problem}", status=OK
            ) from problem
        answer = await self._send(HAND_OVER, path, patch, kind="merge-patch")
        return _read(answer, wire.Pod, self._member)

    async def read_member(self, key: PodKey) -> Member:
        """See ``Api.read_member``."""
        body = await self._send(Call.GET_POD, Call.GET_POD.path(*key))
        return _read(body, wire.Pod, self._member)

    async def say_of_pod(self, member: Member, why: encode.Why) -> Member:
        """See ``Api.say_of_pod``."""
        call = Call.PATCH_POD_STATUS
        patch = encode.pod_condition(member, why)
        body = await self._send(call, call.path(*member.key), patch, kind="strategic-merge-patch")
        return _read(body, wire.Pod, self._member)

    async def evict(self, member: Member) -> None:
        """See ``Api.evict``; the server answers 429 for a budget and for too many requests."""
        try:
            await self._send(Call.EVICT, Call.EVICT.path(*member.key), encode.eviction(member))
        except errors.Unavailable as problem:
            if problem.status == TOO_MANY and BUDGET in str(problem):
                raise errors.Refused(str(problem), status=problem.status) from problem
            raise

    async def read_job(self, namespace: str, name: str) -> Job:
        """See ``Api.read_job``."""
        body = await self._send(Call.GET_JOB, Call.GET_JOB.path(namespace, name))
        return _read(body, wire.Job, decode.decode_job)

    async def read_text(self, namespace: str, key: ConfigMapKey) -> str | None:
        """See ``Api.read_text``."""
        call = Call.GET_CONFIG_MAP
        body = await self._send(call, call.path(namespace, key.config_map))
        return _read(body, wire.ConfigMap, lambda config_map: config_map.data.get(key.key))

    async def declare(self, namespace: str, group: Mapping[str, Any]) -> GangObject:
        """See ``Api.declare``."""
        call = Call.CREATE_POD_GROUP
        body = await self._send(call, call.path(namespace), group)
        return _read(body, pod_group.PodGroup, pod_group.decode_group)

    async def reserve(self, reservation: Reservation) -> Reservation:
        """See ``Api.reserve``."""
        path = Call.CREATE_RESERVATION.path(reservation.gang.namespace)
        body = await self._send(Call.CREATE_RESERVATION, path, encode.reservation(reservation))
        return _read(body, wire.Reservation, decode.decode_reservation)

    async def adopt(self, reservation: Reservation, term: LeaderTerm) -> Reservation:
        """See ``Api.adopt``."""
        call = Call.PATCH_RESERVATION
        path = call.path(reservation.gang.namespace, reservation.uid)
        patch = encode.adoption(reservation, term)
        body = await self._send(call, path, patch, kind="merge-patch")
        return _read(body, wire.Reservation, decode.decode_reservation)

    async def amend(self, reservation: Reservation) -> Reservation:
        """See ``Api.amend``."""
        call = Call.PATCH_RESERVATION
        path = call.path(reservation.gang.namespace, reservation.uid)
        patch = encode.amendment(reservation)
        body = await self._send(call, path, patch, kind="merge-patch")
        return _read(body, wire.Reservation, decode.decode_reservation)

    async def release(self, reservation: Reservation) -> None:
        """See ``Api.release``."""
        path = Call.DELETE_RESERVATION.path(reservation.gang.namespace, reservation.uid)
        await self._send(Call.DELETE_RESERVATION, path, encode.delete_options(reservation))

    async def write_status(
        self, gang: GangKey, status: Mapping[str, Any], version: str = ""
    ) -> GangObject:
        """See ``Api.write_status``."""
        kind, writer = kinds.GANGS[gang.kind], status_writer(gang.kind)
        call = kind.right("patch", "status") if writer is None else writer.right
        path = call.path(gang.namespace, gang.name)
        patch = {"metadata": {"resourceVersion": version}} if version else {}
        body = await self._send(call, path, {**patch, "status": status}, kind="merge-patch")
        decode = hand_over.group_decoder(kind.decode, hands_over=self._hands_over)
        return _read(body, kind.model, decode)

    async def bind_claim(self, claim: Claim, volume: str) -> Written[Volume]:
        """See ``Api.bind_claim``; both objects are read first."""
        body = await self._send(Call.GET_VOLUME_CLAIM, Call.GET_VOLUME_CLAIM.path(*claim.key))
        current = _read(body, wire.PersistentVolumeClaim, volumes.decode_claim)
        if current.uid != claim.uid or current.volume or current.terminating:
            raise errors.Conflict(f"claim {claim.key.name} is another, or has a volume")
        path = Call.GET_VOLUME.path(name=volume)
        current_volume = _written(
            await self._send(Call.GET_VOLUME, path), wire.PersistentVolume, volumes.decode_volume
        )
        if current_volume.value.is_for(claim):
            return current_volume
        if not current_volume.value.is_available:
            raise errors.Conflict(f"volume {volume} is not available")
        call, patch = Call.PATCH_VOLUME, volumes.encode_binding(str(current_volume.version), claim)
        body = await self._send(call, path, patch, kind="merge-patch")
        return _written(body, wire.PersistentVolume, volumes.decode_volume)

    async def select_node(self, claim: Claim, node: NodeName | None) -> Written[Claim]:
        """See ``Api.select_node``."""
        patch = volumes.encode_selected_node(node, claim.version)
        call = Call.PATCH_VOLUME_CLAIM
        body = await self._send(call, call.path(*claim.key), patch, kind="merge-patch")
        return _written(body, wire.PersistentVolumeClaim, volumes.decode_claim)

    async def read_job_pods(self, group: GangObject) -> JobPods:
        """See ``Api.read_job_pods``; a thread decodes the job, which may be large."""
        kind = job_kind(group.key.kind)
        if kind is None or group.job_awaiting_room is None:
            return JobPods(frozenset())
        name, uid = group.job_awaiting_room
        body = await self._send(kind.get, kind.get.path(group.key.namespace, name))
        job = wire.parse_one(body, kind.model)
        if job.metadata.uid != uid:
            raise errors.Gone(f"{name} is another job of that name")
        return await asyncio.to_thread(kind.pods_of, job, group)

    async def set_finalizers(self, queue: QueueObject, finalizers: Sequence[str]) -> QueueObject:
        """See ``Api.set_finalizers``."""
        patch = queues.encode_finalizers(queue, finalizers)
        return await self._patch_queue(Call.PATCH_QUEUE, queue, patch)

    async def write_queue_status(
        self, queue: QueueObject, status: Mapping[str, Any]
    ) -> QueueObject:
        """See ``Api.write_queue_status``."""
        patch = queues.encode_status(queue, status)
        return await self._patch_queue(Call.PATCH_QUEUE_STATUS, queue, patch)

    async def make_claim(
        self, member: Member, name: str, requests: Sequence[DeviceRequest]
    ) -> DeviceClaim:
        """See ``Api.make_claim``."""
        path = Call.CREATE_CLAIM.path(member.key.namespace)
        claim = devices.encode_extended_claim(member, name, requests)
        body = await self._send(Call.CREATE_CLAIM, path, claim)
        return _read(body, device_objects.ResourceClaim, devices.decode_device_claim)

    async def name_claim(
        self, member: Member, claim: str, mappings: Sequence[RequestMapping]
    ) -> Member:
        """See ``Api.name_claim``."""
        call = Call.PATCH_POD_STATUS
        patch = devices.encode_extended_status(member, claim, mappings)
        body = await self._send(call, call.path(*member.key), patch, kind="merge-patch")
        return _read(body, wire.Pod, self._member)

    async def protect_claim(self, claim: DeviceClaim, *, protected: bool) -> DeviceClaim:
        """See ``Api.protect_claim``."""
        patch = devices.encode_finalizers(claim, protected=protected)
        return await self._patch_claim(Call.PATCH_CLAIM, claim, patch)

    async def allocate(self, claim: DeviceClaim, write: ClaimWrite) -> DeviceClaim:
        """See ``Api.allocate``."""
        patch = devices.encode_allocation(claim, write)
        return await self._patch_claim(Call.PATCH_CLAIM_STATUS, claim, patch)

    async def leave_claim(self, claim: DeviceClaim, consumers: Sequence[Consumer]) -> DeviceClaim:
        """See ``Api.leave_claim``."""
        patch = devices.encode_consumers(claim, consumers)
        return await self._patch_claim(Call.PATCH_CLAIM_STATUS, claim, patch)

    async def _patch_claim(
        self, call: Right, claim: DeviceClaim, patch: Mapping[str, Any]
    ) -> DeviceClaim:
        try:
            body = await self._send(call, call.path(*claim.key), patch, kind="merge-patch")
        except errors.Unchangeable as problem:
            raise errors.Unchangeable(
                f"{problem.message} ({REWRITTEN})", status=problem.status, reason=problem.reason
            ) from problem
        return _read(body, device_objects.ResourceClaim, devices.decode_device_claim)

    async def _patch_queue(
        self, call: Right, queue: QueueObject, patch: Mapping[str, Any]
    ) -> QueueObject:
        path = call.path(name=queue.queue.name)
        body = await self._send(call, path, patch, kind="merge-patch")
        return _read(body, wire.Queue, queues.decode_queue)

    async def read_lease(self) -> Lease:
        """See ``Leases.read_lease``; a GET without a version reads from the quorum of etcd."""
        try:
            body = await self._send(Call.GET_LEASE, Call.GET_LEASE.path(*self._lease))
        except errors.Gone:
            return Lease()
        return _read(body, wire.Lease, decode.decode_lease)

    async def other_leases(self) -> Mapping[str, Lease]:
        """The Leases of the same name in other namespaces, by namespace."""
        query = {"fieldSelector": f"metadata.name={self._lease.name}"}
        body = await self._send(Call.LIST_LEASES, Call.LIST_LEASES.path(), query=query)
        return {
            lease.metadata.namespace: decode.decode_lease(lease)
            for lease in wire.parse_page(body, wire.Lease).items
            if lease.metadata.namespace != self._lease.namespace
        }

    async def write_lease(self, lease: Lease) -> Lease:
        """See ``Leases.write_lease``."""
        call, name = Call.CREATE_LEASE, ""
        if lease.version:
            call, name = Call.UPDATE_LEASE, self._lease.name
        path = call.path(self._lease.namespace, name)
        body = await self._send(call, path, encode.lease(self._lease, lease))
        return _read(body, wire.Lease, decode.decode_lease)

    async def say(self, event: encode.Event) -> None:
        """See ``Api.say``."""
        path = Call.CREATE_EVENT.path(event.regarding.namespace)
        await self._send(Call.CREATE_EVENT, path, encode.event(event))

    async def get(
        self, right: Right, path: str, query: Mapping[str, str] | None = None, *, most: int
    ) -> bytes:
        """Read an answer that is only shown to users; raises ``errors.ApiError``.

        ``Unavailable`` is raised also for an answer of more than ``most`` bytes, of which no more
        is read.
        """
        return await self._send(right, path, query=query, most=most)

    async def page(self, stream: Stream, after: str = "") -> bytes:
        """See ``Source.page``."""
        query = {"limit": str(PAGE)}
        if stream.selector:
            query["fieldSelector"] = stream.selector
        if after:
            query["continue"] = after
        return await self._send(stream.lists, stream.path, query=query)

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
            total=None, sock_connect=CONNECT_SECONDS, sock_read=WATCH_SECONDS + REQUEST_SECONDS
        )
        try:
            async with self._session.request(
                stream.watches.method,
                self._server + stream.path,
                params=query,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                self._on_answer(stream.watches, response.status)
                if response.status >= FIRST_BAD:
                    raise _refusal(response, await response.read())
                async for line in _lines(response.content):
                    yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            raise self._unreached(f"WATCH {stream.path}", problem) from problem

    async def _send(
        self,
        call: Right,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        kind: str = "",
        most: int | None = None,
    ) -> bytes:
        headers = {"Content-Type": f"application/{kind}+json" if kind else "application/json"}
        if most is not None:
            headers["Accept-Encoding"] = "identity"  # so that what is read is what is counted
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
        sent = 0.0 if self._clock is None else self._clock.monotonic()
        try:
            async with self._session.request(
                call.method,
                self._server + path,
                data=None if body is None else json.dumps(body),
                params=query,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                answer = await (response.read() if most is None else _read_at_most(response, most))
                if self._clock is not None:
                    self._clock.dated(response.headers.get("Date", ""), sent)
                self._on_answer(call, response.status)
                if response.status >= FIRST_BAD:
                    raise _refusal(response, answer)
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            self._on_answer(call, NO_ANSWER)
            raise self._unreached(f"{call.method} {path}", problem) from problem

    def _unreached(self, request: str, problem: Exception) -> errors.Unavailable:
        return errors.Unavailable(f"{request}: {connection_errors.why(problem, self._server)}.")


async def _read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body of a response.

    Raises:
        errors.Unavailable: the body has more than so many bytes.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            raise errors.Unavailable(
                f"the answer has more than {most:,} bytes, and the rest is not read",
                status=response.status,
            )
    return bytes(body)


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> errors.ApiError:
    if response.status < 400:  # noqa: PLR2004 - HTTP's own boundary
        where = response.headers.get("Location", "elsewhere")[:200]
        why = f"the server redirects to {where}, and redirects are not followed"
        return errors.Unavailable(why, status=response.status)
    seconds = response.headers.get("Retry-After", "")
    # The header may also be a date, which the API server never sends.
    return errors.from_response(
        response.status, body, float(seconds) if seconds.isdigit() else None
    )


def _read(body: bytes, kind: type[W], decode_one: Callable[[W], V]) -> V:
    """Decode the answer to a call.

    Raises:
        errors.Unavailable: the answer cannot be read; the request may have been carried out.
    """
    try:
        return decode_one(wire.parse_one(body, kind))
    except errors.BadObject as problem:
        raise errors.Unavailable(f"the answer cannot be read: {problem}", status=OK) from problem


def _written(body: bytes, kind: type[W], decode_one: Callable[[W], V]) -> Written[V]:
    """Decode the answer to a call as ``_read`` does; return it with its uid and version."""

    def written(answer: W) -> Written[V]:
        metadata = answer.metadata
        return Written(Uid(metadata.uid), int(metadata.resource_version), decode_one(answer))

    return _read(body, kind, written)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Cut a stream into lines of any length; aiohttp's own reader refuses long ones."""
    rest = b""
    async for chunk in content.iter_any():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
                # Thousands of events at once must not block the event loop, so yield to it below.
        await asyncio.sleep(0)
