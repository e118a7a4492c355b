"""The software bill of materials, CycloneDX in JSON, by cyclonedx-py.

It describes environments, so it is shown one: a new one that holds of each locked package what the
package states of itself, and nothing else, so that nothing of this machine is in the bill.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from . import dependencies, vendoring
from .running import run

_DYNAMIC = 'dynamic = ["version"]'
SCHEMA = SchemaVersion.V1_6  # what scanners of these days read


def write(path: Path, version: str) -> None:
    """Write the bill of what the image of this version of Tutti runs."""
    with TemporaryDirectory(prefix="tutti-sbom-") as place:
        environment = Path(place) / "environment"
        run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        (packages,) = environment.glob("lib/python3*/site-packages")
        for package in dependencies.closure(dependencies.of_the_image(), "x86_64"):
            _state(package, packages)
        asked = ("environment", "--output-reproducible", "--output-format=JSON", "--no-validate")
        about = ("--spec-version", SCHEMA.to_version(), "--mc-type=application")
        project = ("--pyproject", str(_project(Path(place), version)))
        python = str(environment / "bin" / "python")
        run(
            sys.executable,
            "-m",
            "cyclonedx_py",
            *asked,
            *about,
            *project,
            "--output-file",
            str(path),
            python,
        )
    _add_libraries_of_the_page(path)


def _add_libraries_of_the_page(path: Path) -> None:
    """Add what is in the wheel without being a Python package."""
    bill = json.loads(path.read_text())
    root = bill["metadata"]["component"]["bom-ref"]
    for library in vendoring.libraries():
        component = library.component()
        bill["components"].append(component)
        bill["dependencies"].append({"ref": component["bom-ref"]})
        (own,) = (dependency for dependency in bill["dependencies"] if dependency["ref"] == root)
        own["dependsOn"] = sorted([*own.get("dependsOn", ()), component["bom-ref"]])
    path.write_text(json.dumps(bill, indent=2) + "\n")


def validate(path: Path) -> None:
    """Compare a bill with CycloneDX's schema, which takes some ten seconds.

    Raises:
        ValueError: it breaks the schema.
    """
    if (problem := JsonStrictValidator(SCHEMA).validate_str(path.read_text())) is not None:
        raise ValueError(f"{path.name}: {problem}")


def _project(place: Path, version: str) -> Path:
    """Our pyproject.toml with the version in it, which hatchling would look up elsewhere."""
    text = (dependencies.PROJECT / "pyproject.toml").read_text()
    if _DYNAMIC not in text:
        raise LookupError(f"pyproject.toml: {_DYNAMIC} is not there any more")
    (place / "pyproject.toml").write_text(text.replace(_DYNAMIC, f'version = "{version}"'))
    return place / "pyproject.toml"


def _state(package: str, packages: Path) -> None:
    """Name, version, licence and needs of a package, as it is installed here."""
    name = metadata.metadata(package)["Name"].replace("-", "_")
    folder = packages / f"{name}-{metadata.version(package)}.dist-info"
    folder.mkdir()
    text = metadata.distribution(package).read_text("METADATA")
    if text is None:
        raise LookupError(f"{package} states nothing")
    (folder / "METADATA").write_text(text)
