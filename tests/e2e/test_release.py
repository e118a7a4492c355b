"""What `make release` builds: the same bytes again, and nothing of the machine it is built on."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.harness.controlplane import build
from tests.packaging.krew import packing, rules
from tests.packaging.release import building, dependencies, vendoring
from tutti import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = f"tutti-{__version__}"
ADDRESS = "https://example.com/tutti"
WHEEL = f"{NAME}-py3-none-any.whl"
KREW = f"kubectl-{NAME}.tar.gz"
MADE = {WHEEL, f"{NAME}.tar.gz", f"{NAME}.tgz", f"{NAME}.cdx.json", KREW, building.MANIFEST}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release's folder."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    building.release(folder)
    return folder


def _bill(folder: Path) -> Any:
    return json.loads((folder / f"{NAME}.cdx.json").read_text())


def test_a_release_is_all_that_its_page_lists_with_their_sums(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {*MADE, building.SUMS}
    done = subprocess.run(
        ["sha256sum", "--check", building.SUMS], cwd=made, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (dependencies.PROJECT / "docs/releases.md").read_text()
    listed = re.findall(r"(?m)^\| `(\S+)` \|", page)
    assert {name.replace("X", __version__) for name in listed} == {*MADE, building.SUMS}


def test_a_release_is_built_the_same_to_the_byte_again(made: Path, tmp_path: Path) -> None:
    building.release(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / building.SUMS).read_text() == (
        made / building.SUMS
    ).read_text()


def test_the_wheel_holds_the_package_and_the_crds_and_nothing_else(made: Path) -> None:
    with zipfile.ZipFile(made / f"{NAME}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
    kinds = (".py", ".typed", ".yaml")
    page = (".html", ".js", ".css", ".svg", ".txt")  # of the console, and licences of others
    assert all(name.startswith((f"{NAME}.dist-info/", "tutti/")) for name in names)
    static = {name for name in names if name.startswith("tutti/console/static/")}
    assert all(name.endswith(page) for name in static)
    assert {"tutti/console/static/index.html", "tutti/console/static/vendor/lit-html.js"} <= static
    ours = {name for name in names if name.startswith("tutti/")} - static
    assert all(name.endswith(kinds) for name in ours)
    assert {
        f"tutti/crds/{name}.yaml" for name in ("podgroup", "queue", "reservation", "topology")
    } <= set(names)


def test_the_sdist_holds_what_the_wheel_is_built_from(made: Path) -> None:
    with tarfile.open(made / f"{NAME}.tar.gz") as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}
    beside = {
        name for name in names if not name.startswith(("operator/tutti/", "charts/tutti/crds/"))
    }
    ours = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"}
    assert beside == ours | {"PKG-INFO"}


def test_helm_makes_of_the_archive_what_it_makes_of_the_chart(made: Path, tmp_path: Path) -> None:
    helm = str(build.binaries(("helm",))["helm"])

    def rendered(chart: Path) -> str:
        command = [helm, "template", "tutti", str(chart), "--include-crds"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    source = building.source_of("HEAD", tmp_path)
    assert rendered(made / f"{NAME}.tgz") == rendered(source / "charts/tutti")


def test_krew_finds_of_the_commit_what_its_manifest_names(made: Path, tmp_path: Path) -> None:
    """The addresses alone are left open: whoever publishes it has them."""
    text = (made / building.MANIFEST).read_text()
    (platform,) = yaml.safe_load(text)["spec"]["platforms"]
    assert platform["uri"] == f"<url>/{KREW}"
    assert platform["sha256"] == hashlib.sha256((made / KREW).read_bytes()).hexdigest()
    named = text.replace("<url>", ADDRESS).replace("<homepage>", ADDRESS)
    assert rules.complaints("tutti", named) == []
    source = building.source_of("HEAD", tmp_path)
    assert named == packing.manifest(made / KREW, ADDRESS, ADDRESS, source)
    with tarfile.open(made / KREW) as archive:
        archive.extractall(tmp_path / "store", filter="data")
    unpacked = tmp_path / "store"
    assert (unpacked / WHEEL).read_bytes() == (made / WHEEL).read_bytes()
    assert (unpacked / "kubectl-tutti").read_text() == (source / packing.LAUNCHER).read_text()
    assert (unpacked / platform["bin"]).stat().st_mode & 0o111


def test_the_bill_names_what_the_image_runs_with_versions_and_licences(made: Path) -> None:
    bill = _bill(made)
    components: Sequence[Mapping[str, Any]] = bill["components"]
    text = (dependencies.PROJECT / "locks/run.txt").read_text()
    locked = dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", text))
    found = {
        re.sub(r"[-_.]+", "-", component["name"]).lower(): component["version"]
        for component in components
    }
    page = {library.name: library.version for library in vendoring.libraries()}
    assert page
    assert found == locked | page
    assert all(component["licenses"] for component in components)
    about = bill["metadata"]["component"]
    assert (bill["bomFormat"], about["name"], about["version"]) == (
        "CycloneDX",
        "tutti",
        __version__,
    )
    assert {dependency["ref"] for dependency in bill["dependencies"]} >= {
        component["bom-ref"] for component in components
    }


def test_nothing_of_this_machine_is_in_the_bill(made: Path) -> None:
    text = json.dumps(_bill(made))
    assert "file://" not in text
    assert str(Path.home()) not in text
    assert "timestamp" not in text
