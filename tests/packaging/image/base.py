"""A clean Debian in the place of the base image, made by debootstrap once and kept in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from ...harness.controlplane import cache
from . import root

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 1200  # seconds
MIRROR = "http://deb.debian.org/debian"
# As in the image: what is installed there comes from these.
_SOURCES = """\
deb {mirror} {suite} main
deb {mirror} {suite}-updates main
deb {mirror}-security {suite}-security main
"""
_UPDATE = (
    "mkdir -p /mnt/lists/partial && "
    "apt-get -q -o Dir::State::Lists=/mnt/lists -o APT::Update::Error-Mode=any update"
)
_NEEDED = ("debootstrap", "unshare", "chroot")


class CannotCheckError(Exception):
    """This machine cannot make such a root; the sentence says what it lacks."""


def clean(suite: str) -> Path:
    """The root of a clean Debian of this release.

    Raises:
        CannotCheckError: it is not there and cannot be made here.
    """
    if os.geteuid() != 0:
        raise CannotCheckError("it needs root, for debootstrap and chroot: sudo make image-check")
    for program in _NEEDED:
        if shutil.which(program) is None:
            package = "debootstrap" if program == "debootstrap" else "util-linux and coreutils"
            raise CannotCheckError(f"it needs {program}: apt-get install {package}")
    place = folder() / f"debian-{suite}"
    with cache.locked(place.with_suffix(".lock"), lambda: print("waiting for another check")):
        if not place.exists():
            _make(suite, place)
    _try(place)
    return place


def folder() -> Path:
    """Where roots are kept."""
    return cache.root().parent / "image"


def _try(place: Path) -> None:
    """See that commands run in the root and reach what is to be installed; it stays as it is."""
    try:
        root.build(place, _UPDATE)
    except root.StepError as problem:
        raise CannotCheckError(f"nothing can be installed in its root: {problem}") from problem


def _make(suite: str, place: Path) -> None:
    print(f"making a clean Debian {suite} in {place} (once, about two minutes)", flush=True)
    partial, log = place.with_suffix(".partial"), place.with_suffix(".log")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["debootstrap", "--variant=minbase", suite, str(partial), MIRROR]
    try:
        with log.open("wb") as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=PATIENCE,
            )
    except subprocess.TimeoutExpired as problem:
        raise CannotCheckError(f"debootstrap took more than {PATIENCE} s") from problem
    if done.returncode != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
        raise CannotCheckError(f"debootstrap ended with {done.returncode}:\n{end}")
    sources = _SOURCES.format(mirror=MIRROR, suite=suite)
    (partial / "etc/apt/sources.list").write_text(sources)
    for left in (partial / "var/cache/apt/archives").glob("*.deb"):
        left.unlink()
    partial.replace(place)
