"""The table of calls, from which all requests are made, and answers that are none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from tests.harness import builders
from tutti.kube import access, client, errors, kinds
from tutti.kube.calls import Call, Right
from tutti.kube.codec import encode
from tutti.kube.codec.devices import ClaimWrite
from tutti.kube.codec.hand_over import NO_HAND_OVER
from tutti.kube.concurrency import is_away
from tutti.kube.gang_sources import GangObject, pod_group, volcano
from tutti.model.applications import ConfigMapKey
from tutti.model.decisions import Assignment
from tutti.model.devices.claims import ClaimName, Consumer, DeviceClaim
from tutti.model.keys import GangKey, Lease, NodeName, Uid

from . import objects

MEMBER = builders.member("a-0", builders.shape(cpu=1))
TO_N1 = Assignment(MEMBER.key, Uid("u-1"), "7", NodeName("n1"))
HELD = replace(builders.reservation(builders.gang("a").of(1, cpu=1), ("a-0", "n1")), uid=Uid("u-1"))


@pytest.mark.parametrize(
    ("call", "place", "method", "path"),
    [
        (kinds.NODE.right("list"), (), "GET", "/api/v1/nodes"),
        (Call.GET_POD, ("ml", "a-0"), "GET", "/api/v1/namespaces/ml/pods/a-0"),
        (Call.BIND, ("ml", "a-0"), "POST", "/api/v1/namespaces/ml/pods/a-0/binding"),
        (Call.EVICT, ("ml", "a-0"), "POST", "/api/v1/namespaces/ml/pods/a-0/eviction"),
        (Call.GET_JOB, ("ml", "a"), "GET", "/apis/batch/v1/namespaces/ml/jobs/a"),
        (Call.GET_CONFIG_MAP, ("ml", "c"), "GET", "/api/v1/namespaces/ml/configmaps/c"),
        (Call.CREATE_EVENT, ("ml",), "POST", "/api/v1/namespaces/ml/events"),
        (
            pod_group.KIND.right("patch", "status"),
            ("ml", "a"),
            "PATCH",
            "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups/a/status",
        ),
        (
            Call.DELETE_RESERVATION,
            ("ml", "uid"),
            "DELETE",
            "/apis/tutti.dev/v1alpha1/namespaces/ml/reservations/uid",
        ),
    ],
)
def test_a_call_knows_its_method_and_path(
    call: Right, place: tuple[str, ...], method: str, path: str
) -> None:
    assert (call.method, call.path(*place)) == (method, path)


# The API server requires this right of who writes certain fields by another call.
REQUIRED = "BIND_CLAIM"


@pytest.mark.parametrize(
    "call", [name for name in vars(Call) if name.isupper() and name != REQUIRED]
)
def test_no_right_is_named_that_no_call_uses(call: str) -> None:
    assert f"Call.{call}" in Path(str(client.__file__)).read_text()


DEVICES = DeviceClaim(ClaimName("ml", "c"), Uid("c-1"))
WRITE = ClaimWrite((), NodeName("n1"), (Consumer(Uid("p-1"), "p"),), {})
ANSWERED: dict[str, Callable[[client.Client], Awaitable[object]]] = {
    "a pod that is read": lambda api: api.read_member(MEMBER.key),
    "a pod that is changed": lambda api: api.say_of_pod(MEMBER, encode.Why("R", "s", 0.0)),
    "a Job": lambda api: api.read_job("ml", "a"),
    "a ConfigMap": lambda api: api.read_text("ml", ConfigMapKey("c", "key")),
    "a PodGroup that is made": lambda api: api.declare("ml", {}),
    "a PodGroup that is changed": lambda api: api.write_status(HELD.gang, {}),
    "a Reservation that is made": lambda api: api.reserve(HELD),
    "a Reservation that is signed": lambda api: api.adopt(HELD, "term"),
    "a Reservation that is changed": lambda api: api.amend(HELD),
    "a claim that is made": lambda api: api.make_claim(MEMBER, "c", ()),
    "a pod whose claim is named": lambda api: api.name_claim(MEMBER, "c", ()),
    "a claim that is protected": lambda api: api.protect_claim(DEVICES, protected=True),
    "a claim that gets devices": lambda api: api.allocate(DEVICES, WRITE),
    "a claim that is left": lambda api: api.leave_claim(DEVICES, ()),
    "a pod that is handed over": lambda api: api.hand_over(TO_N1, 9.0),
    "a Lease that is read": lambda api: api.read_lease(),
    "a Lease that is written": lambda api: api.write_lease(Lease()),
}


@asynccontextmanager
async def serving(
    take: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[client.Client]:
    """A client of a server that takes each request like this."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", take)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        server = Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}")
        async with client.Client(access.Access(server)) as api:
            yield api
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("body", ["<html>Sign in</html>", "", "[]", '{"metadata": {"uid": []}}'])
async def test_an_answer_that_cannot_be_read_says_nothing_of_the_server(body: str) -> None:
    """Something in between may have given it; what was asked for may have been done."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body)

    async with serving(answer) as api:
        for what, ask in ANSWERED.items():
            with pytest.raises(errors.Unavailable) as said:
                await ask(api)
            assert str(said.value).startswith("the answer cannot be read: "), what
            assert not is_away(said.value), what


VCJOB = GangObject(
    GangKey("ml", "train-j", volcano.KIND.api), Uid("u"), 1, job_awaiting_room=("train", Uid("j"))
)


@dataclass
class Asked:
    """What a server was asked."""

    method: str = ""
    path: str = ""
    body: Any = None


@asynccontextmanager
async def reached(answer: dict[str, Any], status: int = 200) -> AsyncIterator[tuple[Any, Asked]]:
    """A client, and what the server was asked last, which answers this."""
    asked = Asked()

    async def take(request: web.Request) -> web.Response:
        asked.method, asked.path = request.method, request.path
        asked.body = await request.json() if request.can_read_body else None
        return web.json_response(answer, status=status)

    async with serving(take) as api:
        yield api, asked


async def test_no_redirect_is_followed_and_no_other_server_gets_the_token() -> None:
    """A pod that answers through the proxy of the API server may redirect to anywhere."""
    seen: list[str] = []

    async def note(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        return web.Response(text="{}")

    async with serving(note) as elsewhere:
        address = elsewhere._server.replace("127.0.0.1", "localhost")

        async def redirect(request: web.Request) -> web.Response:
            assert request.headers["Authorization"] == "Bearer secret"
            return web.Response(status=302, headers={"Location": f"{address}/stolen"})

        async with serving(redirect) as api:
            configuration = Configuration(host=api._server)
            configuration.api_key["BearerToken"] = "Bearer secret"
            signing = access.Access(configuration)
            async with client.Client(signing) as own:
                with pytest.raises(errors.Unavailable, match=f"redirects to {address}/st") as said:
                    await own.read_lease()
                assert said.value.status == 302
                with pytest.raises(errors.Unavailable):
                    [line async for line in own.watch(kinds.BOUND, "1")]
            async with signing.session() as session:
                await session.get(f"{address}/other")
                await session.get(f"{api._server}/own")
    assert seen == ["", ""]


async def test_of_an_answer_without_end_no_more_is_read_than_allowed() -> None:
    """A pod that answers through the proxy of the API server may send for ever."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity", "what is read is what is counted"
        response = web.StreamResponse(status=int(request.query["status"]))
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(1 if request.query.get("ends") else 100_000):
                await response.write(b"x" * 1000)
        return response

    right = Right("", "pods/proxy", "get")
    async with serving(answer) as api:
        whole = await api.get(right, "/m", {"status": "200", "ends": "1"}, most=1000)
        assert whole == b"x" * 1000
        for status in ("200", "500"):
            with pytest.raises(errors.Unavailable, match="has more than 2,500 bytes") as said:
                await api.get(right, "/m", {"status": status}, most=2500)
            assert said.value.status == int(status)


SERVER_SECONDS = 60.0  # kube-apiserver's --request-timeout; a webhook has half of it


async def test_a_call_that_a_webhook_holds_up_until_the_server_gives_up_says_nothing_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, passed = asyncio.get_running_loop(), 0.0
    time = loop.time
    monkeypatch.setattr(loop, "time", lambda: time() + passed)

    async def give_up(_: web.Request) -> web.Response:
        nonlocal passed
        passed += SERVER_SECONDS
        await asyncio.sleep(0.05)  # a client that had waited long enough would end the call now
        sentence = "Timeout: request did not complete within requested timeout"
        return web.json_response({"message": sentence, "reason": "Timeout"}, status=504)

    async with serving(give_up) as api:
        with pytest.raises(errors.Unavailable, match="within requested timeout") as said:
            await api.bind(TO_N1)
    assert not is_away(said.value)


async def test_of_volcanos_group_the_status_alone_is_sent() -> None:
    """Its status is no resource of its own: a patch of the object could write anything."""
    metadata = {"name": "train-j", "namespace": "ml", "uid": "u", "resourceVersion": "8"}
    async with reached({"metadata": metadata}) as (api, asked):
        written = await api.write_status(VCJOB.key, {"phase": "Inqueue"}, "7")
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ml/podgroups/train-j"
    assert (asked.method, asked.path) == ("PATCH", path)
    assert asked.body == {"metadata": {"resourceVersion": "7"}, "status": {"phase": "Inqueue"}}
    assert written.version == "8"


async def test_a_gang_that_tutti_may_not_hand_over_waits_whoever_shows_it() -> None:
    group = objects.GROUP | {"spec": {"minMember": 1, "binding": "KubeScheduler"}}
    async with reached(group) as (api, _):
        written = await api.write_status(HELD.gang, {"phase": "Waiting"})
    assert written.unsupported_fields == (NO_HAND_OVER,)


@pytest.mark.parametrize(
    ("uid", "status", "problem"),
    [("j", 200, None), ("other", 200, errors.Gone), ("j", 404, errors.Gone)],
)
async def test_the_roles_of_a_job_are_read_of_that_job_and_no_namesake(
    uid: str, status: int, problem: type[Exception] | None
) -> None:
    tasks = [{"name": "work", "replicas": 2}]
    spec = {"tasks": tasks, "schedulerName": "tutti"}
    job = {"metadata": {"name": "train", "uid": uid}, "spec": spec}
    async with reached(job, status) as (api, asked):
        if problem is not None:
            with pytest.raises(problem):
                await api.read_job_pods(VCJOB)
        else:
            pods = await api.read_job_pods(VCJOB)
            assert ([role.name for role in pods.roles], pods.schedulers) == (["work"], {"tutti"})
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/ml/jobs/train"
    assert (asked.method, asked.path) == ("GET", path)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("spec: Invalid value: null: field is immutable", errors.Unchangeable),
        (
            "status.allocation: Invalid value: null: field cannot be modified once set",
            errors.Unchangeable,
        ),
        (f"spec: Invalid value: {'x' * 600}: field is immutable", errors.Unchangeable),
        ('admission webhook "x" denied the request: field is immutable', errors.Refused),
        ("spec: Required value", errors.Refused),
    ],
)
async def test_a_claim_that_cannot_be_patched_is_said_to_be_one(
    message: str, kind: type[errors.Refused]
) -> None:
    """Only another client can write it: the patch has none of these fields."""
    async with reached({"message": message, "reason": "Invalid"}, 422) as (api, _):
        with pytest.raises(errors.Refused, match=message[:60]) as said:
            await api.protect_claim(DEVICES, protected=True)
    assert type(said.value) is kind
    assert (client.REWRITTEN in str(said.value)) == (kind is errors.Unchangeable)


async def test_a_gang_that_awaits_no_room_has_no_job_to_read() -> None:
    async with reached({}) as (api, asked):
        assert await api.read_job_pods(GangObject(HELD.gang, Uid("u"), 1)) == (frozenset(), (), "")
    assert not asked.method


@pytest.mark.parametrize(
    "name", ["..", ".", "../../../api/v1/pods", "x?watch=1", "x#y", "a b", "%2e"]
)
def test_a_name_that_a_user_wrote_is_no_path_to_something_else(name: str) -> None:
    with pytest.raises(errors.Gone, match="no object has the name"):
        Call.GET_JOB.path("ml", name)
    with pytest.raises(errors.Gone, match="no object has the name"):
        Call.GET_JOB.path(name, "train")


async def test_a_pod_is_handed_over_by_a_patch_of_the_pod_that_was_just_read() -> None:
    metadata = {"name": "a-0", "namespace": "ml", "uid": "u-1", "resourceVersion": "7"}
    spec = {"schedulerName": "default-scheduler", "schedulingGates": [{"name": "tutti.dev/gang"}]}
    async with reached({"metadata": metadata, "spec": spec}) as (api, asked):
        await api.hand_over(TO_N1, 9.0)
        assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/ml/pods/a-0")
        assert asked.body["metadata"]["resourceVersion"] == "7"
        asked.method = ""
        with pytest.raises(errors.Conflict):
            await api.hand_over(replace(TO_N1, version="6"), 9.0)
        assert asked.method == "GET", "nothing is sent for a pod that has changed"
