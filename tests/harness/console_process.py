"""``tutti ui`` as users run it: a process, and the file that it has a browser open."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS = 60.0


@contextmanager
def tutti_ui(folder: Path, *words: str, **environment: str) -> Iterator[tuple[str, int]]:
    """A console on a free port: the address of the file that opens it, and the process's id."""
    opened, script, printed = folder / "opened", folder / "browser.sh", folder / "printed"
    script.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    script.chmod(0o700)
    with printed.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tutti", "ui", "--port", "0", *words],
            env={**os.environ, "BROWSER": str(script), **environment},
            cwd=folder,
            stdout=output,
            stderr=output,
        )
    try:
        end = time.monotonic() + START_SECONDS
        while not opened.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"tutti ui does not start: {printed.read_text()}")
            time.sleep(0.05)
        yield opened.read_text().strip(), process.pid
    finally:
        process.terminate()
        process.wait(10)
