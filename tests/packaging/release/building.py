"""Wheel, sdist, chart, SBOM and krew archive of a commit, the same to the byte wherever built.

Made from what git has of the commit, not from the work tree; every time in them is that of the
commit, or SOURCE_DATE_EPOCH (https://reproducible-builds.org/specs/source-date-epoch/).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...harness.controlplane import build
from ..krew import packing
from . import dependencies, sbom
from .running import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUMS = "SHA256SUMS"
BILL = ".cdx.json"
MANIFEST = "tutti.yaml"  # krew wants it to have the name of the plugin


def release(
    folder: Path, commit: str = "HEAD", *, url: str = "", homepage: str = ""
) -> Sequence[Path]:
    """Build all of it into this folder, which is emptied first; answers the files.

    The addresses are for krew: of the folder where the archive will be, and of the project.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with TemporaryDirectory(prefix="tutti-release-") as place:
        source = source_of(commit, Path(place))
        epoch = int(
            os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct", commit)
        )
        _python(source, folder, epoch)
        _chart(source / "charts" / "tutti", folder, epoch)
        (wheel,) = folder.glob("*.whl")
        name, version, *_ = wheel.name.split("-")
        sbom.write(folder / f"{name}-{version}{BILL}", version)
        archive = packing.pack(wheel, folder, source)
        (folder / MANIFEST).write_text(packing.manifest(archive, url, homepage, source))
    made = sorted(folder.iterdir())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    (folder / SUMS).write_text("".join(lines))
    return [*made, folder / SUMS]


def commit_of(name: str = "HEAD") -> str:
    """The commit's hash, short."""
    return _git("rev-parse", "--short=12", name)


def changed() -> str:
    """What differs from the last commit, as git tells it; empty if nothing does."""
    return _git("status", "--porcelain", "--untracked-files=no")


def source_of(commit: str, place: Path) -> Path:
    """The folder of the commit's files; nothing that lies beside them is there."""
    archive = place / "source.tar"
    _git("archive", "--format=tar", f"--output={archive}", commit)
    with tarfile.open(archive) as files:
        files.extractall(place / "source", filter="data")
    return place / "source"


def _git(*words: str) -> str:
    project = dependencies.PROJECT
    return run("git", "-c", f"safe.directory={project}", *words, place=project).strip()


def _python(source: Path, folder: Path, epoch: int) -> None:
    command = (sys.executable, "-m", "hatchling", "build", "--directory", str(folder))
    run(*command, place=source, SOURCE_DATE_EPOCH=str(epoch))


def _chart(chart: Path, folder: Path, epoch: int) -> None:
    """By Helm itself; which writes the time of the day into it, so that is put right."""
    helm = str(build.binaries(("helm",))["helm"])
    run(helm, "package", str(chart), "--destination", str(folder))
    (archive,) = folder.glob("tutti-*.tgz")
    with tarfile.open(archive) as files:
        found = sorted(_members(files))
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as files:
        for name, body in found:
            about = tarfile.TarInfo(name)
            about.size, about.mtime, about.mode = len(body), epoch, 0o644
            files.addfile(about, io.BytesIO(body))
    archive.write_bytes(gzip.compress(written.getvalue(), mtime=epoch))


def _members(files: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for about in files.getmembers():
        body = files.extractfile(about)
        if body is not None:
            yield about.name, body.read()
