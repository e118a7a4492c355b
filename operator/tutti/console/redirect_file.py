"""The file that opens the console: a page that redirects to it with the token.

All users of a machine can read command lines, but only the owner can read a file of mode 0600. The
token comes after the # of the URL, which browsers do not send.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

MODE = 0o600
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Tutti</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">Open the console</a></p></body></html>
"""


def address_of(port: int, token: str) -> str:
    """The URL that opens the console once."""
    return f"http://127.0.0.1:{port}/#token={token}"


@contextmanager
def redirect_file(port: int, token: str) -> Iterator[Path]:
    """The file, which exists as long as the context is open."""
    with TemporaryDirectory(prefix="tutti-ui-") as folder:
        path = Path(folder) / "console.html"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        with os.fdopen(descriptor, "w") as file:
            file.write(PAGE.format(address=address_of(port, token)))
        yield path
