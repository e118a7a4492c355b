"""Another origin, another user: nobody but the browser that used the token may ask."""

import gzip
import io
import os
import stat
import subprocess
from itertools import count

import pytest

from tutti import dump
from tutti.console import security
from tutti.console.redirect_file import address_of, redirect_file
from tutti.console.responses import page_files
from tutti.console.security import KEY_HEADER, Session, refusal, refusal_of_data

from ...harness.builders import gang, node, snapshot_of
from ...harness.console import Client, console_of
from ..cli.test_plan import SETUP

DUMP = dump.write(snapshot_of(node("n1", cpu=4), gang("a").of(2, cpu=1)), SETUP)
PATHS = [
    *(
        "/api/about",
        "/api/queues",
        "/api/room",
        "/api/gangs",
        "/api/claims",
        "/api/events?gang=ml/a",
        "/api/map",
        "/api/node?name=n1",
        "/api/waiting",
    ),
    *("/api/gang?name=ml/a", "/api/plan", "/api/explain?gang=ml/a", "/api/changes"),
]
OWN = {"Host": "127.0.0.1:80"}
NOBODY = 65534  # a user who owns nothing


@pytest.mark.parametrize(
    ("method", "headers", "is_refused"),
    [
        ("GET", {"Host": "127.0.0.1:80"}, False),
        ("GET", {"Host": "localhost:80"}, False),
        ("GET", {"Host": "127.0.0.1:81"}, True),
        ("GET", {"Host": "127.0.0.1"}, True),
        ("GET", {"Host": "evil.example:80"}, True),
        ("GET", {}, True),
        ("GET", {**OWN, "Origin": "http://127.0.0.1:80"}, False),
        ("GET", {**OWN, "Origin": "http://localhost:80"}, True),
        ("GET", {**OWN, "Origin": "https://127.0.0.1:80"}, True),
        ("GET", {**OWN, "Origin": "null"}, True),
        ("GET", {**OWN, "Origin": ""}, True),
        ("POST", OWN, True),
        ("POST", {**OWN, "Origin": "http://127.0.0.1:80"}, False),
        ("POST", {**OWN, "Origin": "http://evil.example"}, True),
    ],
)
def test_host_and_origin_have_to_be_the_consoles_own(
    method: str, headers: dict[str, str], *, is_refused: bool
) -> None:
    assert bool(refusal(method, headers, 80)) is is_refused


@pytest.mark.parametrize(
    ("site", "is_refused"),
    [("same-origin", False), ("same-site", True), ("cross-site", True), ("none", True)],
)
def test_data_is_for_scripts_of_the_page_alone(site: str, *, is_refused: bool) -> None:
    assert bool(refusal_of_data({"Sec-Fetch-Site": site})) is is_refused
    assert not refusal_of_data({}), "clients that are no browsers do not say it"


def test_a_token_is_good_once() -> None:
    numbers = count()
    session = Session(lambda: f"secret {next(numbers)}")
    assert session.open("") is None
    assert session.open("secret 1") is None
    assert not session.is_open_to("", ""), "nothing is open before the token was used"
    assert session.open("secret 0") == ("secret 1", "secret 2")
    assert session.open("secret 0") is None
    assert session.open("") is None
    assert session.is_open_to("secret 1", "secret 2")
    assert not session.is_open_to("secret 1", "")
    assert not session.is_open_to("", "secret 2")
    assert not session.is_open_to("secret 2", "secret 1")
    assert not session.is_open_to("é", "secret 2")
    assert not session.is_open_to("\udcff", "\ud800"), "as aiohttp reads bytes that are no UTF-8"
    assert "secret 1" not in repr(session)


def test_another_local_user_cannot_read_the_token() -> None:
    before = os.umask(0)
    try:
        with redirect_file(8026, "the-token") as path:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert address_of(8026, "the-token") in path.read_text()
            if os.geteuid() == 0:  # who else may become another user
                other = subprocess.run(["cat", path], user=NOBODY, capture_output=True, check=False)
                assert other.returncode != 0
                assert b"the-token" not in other.stdout
    finally:
        os.umask(before)
    assert not path.parent.exists()


def test_the_token_is_in_no_request_that_opens_the_page() -> None:
    """What is behind # stays in the browser: no log, no Referer and no proxy has it."""
    assert address_of(1, "t") == "http://127.0.0.1:1/#token=t"


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_secrets_no_path_tells_anything(path: str) -> None:
    async with console_of(DUMP) as client:
        own = dict(client.headers)
        assert (await client.raw(path)).status == 200
        for without in own:
            client.headers = {name: value for name, value in own.items() if name != without}
            response = await client.raw(path)
            assert response.status == 401
            assert "n1" not in await response.text()
        client.headers = {**own, KEY_HEADER: "guessed"}
        assert (await client.raw(path)).status == 401


@pytest.mark.parametrize("path", [*PATHS, "/", "/static/app.js"])
async def test_a_name_that_was_made_to_lead_here_gets_nothing(path: str) -> None:
    """DNS rebinding: the browser believes that this is the attacker's own server."""
    async with console_of(DUMP) as client:
        host = f"evil.example:{client.port}"
        response = await client.raw(path, headers={"Host": host})
        assert response.status == 403
        assert "tutti" not in (await response.text()).lower()


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_of_another_origin_can_neither_read_nor_act(path: str) -> None:
    async with console_of(DUMP) as client:
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            assert (await client.raw(path, headers=headers)).status == 403
        response = await client.raw(path)
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_a_form_of_another_site_can_send_nothing() -> None:
    """CSRF: with the cookie that a browser adds by itself, and without it."""
    async with console_of(DUMP) as client:
        for path in ("/api/what-if", "/api/session"):
            for origin in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}):
                response = await client.raw(path, "POST", json={}, headers=origin)
                assert response.status == 403
            plain = {"Origin": client.address, "Content-Type": "text/plain"}
            assert (await client.raw(path, "POST", data="{}", headers=plain)).status == 415


async def test_a_token_is_no_good_the_second_time_nor_is_a_wrong_one() -> None:
    async with console_of(DUMP) as client:
        for token in ("secret-1", "", "wrong"):
            response = await client.open(token)
            assert response.status == 403
            assert not response.cookies
        assert (await client.raw("/api/about")).status == 200, "who has it stays in"


async def test_the_cookie_is_for_no_script_and_no_other_site() -> None:
    async with console_of(DUMP) as client:
        client.session.token = "again"
        cookie = (await client.open("again")).cookies[security.cookie_name(client.port)]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"


@pytest.mark.parametrize("path", ["/", "/static/app.js", "/static/none.js", "/api/about", "/x"])
async def test_every_answer_forbids_scripts_from_elsewhere(path: str) -> None:
    async with console_of(DUMP) as client:
        for headers in ({}, {KEY_HEADER: ""}, {"Host": "evil.example"}):
            response = await client.raw(path, headers=headers)
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'; script-src 'self';" in policy
            assert "unsafe" not in policy
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["../server.py", "%2e%2e/server.py", "/etc/passwd", "", "vendor"])
async def test_no_file_is_served_but_the_pages_own(name: str) -> None:
    async with console_of(DUMP) as client:
        response = await client.raw(f"/static/{name}")
        assert response.status in (403, 404)


def test_the_page_has_no_script_and_no_style_of_its_own_and_loads_nothing_from_elsewhere() -> None:
    files = page_files()
    page = files["index.html"].decode()
    assert "<script>" not in page
    assert "style=" not in page
    assert " on" not in page.replace(" one", "").replace(" only", "")
    for name, body in files.items():
        text = body.decode()
        if not name.startswith("vendor/"):
            assert "unsafeHTML" not in text, name
            assert "innerHTML" not in text, name
            assert "eval(" not in text, name
        addresses = [line for line in text.splitlines() if "http://" in line or "https://" in line]
        assert all("www.w3.org" in line or name.startswith("vendor/") for line in addresses), name


def test_the_page_has_at_most_500_kilobytes_compressed() -> None:
    assert sum(len(gzip.compress(body)) for body in page_files().values()) <= 500_000


async def test_a_body_that_is_no_question_is_refused() -> None:
    async with console_of(DUMP) as client:
        own = {"Origin": client.address, "Content-Type": "application/json"}
        cases = ((b"{", 400), (b"[]", 400), (b"[" * 100_000, 400), (b"x" * (5 << 20), 413))
        for body, status in cases:
            data = io.BytesIO(body)
            response = await client.raw("/api/what-if", "POST", data=data, headers=own)
            assert response.status == status


async def _reads(client: Client) -> bool:
    return (await client.raw("/api/about")).status == 200


async def test_two_consoles_do_not_open_one_another() -> None:
    async with console_of(DUMP) as one, console_of(DUMP) as other:
        other.session.token = ""
        one.port, other.port = other.port, one.port
        one.headers, other.headers = one.headers, other.headers
        assert not await _reads(one)
        assert not await _reads(other)
