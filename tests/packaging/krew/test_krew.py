"""The manifest by krew's rules, the archive byte by byte, the launcher with a Python of straw.

That the real one installs and runs is tested with the wheel: tests/e2e/test_wheel.py.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from . import packing, rules

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://example.com/tutti"
WHEEL = "tutti-1.2.3-py3-none-any.whl"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    made = tmp_path / WHEEL
    made.write_bytes(b"a wheel")
    return made


def packed(wheel: Path) -> tuple[Path, str]:
    archive = packing.pack(wheel, wheel.parent)
    return archive, packing.manifest(archive, URL, URL)


def test_krew_would_take_the_manifest(wheel: Path) -> None:
    archive, text = packed(wheel)
    assert rules.complaints("tutti", text) == []
    spec = yaml.safe_load(text)["spec"]
    (platform,) = spec["platforms"]
    assert (spec["version"], platform["uri"]) == ("v1.2.3", f"{URL}/{archive.name}")
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert "store/tutti/v1.2.3/kubectl_complete-tutti" in spec["caveats"]


def test_the_manifest_as_it_is_kept_is_refused() -> None:
    """It cannot be published by mistake."""
    wrong = " ".join(rules.complaints("tutti", (packing.ROOT / packing.MANIFEST).read_text()))
    for field in ("spec.version", "spec.homepage", "uri", "sha256"):
        assert field in wrong


WRONG = {
    "kind: Plugin": ("kind: Plugins", "it is not a Plugin"),
    "name: tutti\n": ("name: other\n", "its name is not that of its file"),
    "  caveats:": ("  caveat:", "spec.caveat: krew knows no such field"),
    "See which": ("See\n\n    which", "spec.shortDescription"),
    "key: arch": ("key: libc", "selector"),
    "      bin: kubectl-tutti": ("      files: []", "bin: no program"),
    ".tar.gz": (".whl", "uri"),
}


@pytest.mark.parametrize("right", WRONG)
def test_what_krew_refuses_is_noticed(wheel: Path, right: str) -> None:
    wrong, said = WRONG[right]
    _, text = packed(wheel)
    assert right in text
    assert said in "\n".join(rules.complaints("tutti", text.replace(right, wrong)))


def test_the_archive_holds_what_the_launcher_needs_and_is_the_same_every_time(wheel: Path) -> None:
    archive, _ = packed(wheel)
    first = archive.read_bytes()
    assert packing.pack(wheel, wheel.parent).read_bytes() == first
    with tarfile.open(archive) as tar:
        modes = {entry.name: entry.mode for entry in tar if entry.isreg()}
    assert modes == {
        "LICENSE": 0o644,
        "constraints.txt": 0o644,
        "kubectl-tutti": 0o755,
        "kubectl_complete-tutti": 0o755,
        WHEEL: 0o644,
    }


def test_a_manifest_without_addresses_lacks_these_and_nothing_else(wheel: Path) -> None:
    archive, _ = packed(wheel)
    assert rules.complaints("tutti", packing.manifest(archive)) == [
        "spec.homepage: not an address",
        "uri: not the address of an archive",
    ]


def test_make_takes_the_addresses_from_its_command_line_alone() -> None:
    """A variable of that name in somebody's shell is not ours."""
    command = ["make", "--dry-run", "release"]
    run = partial(subprocess.run, cwd=packing.ROOT, capture_output=True, text=True, check=True)
    told = run([*command, "URL=u", "HOMEPAGE=h"]).stdout
    assert '--url "u" --homepage "h"' in told
    assert "--url" not in run(command, env={**os.environ, "URL": "u"}).stdout


# Stands for Python: makes what `-m venv` makes, and is then the environment's own.
STRAW = """#!/bin/sh
echo "$*" >>"$HOME/calls"
case "$*" in
  -c*) exit "${STRAW_IS_OLD:-0}" ;;
  "-m venv --clear "*)
    mkdir -p "$4/bin" && cp "$0" "$4/bin/python"
    for name in kubectl-tutti kubectl_complete-tutti; do
      printf '#!/bin/sh\\necho "%s: $*"\\n' $name >"$4/bin/$name" && chmod +x "$4/bin/$name"
    done ;;
  *) exit "${STRAW_HAS_NO_INDEX:-0}" ;;
esac
"""


class Installed:
    """The archive unpacked as krew does it, with links to it on a path of its own."""

    def __init__(self, wheel: Path, home: Path) -> None:
        self.home = home
        store = home / "store/tutti/v1.2.3"
        with tarfile.open(packed(wheel)[0]) as tar:
            tar.extractall(store, filter="data")
        (home / "bin").mkdir()
        for name in ("kubectl-tutti", "kubectl_complete-tutti"):
            (home / "bin" / name).symlink_to(f"../store/tutti/v1.2.3/{name}")
        straw = home / "bin/python3"
        straw.write_text(STRAW)
        straw.chmod(0o755)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Type a command, with the links on the path."""
        path = f"{self.home / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            command,
            env={"HOME": str(self.home), "PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def installations(self) -> int:
        """How often something was installed."""
        return (self.home / "calls").read_text().count("-m pip install")


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Installed:
    home = tmp_path / "a home"
    home.mkdir()
    return Installed(wheel, home)


def test_the_first_call_makes_the_environment_and_the_next_one_uses_it(
    installed: Installed,
) -> None:
    first = installed.run("kubectl-tutti", "status", "-n", "a b")
    assert (first.returncode, first.stdout) == (0, "kubectl-tutti: status -n a b\n")
    assert "making its environment" in first.stderr
    assert installed.run("kubectl-tutti", "top").stderr == ""
    assert installed.run("kubectl_complete-tutti", "to").stdout == "kubectl_complete-tutti: to\n"
    assert installed.installations == 1


def test_a_tab_never_installs_anything(installed: Installed) -> None:
    tab = installed.run("kubectl_complete-tutti", "st")
    assert (tab.returncode, tab.stdout, tab.stderr) == (0, "", "")
    assert not (installed.home / "calls").exists()


def test_what_is_missing_is_one_line_and_the_next_call_tries_again(installed: Installed) -> None:
    old = installed.run("kubectl-tutti", "top", STRAW_IS_OLD="1")
    assert (old.returncode, old.stderr.count("\n")) == (1, 1)
    assert "3.11 or later" in old.stderr
    alone = installed.run("kubectl-tutti", "top", STRAW_HAS_NO_INDEX="1")
    assert alone.returncode == 1
    assert alone.stderr.endswith("it could not be installed; is a package index in reach?\n")
    assert installed.run("kubectl-tutti", "top").stdout == "kubectl-tutti: top\n"
