"""The page's libraries: npm packages of which single files are part of the console.

`locks/console.json` pins them. The files are committed, with their licences, so that an install
needs neither npm nor Node; `python -m tests.packaging.release vendor` fetches them again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import dependencies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PINS = dependencies.PROJECT / "locks" / "console.json"
FOLDER = dependencies.PROJECT / "operator" / "tutti" / "console" / "static" / "vendor"


@dataclass(frozen=True)
class Library:
    """One npm package: its hash as npm states it, and which of its files go where."""

    name: str
    version: str
    licence: str  # as SPDX names it
    integrity: str
    files: Mapping[str, str]  # here, and in the package

    def component(self) -> dict[str, Any]:
        """Its entry of the bill of materials."""
        address = f"pkg:npm/{self.name}@{self.version}"
        return {
            "bom-ref": address,
            "type": "library",
            "name": self.name,
            "version": self.version,
            "purl": address,
            "licenses": [{"license": {"id": self.licence}}],
            "hashes": [{"alg": "SHA-512", "content": self._digest().hex()}],
        }

    def _digest(self) -> bytes:
        return base64.b64decode(self.integrity.removeprefix("sha512-"))

    def fetch(self) -> None:
        """Write its files again.

        Raises:
            ValueError: npm gives another package than the one that is pinned.
        """
        with tempfile.TemporaryDirectory() as place:
            command = ["npm", "pack", "--silent", f"{self.name}@{self.version}"]
            subprocess.run(command, cwd=place, check=True, capture_output=True)
            (packed,) = Path(place).glob("*.tgz")
            if hashlib.sha512(packed.read_bytes()).digest() != self._digest():
                raise ValueError(f"{self.name} {self.version} is not the package that was pinned")
            with tarfile.open(packed) as archive:
                archive.extractall(place, filter="data")
            for ours, theirs in self.files.items():
                shutil.copyfile(Path(place) / "package" / theirs, FOLDER / ours)


def libraries() -> Sequence[Library]:
    """All of them."""
    return [Library(**pin) for pin in json.loads(PINS.read_text())]
