"""A folder that is the root of a system: commands run in it as in a container without an engine.

Mounts are made in a namespace of the command's own, so they end with it, however it ends. What a
builder takes from its machine is taken here, too, and nothing else: the way to the network
(/etc/resolv.conf, /etc/hosts, proxies, the mirrors' settings of apt and pip, trusted certificates).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a container runtime sets where an image says nothing.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BESIDE = "/mnt"  # in every root: where files of this machine are seen, in memory
ACCOUNT = "serviceaccount"  # of these, the folder that a pod finds where its account is mounted
_WAYS = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_INDEX = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST")
_TRUSTED = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")

# Arguments: the root, a folder whose files are laid beside it, the command.
_BUILD = """
set -e
root=$1 given=$2; shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/mnt"
cp -r "$given/." "$root/mnt/"
for file in /etc/resolv.conf /etc/hosts; do
  [ -e "$root$file" ] || : > "$root$file"
  mount --bind "$file" "$root$file"
done
exec chroot "$root" "$@"
"""
# As the chart starts it: nothing but /tmp can be written to, and an account is where pods find it,
# in /var/run, which is a link to /run. Before the command: the user.
_START = """
set -e
root=$1 given=$2 user=$3; shift 3
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
chmod 1777 "$root/tmp"
mount -t tmpfs tmpfs "$root/mnt"
cp -r "$given/." "$root/mnt/"
chmod -R a+rX "$root/mnt"
if [ -d "$root/mnt/serviceaccount" ]; then
  mount -t tmpfs tmpfs "$root/run"
  mkdir -p "$root/run/secrets/kubernetes.io"
  cp -r "$root/mnt/serviceaccount" "$root/run/secrets/kubernetes.io/"
  mount -o remount,ro "$root/run"
fi
exec chroot --userspec="$user" --groups="" "$root" "$@"
"""


class StepError(Exception):
    """A command in a root ended with an error."""


def build(root: Path, line: str) -> None:
    """Run a line as a builder does: as root, by /bin/sh, with a network."""
    with tempfile.TemporaryDirectory(prefix="tutti-image-") as beside:
        environment = {"PATH": PATH, "HOME": "/root", **_ways_out(Path(beside))}
        command = [*_namespace(_BUILD), str(root), beside, "/bin/sh", "-c", line]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StepError(f"{line}\nended with {done.returncode}:\n{_tail(done)}")


def starting(
    root: Path, user: tuple[int, int], beside: Path, *command: str, network: bool = False
) -> list[str]:
    """What starts a command as the chart does, with copies of the files of ``beside`` in /mnt."""
    named = f"{user[0]}:{user[1]}"
    return [*_namespace(_START, network=network), str(root), str(beside), named, *command]


def start(
    root: Path,
    user: tuple[int, int],
    files: Mapping[str, str],
    *command: str,
) -> str:
    """What a command prints that is started as the chart does, without any network."""
    with tempfile.TemporaryDirectory(prefix="tutti-image-") as beside:
        for name, text in files.items():
            (Path(beside) / name).write_text(text)
        done = subprocess.run(
            starting(root, user, Path(beside), *command),
            env={"PATH": PATH, "HOME": "/", "LOGNAME": "tutti"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise StepError(f"{' '.join(command)}\nended with {done.returncode}:\n{_tail(done)}")
    return done.stdout


def _namespace(script: str, *, network: bool = True) -> list[str]:
    unshare = shutil.which("unshare") or "unshare"
    own = ["--mount", *([] if network else ["--net"])]
    return [unshare, *own, "--propagation=private", "/bin/sh", "-c", script, "sh"]


def _ways_out(beside: Path) -> dict[str, str]:
    """The variables that say how this machine reaches mirrors; files they name go ``beside``."""
    variables = {name: os.environ[name] for name in (*_WAYS, *_INDEX) if name in os.environ}
    variables.setdefault("PIP_INDEX_URL", _index())
    trusted = next((os.environ[name] for name in _TRUSTED if os.environ.get(name)), "")
    if trusted and Path(trusted).is_file():
        shutil.copy(trusted, beside / "trusted.pem")
        variables["PIP_CERT"] = f"{BESIDE}/trusted.pem"
    if settings := _apt_settings():
        (beside / "apt.conf").write_text(settings)
        variables["APT_CONFIG"] = f"{BESIDE}/apt.conf"
    return variables


def _index() -> str:
    """The package index that this machine's pip is set to; pip's own default if to none."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "https://pypi.org/simple"


def _apt_settings() -> str:
    """How apt of this machine fetches: proxies, and what it puts up with from its mirrors."""
    if shutil.which("apt-config") is None:
        return ""
    dump = ["apt-config", "dump", "--no-empty", "--format", '%F "%v";%n', "Acquire"]
    return subprocess.run(dump, capture_output=True, text=True, check=False).stdout


def _tail(done: subprocess.CompletedProcess[str], lines: int = 30) -> str:
    return "\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()][-lines:])
