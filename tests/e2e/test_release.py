"""What `make release` builds: the same bytes again, and nothing of the machine it is built on."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.controlplane import build
from tests.release import building, dependencies
from tutti import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = f"tutti-{__version__}"
MADE = {f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz", f"{NAME}.tgz", f"{NAME}.cdx.json"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release's folder."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    building.release(folder)
    return folder


def _bill(folder: Path) -> Any:
    return json.loads((folder / f"{NAME}.cdx.json").read_text())


def test_a_release_is_wheel_sdist_chart_and_bill_with_their_sums(made: Path) -> None:
    assert {path.name for path in made.iterdir()} == {*MADE, building.SUMS}
    done = subprocess.run(
        ["sha256sum", "--check", building.SUMS], cwd=made, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_release_is_built_the_same_to_the_byte_again(made: Path, tmp_path: Path) -> None:
    building.release(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere" / building.SUMS).read_text() == (
        made / building.SUMS
    ).read_text()


def test_the_wheel_holds_the_package_and_the_crds_and_nothing_else(made: Path) -> None:
    with zipfile.ZipFile(made / f"{NAME}-py3-none-any.whl") as wheel:
        names = wheel.namelist()
    kinds = (".py", ".typed", ".yaml")
    assert all(name.startswith((f"{NAME}.dist-info/", "tutti/")) for name in names)
    assert all(name.endswith(kinds) for name in names if name.startswith("tutti/"))
    assert {"tutti/crds/podgroup.yaml", "tutti/crds/reservation.yaml"} <= set(names)


def test_the_sdist_holds_what_the_wheel_is_built_from(made: Path) -> None:
    with tarfile.open(made / f"{NAME}.tar.gz") as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}
    beside = {name for name in names if not name.startswith(("operator/tutti/", "crds/"))}
    ours = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"}
    assert beside == ours | {"PKG-INFO"}


def test_helm_makes_of_the_archive_what_it_makes_of_the_chart(made: Path, tmp_path: Path) -> None:
    helm = str(build.binaries(("helm",))["helm"])

    def rendered(chart: Path) -> str:
        command = [helm, "template", "tutti", str(chart), "--include-crds"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    source = building.source_of("HEAD", tmp_path)
    assert rendered(made / f"{NAME}.tgz") == rendered(source / "charts/tutti")


def test_the_bill_names_what_the_image_runs_with_versions_and_licences(made: Path) -> None:
    bill = _bill(made)
    components: Sequence[Mapping[str, Any]] = bill["components"]
    text = (dependencies.PROJECT / "locks/run.txt").read_text()
    locked = dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", text))
    found = {re.sub(r"[-_.]+", "-", one["name"]).lower(): one["version"] for one in components}
    assert found == locked
    assert all(one["licenses"] for one in components)
    about = bill["metadata"]["component"]
    assert (bill["bomFormat"], about["name"], about["version"]) == (
        "CycloneDX",
        "tutti",
        __version__,
    )
    assert {one["ref"] for one in bill["dependencies"]} >= {one["bom-ref"] for one in components}


def test_nothing_of_this_machine_is_in_the_bill(made: Path) -> None:
    text = json.dumps(_bill(made))
    assert "file://" not in text
    assert str(Path.home()) not in text
    assert "timestamp" not in text
