"""The files of the page, and the forms of requests and responses."""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from aiohttp import web

from . import security

TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
REQUESTED_WITH = "application/json"


def page_files() -> Mapping[str, bytes]:
    """The files of the page, by path below ``static``."""
    root = resources.files(__package__) / "static"
    folders = [("", root), ("vendor/", root / "vendor")]
    return {
        prefix + item.name: item.read_bytes()
        for prefix, folder in folders
        for item in folder.iterdir()
        if item.name.rpartition(".")[2] in TYPES
    }


async def json_body(request: web.Request) -> Mapping[str, Any]:
    """The JSON object that a page has sent.

    Raises:
        web.HTTPException: it is not sent as JSON, or is no JSON object.
    """
    if request.content_type != REQUESTED_WITH:
        raise web.HTTPUnsupportedMediaType(text=f"send {REQUESTED_WITH}")
    try:
        body = await request.json()
    except (ValueError, RecursionError) as problem:
        raise web.HTTPBadRequest(text="this is not JSON") from problem
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="this is not a JSON object")
    return body


async def open_stream(
    request: web.Request, kind: str = "application/x-ndjson"
) -> web.StreamResponse:
    """Begin a response that is written in parts."""
    response = web.StreamResponse()
    response.content_type = kind
    await response.prepare(request)
    return response


async def harden(_request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that every response has."""
    response.headers.update(security.HEADERS)
    response.headers["Server"] = "tutti"


def compact(value: Any) -> str:
    """The value as JSON, without spaces."""
    return json.dumps(value, separators=(",", ":"))


def line_of(value: Mapping[str, Any]) -> bytes:
    """The value as one line of JSON."""
    return compact(value).encode() + b"\n"
