"""The Dockerfile's steps, one after the other, each on a root of its stage."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from . import base, root, sizes
from .dockerfile import Copy, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .dockerfile import Run

PROJECT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Layer:
    """What one step of the last stage added."""

    step: str
    megabytes: float


@dataclass(frozen=True, slots=True)
class Built:
    """The last stage, carried out."""

    stage: Stage
    root: Path
    layers: Sequence[Layer]
    base_megabytes: float
    base_packed_megabytes: float
    packed_megabytes: float  # of all layers together, as one


@contextmanager
def built(stages: Sequence[Stage]) -> Iterator[Built]:
    """Carry out all stages; the roots are gone at the end."""
    base.folder().mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="building-", dir=base.folder()) as place:
        context = _context(Path(place) / "context")
        roots: dict[str, Path] = {}
        layers: list[Layer] = []
        for stage in stages:
            here = roots[stage.name] = Path(place) / stage.name
            _copy_tree(base.clean(stage.suite), here)
            layers = [_carried_out(step, here, context, roots) for step in stage.steps]
        clean = base.clean(stages[-1].suite)
        before, after = sizes.picture(clean), sizes.picture(here)
        yield Built(
            stages[-1],
            here,
            layers,
            sizes.unpacked(before) / 1e6,
            sizes.packed(clean, before) / 1e6,
            sizes.packed(here, sizes.added(before, after)) / 1e6,
        )


def _carried_out(step: Copy | Run, here: Path, context: Path, roots: Mapping[str, Path]) -> Layer:
    print(f"{step}", flush=True)
    before, started = sizes.picture(here), time.monotonic()
    if isinstance(step, Copy):
        _copy(step, roots[step.stage] if step.stage else context, here)
    else:
        root.build(here, step.line)
    more = sizes.unpacked(sizes.added(before, sizes.picture(here))) / 1e6
    print(f"    {time.monotonic() - started:.1f} s, {more:.1f} MB", flush=True)
    return Layer(str(step), more)


def _context(folder: Path) -> Path:
    """What a builder is given of a clean clone: the files that git tracks, as they are now."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={PROJECT}", "ls-files", "-z"],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in listed.split("\0"):
        if name and (PROJECT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, folder / name)
    return folder


def _copy(step: Copy, source: Path, here: Path) -> None:
    """As COPY does: of a folder what is in it, of a file the file."""
    target = here / step.folder.strip("/")
    target.mkdir(parents=True, exist_ok=True)
    for name in step.sources:
        found = source / name.strip("/")
        if found.is_dir():
            _copy_tree(found, target)
        else:
            shutil.copy2(found, target)


def _copy_tree(source: Path, target: Path) -> None:
    """Links stay links, owners and times what they are."""
    target.mkdir(exist_ok=True)
    subprocess.run(["cp", "--archive", f"{source}/.", str(target)], check=True)
