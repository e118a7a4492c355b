"""The one control plane per checkout that outlives the command which started it: `up`, `down`.

A file in the cache, named after the checkout's path, points to its directory; it is written
before the first process starts, so `down` finds what an interrupted `up` left.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import cache
from .build import say
from .cluster import ControlPlane
from .errors import ControlPlaneError
from .pins import chosen_k8s

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_CHECKOUT = Path(__file__).resolve().parents[3]


def up(components: Collection[str], k8s: str | None) -> ControlPlane:
    """The running control plane of this checkout, started if there is none."""
    with _pointer() as pointer:
        plane = _running(pointer)
        if plane is not None and plane.is_alive:
            return _same(plane, components, k8s)
        if plane is not None:
            say("a process of the control plane is gone: starting a new one")
        _down(pointer)
        directory = Path(tempfile.mkdtemp(prefix="tutti-control-plane-"))
        cache.write(pointer, str(directory))
        try:
            return ControlPlane.start(directory, components=components, k8s=k8s, detached=True)
        except BaseException:
            _down(pointer)
            raise


def down() -> bool:
    """Whether there was a control plane of this checkout; there is none any more."""
    with _pointer() as pointer:
        return _down(pointer)


def _same(plane: ControlPlane, components: Collection[str], k8s: str | None) -> ControlPlane:
    asked = (chosen_k8s(k8s), tuple(sorted(components)))
    if asked != (plane.k8s, plane.components):
        message = (
            f"a control plane of Kubernetes {plane.k8s} with {', '.join(plane.components)} runs "
            f"already; {asked[0]} with {', '.join(asked[1])} was asked for: `make down` first"
        )
        raise ControlPlaneError(message)
    return plane


@contextmanager
def _pointer() -> Iterator[Path]:
    name = hashlib.sha256(str(_CHECKOUT).encode()).hexdigest()[:12]
    pointer = cache.root() / "running" / name
    waiting = "another `up` or `down` of this checkout is under way, waiting for it"
    with cache.locked(pointer.with_suffix(".lock"), lambda: say(waiting)):
        yield pointer


def _running(pointer: Path) -> ControlPlane | None:
    try:
        return ControlPlane.attach(Path(pointer.read_text()))
    except FileNotFoundError:
        return None


def _down(pointer: Path) -> bool:
    if not pointer.exists():
        return False
    plane = _running(pointer)
    if plane is not None:
        plane.stop()
    shutil.rmtree(pointer.read_text(), ignore_errors=True)
    pointer.unlink()
    return True
