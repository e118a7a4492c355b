"""The archive that krew unpacks and the manifest that names it; the same bytes every time."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
MANIFEST = "krew/tutti.yaml"
LAUNCHER = "krew/kubectl-tutti"
PROGRAM, PLAIN = 0o755, 0o644


def version_of(wheel: Path) -> str:
    """The version that a wheel's name says."""
    return wheel.name.split("-")[1]


def pack(wheel: Path, into: Path, source: Path = ROOT) -> Path:
    """Write the archive: launcher, wheel, and the versions that are installed beside it."""
    archive = into / f"kubectl-tutti-{version_of(wheel)}.tar.gz"
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        _add(tar, "LICENSE", source / "LICENSE", PLAIN)
        _add(tar, "constraints.txt", source / "constraints.txt", PLAIN)
        # kubectl looks for what completes words by a name of its own; krew unpacks no links.
        for name in ("kubectl-tutti", "kubectl_complete-tutti"):
            _add(tar, name, source / LAUNCHER, PROGRAM)
        _add(tar, wheel.name, wheel, PLAIN)
    return archive


def _add(tar: tarfile.TarFile, name: str, path: Path, mode: int) -> None:
    content = path.read_bytes()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def manifest(archive: Path, url: str = "", homepage: str = "", source: Path = ROOT) -> str:
    """The manifest of an archive that can be had below ``url``; what is not said stays open."""
    version = archive.name.removeprefix("kubectl-tutti-").removesuffix(".tar.gz")
    filled = {
        "version": version,
        "homepage": homepage,
        "url": url.rstrip("/"),
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }
    kept = (source / MANIFEST).read_text()
    lines = [line for line in kept.splitlines() if not line.startswith("#")]
    text = "\n".join([*lines, ""])
    for name, value in filled.items():
        text = text.replace(f"<{name}>", value or f"<{name}>")
    return text
