"""Admits one browser of the user that started the console, and no other page in that browser.

The token is valid once. It is exchanged for two secrets: a cookie, which scripts cannot read, and a
key, which the page keeps and sends as a header. Browsers send a cookie of 127.0.0.1 to every port,
so a server of another local user may see the cookie; it never sees the key.
"""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

KEY_HEADER = "X-Tutti-Key"
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
SAFE_METHODS = ("GET", "HEAD")


def refusal(method: str, headers: Mapping[str, str], port: int) -> str:
    """Why a request must not be answered, whichever client sends it; empty if it may be.

    With DNS rebinding, a page of another site has its own name resolve to this host. It then sends
    that name as Host.
    """
    own = [f"127.0.0.1:{port}", f"localhost:{port}"]
    host = headers.get("Host", "")
    if host not in own:
        return "this is not the host that the console serves"
    origin = headers.get("Origin")
    if origin is None and method not in SAFE_METHODS:
        return "a request that changes something has to name its origin"
    if origin is not None and origin != f"http://{host}":
        return "a page of another origin may not ask the console"
    return ""


def refusal_of_data(headers: Mapping[str, str]) -> str:
    """Why a request for data must not be answered: a page of another site sent it; else empty."""
    if headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        return "only the console's own page may ask for data"
    return ""


@dataclass(slots=True)
class Session:
    """The token that opens the console, and the secrets of the browser that used it."""

    secret: Callable[[], str]  # makes a new secret that cannot be guessed
    token: str = field(init=False, repr=False)
    _cookie: str = field(default="", repr=False)
    _key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        self.token = self.secret()

    def open(self, token: str) -> tuple[str, str] | None:
        """The cookie and the key, once, for the right token; else None."""
        if not self.token or not _is_same(token, self.token):
            return None
        self.token, self._cookie, self._key = "", self.secret(), self.secret()
        return self._cookie, self._key

    def is_open_to(self, cookie: str, key: str) -> bool:
        """Whether these are the secrets that the token was exchanged for."""
        is_cookie, is_key = _is_same(cookie, self._cookie), _is_same(key, self._key)
        return bool(self._cookie) and is_cookie and is_key


def cookie_name(port: int) -> str:
    """The name of the cookie; it has the port, since consoles share the browser's cookies."""
    return f"tutti-console-{port}"


def _is_same(token: str, other: str) -> bool:
    # Headers and JSON may have surrogates, which UTF-8 has not.
    tokens = (text.encode(errors="surrogatepass") for text in (token, other))
    return hmac.compare_digest(*tokens)
