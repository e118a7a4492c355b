"""Programs that build a part of a release: quiet when they work, in full when they do not."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class ProgramError(Exception):
    """A program ended with an error; the message is what it said."""


def run(*command: str, place: Path | None = None, **environment: str) -> str:
    """What it prints; these variables are set beside those of this process.

    Raises:
        ProgramError: it ended with an error.
    """
    variables = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=place, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ProgramError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout
