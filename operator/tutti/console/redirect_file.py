"""The file that opens the console: a page that leads to it with the token, for its owner alone.

A command line can be read by all users of a machine; a file of mode 0600 cannot. The token stands
behind a # of the address, which browsers send to nobody.
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
    """The address that opens the console once."""
    return f"http://127.0.0.1:{port}/#token={token}"


@contextmanager
def redirect_file(port: int, token: str) -> Iterator[Path]:
    """The file, for as long as the context is open."""
    with TemporaryDirectory(prefix="tutti-ui-") as folder:
        path = Path(folder) / "console.html"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        with os.fdopen(descriptor, "w") as file:
            file.write(PAGE.format(address=address_of(port, token)))
        yield path
