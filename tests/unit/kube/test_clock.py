"""The clock follows the API server's, and nobody else's."""

import time
from email.utils import formatdate

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import Configuration

from tutti.kube import access, client
from tutti.kube.clock import ServerClock

NOW = 1_800_000_000.0
HOUR = 3600.0


class Time:
    """A machine's wall and monotonic clocks."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.passed = 5.0
        self.ahead = ahead

    def wall(self) -> float:
        """Seconds since the epoch."""
        return NOW + self.passed + self.ahead

    def monotonic(self) -> float:
        """Seconds since anything."""
        return self.passed


def clock_of(machine: Time) -> ServerClock:
    return ServerClock(machine.wall, machine.monotonic)


def answer(machine: Time, clock: ServerClock, *, took: float = 0.0, ahead: float = 0.0) -> None:
    """Let a call take so long and be dated in its middle, by a server that is so far ahead."""
    sent = machine.passed
    machine.passed += took / 2
    date = formatdate(NOW + machine.passed + ahead, usegmt=True)
    machine.passed += took / 2
    clock.dated(date, sent)


@pytest.mark.parametrize("ahead", [-HOUR, -2.0, 0.0, 2.0, HOUR])
def test_a_machine_whose_clock_is_wrong_judges_by_the_servers(ahead: float) -> None:
    machine = Time(ahead)
    clock = clock_of(machine)
    assert clock() == machine.wall()
    answer(machine, clock)
    assert abs(clock() - (NOW + machine.passed)) <= 1.0
    machine.passed += 100.0
    assert abs(clock() - (NOW + machine.passed)) <= 1.0


def test_a_wall_clock_that_is_put_back_changes_nothing() -> None:
    machine = Time()
    clock = clock_of(machine)
    before = clock()
    machine.ahead = -HOUR
    machine.passed += 1.0
    assert clock() == before + 1.0


def test_a_server_whose_clock_is_put_back_is_followed() -> None:
    machine = Time()
    clock = clock_of(machine)
    answer(machine, clock, ahead=-HOUR)
    assert abs(clock() - (NOW + machine.passed - HOUR)) <= 1.0


@given(
    ahead=st.floats(-HOUR, HOUR),
    calls=st.lists(st.tuples(st.floats(0, 40), st.floats(0, 40)), min_size=1, max_size=20),
)
def test_it_is_never_wrong_by_more_than_a_second_and_the_shortest_call(
    ahead: float, calls: list[tuple[float, float]]
) -> None:
    machine = Time(ahead)
    clock = clock_of(machine)
    for took, rest in calls:
        answer(machine, clock, took=took)
        machine.passed += rest
    error = abs(clock() - (NOW + machine.passed))
    assert error <= 1.0 + min(took for took, _ in calls) + 1e-3


def test_an_answer_that_is_right_moves_nothing() -> None:
    machine = Time()
    clock = clock_of(machine)
    for _ in range(20):
        answer(machine, clock, took=0.3)
    assert clock() == NOW + machine.passed


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Nov 2026 00:00:00 GMT"])
def test_a_date_that_cannot_be_read_says_nothing(date: str) -> None:
    machine = Time(HOUR)
    clock = clock_of(machine)
    clock.dated(date, 0.0)
    assert clock() == machine.wall()


async def test_the_client_tells_the_clock_the_date_of_each_answer() -> None:
    async def away(_: web.Request) -> web.Response:
        return web.Response(text="{}", headers={"Date": formatdate(NOW, usegmt=True)})

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", away)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    clock = ServerClock(time.time, time.monotonic)
    assert abs(clock() - NOW) > HOUR
    try:
        port = runner.addresses[0][1]
        reached = access.Access(Configuration(host=f"http://127.0.0.1:{port}"))
        async with client.Client(reached, clock=clock) as api:
            await api.read_lease()
    finally:
        await runner.cleanup()
    assert abs(clock() - NOW) < HOUR
