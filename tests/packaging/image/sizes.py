"""How large a root is, and what a step added to it: files by path, mode, size and time."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

# As a registry keeps a layer: a tar archive, by gzip.
_PACK = 'tar --create --null --no-recursion --directory "$1" --files-from "$2" | gzip -6 | wc -c'


class About(NamedTuple):
    """What tells a file from the one that was there before; bytes of regular files only."""

    mode: int
    size: int
    changed: int


def picture(root: Path) -> Mapping[str, About]:
    """Every file and link under this root, by its path there."""
    found = {}
    waiting = [str(root)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
                continue
            seen = entry.stat(follow_symlinks=False)
            size = seen.st_size if stat.S_ISREG(seen.st_mode) else 0
            path = entry.path.removeprefix(f"{root}/")
            found[path] = About(seen.st_mode, size, seen.st_mtime_ns)
    return found


def added(before: Mapping[str, About], after: Mapping[str, About]) -> dict[str, About]:
    """What is new or other than it was: what a layer holds."""
    return {path: about for path, about in after.items() if before.get(path) != about}


def unpacked(files: Mapping[str, About]) -> int:
    """Bytes of these files."""
    return sum(about.size for about in files.values())


def packed(root: Path, paths: Collection[str]) -> int:
    """Bytes of these files as one layer of a registry."""
    with tempfile.NamedTemporaryFile() as listed:
        listed.write(b"".join(os.fsencode(path) + b"\0" for path in sorted(paths)))
        listed.flush()
        command = ["/bin/sh", "-c", _PACK, "sh", str(root), listed.name]
        return int(subprocess.run(command, check=True, capture_output=True).stdout)
