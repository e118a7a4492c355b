"""From pins to binaries: found if they exist, built from source if they do not.

`KUBEBUILDER_ASSETS` wins, then the cache; a warm call only looks at files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import cache, toolchain
from .errors import BuildError
from .pins import chosen_k8s, pins_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from .pins import Pin, Tool

_TAIL_LINES = 20
_QUIET_TICK_SECONDS = 30


def say(text: str) -> None:
    """Progress goes to stderr: stdout is for what a shell evaluates."""
    print(text, file=sys.stderr, flush=True)


def binaries(names: Collection[str] | None = None, *, k8s: str | None = None) -> Mapping[str, Path]:
    """The path of each named binary (all by default), built if it has to be."""
    return binaries_of(pins_for(chosen_k8s(k8s)), names)


def binaries_of(pins: Iterable[Pin], names: Collection[str] | None = None) -> Mapping[str, Path]:
    """The same of these pins."""
    paths: dict[str, Path] = {}
    for pin in pins:
        tools = [tool for tool in pin.tools if names is None or tool.name in names]
        missing = []
        for tool in tools:
            path = _existing(pin, tool)
            if path is None:
                missing.append(tool)
            else:
                paths[tool.name] = path
        if missing:
            paths |= _build(pin, missing)
    return paths


def existing(k8s: str) -> Mapping[str, Path]:
    """The binaries that are there already; nothing is built."""
    paths = {t.name: _existing(pin, t) for pin in pins_for(k8s) for t in pin.tools}
    return {name: path for name, path in paths.items() if path is not None}


def _existing(pin: Pin, tool: Tool) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    folders = [Path(assets)] if assets else []
    for folder in [*folders, cache.folder(pin)]:
        path = folder / tool.name
        if os.access(path, os.X_OK) and path.is_file():
            return path.absolute()
    return None


def _build(pin: Pin, tools: list[Tool]) -> dict[str, Path]:
    folder = cache.folder(pin)
    lock = folder.parent / f"{folder.name}.lock"
    waiting = f"{pin.name}: another build is under way, waiting for it"
    paths: dict[str, Path] = {}
    with cache.locked(lock, lambda: say(waiting)):
        folder.mkdir(exist_ok=True)
        for stale in folder.glob(".*"):
            stale.unlink()
        for tool in tools:
            # Another build may have made it while this one waited for the lock.
            paths[tool.name] = _existing(pin, tool) or _build_one(pin, tool, folder)
    return paths


def _build_one(pin: Pin, tool: Tool, folder: Path) -> Path:
    path, partial, log = (folder / n for n in (tool.name, f".{tool.name}", f".{tool.name}.log"))
    go = toolchain.go_for(pin.go_version)
    label = f"{tool.name} {pin.version}"
    usually = cache.usual_seconds(tool)
    say(f"building {label} from {pin.module}; usually takes {usually:.0f} s")
    command = [str(go), "build", *pin.arguments, "-o", str(partial), tool.package]
    started = time.monotonic()
    code = _run(command, pin.directory, log, label)
    seconds = time.monotonic() - started
    if code != 0:
        return _fallback(tool, _failure(label, code, log))
    partial.replace(path)
    megabytes = path.stat().st_size / 1e6
    module = f"{pin.module}@{pin.version}"
    record = cache.Record(module, round(seconds, 1), round(megabytes, 1))
    cache.add_record(folder, tool.name, record)
    log.unlink()
    say(f"built {label}: {seconds:.0f} s, {megabytes:.0f} MB")
    return path


def _run(command: list[str], directory: Path, log: Path, label: str) -> int:
    started = said_at = time.monotonic()
    tty = sys.stderr.isatty()
    with log.open("wb") as output:
        go = subprocess.Popen(
            command,
            cwd=directory,
            env=toolchain.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            while True:
                try:
                    return go.wait(timeout=1)
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                if tty:
                    print(f"\r  {label}: {now - started:.0f} s ", end="\r", file=sys.stderr)
                elif now - said_at >= _QUIET_TICK_SECONDS:
                    said_at = now
                    say(f"  {label}: {now - started:.0f} s")
        finally:
            if go.poll() is None:
                go.terminate()
                go.wait()


def _failure(label: str, code: int, log: Path) -> BuildError:
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
    return BuildError(f"{label} could not be built: go ended with {code}, saying\n{tail}")


def _fallback(tool: Tool, failure: BuildError) -> Path:
    path = shutil.which(tool.name) if tool.name == "etcd" else None
    if path is None:
        raise failure
    say(f"{failure}\nusing the system's {path} INSTEAD OF THE PINNED ONE")
    return Path(path)
