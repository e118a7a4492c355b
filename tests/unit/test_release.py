"""The lock files pin what is asked for and nothing else; the page of licences is up to date."""

import gzip
import re
from collections.abc import Mapping
from email.message import Message
from importlib import metadata
from typing import cast

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.release import dependencies, licences, locking, vendoring
from tests.packaging.release.running import ProgramError, run
from tutti import __version__

ROOT = dependencies.PROJECT
FILES = locking.files()
MIT = "License :: OSI Approved :: MIT License"
_LINE = re.compile(r"([a-z0-9-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")
# What may be in the image; a licence that is not among them is looked at before it is.
PERMISSIVE = {
    *("Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "PSF-2.0"),
    *("Zlib", "CC0-1.0", "MPL-2.0"),  # the last for files of certifi's that nobody changes
}


def _locked(name: str) -> Mapping[str, tuple[str, int]]:
    """Version and number of hashes of each package; the file has nothing else in it."""
    text = (ROOT / "locks" / name).read_text().replace(" \\\n   ", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [_LINE.fullmatch(line) for line in lines]
    assert None not in found, [line for line, at in zip(lines, found, strict=True) if at is None]
    return {at[1]: (at[2], at[3].count("sha256")) for at in found if at is not None}


def _constraints() -> Mapping[str, str]:
    lines = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()]
    return {canonicalize_name(name): version for name, version in lines}


@pytest.mark.parametrize("name", FILES)
def test_a_lock_file_says_names_versions_and_hashes_and_no_addresses(name: str) -> None:
    locked = _locked(name)
    assert list(locked) == sorted(locked)
    # One wheel for both kinds of machine, or one for each.
    assert {number for _, number in locked.values()} <= {1, len(locking.MACHINES)}


@pytest.mark.parametrize("name", FILES)
def test_a_lock_file_pins_the_versions_that_are_tested(name: str) -> None:
    constraints = _constraints()
    for package, (version, _) in _locked(name).items():
        assert constraints.get(package) == version == metadata.version(package)


@pytest.mark.parametrize("machine", locking.MACHINES)
@pytest.mark.parametrize("name", FILES)
def test_a_lock_file_holds_what_is_needed_and_nothing_else(name: str, machine: str) -> None:
    _, roots = FILES[name]
    assert set(_locked(name)) == set(dependencies.closure(roots, machine))


def test_needs_are_followed_for_the_images_python_and_say_whose_they_are() -> None:
    needed = dependencies.closure([Requirement("aiohttp"), Requirement("yarl")], "x86_64")
    assert needed["yarl"] == ["", "aiohttp"]
    assert "aiohttp" in needed["multidict"]
    assert "async-timeout" not in needed  # of Pythons before 3.11


def test_the_page_of_licences_is_what_the_packages_state() -> None:
    assert licences.PAGE.read_text() == licences.page(), "make lock writes it again"


def test_the_pages_libraries_are_small_and_have_their_licences_beside_them() -> None:
    """`python -m tests.packaging.release vendor` fetches them again, and compares their hashes."""
    pinned = {name for library in vendoring.libraries() for name in library.files}
    assert {path.name for path in vendoring.FOLDER.iterdir()} == pinned
    assert all(f"{one.name}.LICENSE.txt" in one.files for one in vendoring.libraries())
    assert all(one.licence in ("BSD-3-Clause", "MIT") for one in vendoring.libraries())
    page = vendoring.FOLDER.parent.rglob("*")
    size = sum(len(gzip.compress(path.read_bytes())) for path in page if path.is_file())
    assert size <= 500_000


def test_the_images_licences_are_ones_that_were_looked_at() -> None:
    for package in dependencies.closure(dependencies.of_the_image(), "x86_64"):
        stated = licences.licence(metadata.metadata(package))
        assert set(re.split(r" AND | OR ", stated)) <= PERMISSIVE, f"{package}: {stated}"


LICENCES: Mapping[str, tuple[Mapping[str, str], str]] = {
    "as an expression": ({"License-Expression": "MIT"}, "MIT"),
    "in words": ({"License": "Apache 2.0"}, "Apache-2.0"),
    "as a whole text, and a class": ({"License": "a\nb", "Classifier": MIT}, "MIT"),
    "as a class alone": ({"Classifier": MIT}, "MIT"),
}


@pytest.mark.parametrize("case", LICENCES)
def test_a_licence_is_understood_however_it_is_stated(case: str) -> None:
    stated, expected = LICENCES[case]
    assert licences.licence(_about(stated)) == expected


@pytest.mark.parametrize("stated", [{}, {"License": "a\nb"}, {"Classifier": "Typing :: Typed"}])
def test_a_package_that_states_no_licence_is_not_passed_over(stated: Mapping[str, str]) -> None:
    with pytest.raises(LookupError, match="one states no licence"):
        licences.licence(_about(stated))


def _about(stated: Mapping[str, str]) -> metadata.PackageMetadata:
    message = Message()
    for name, value in {"Name": "one", **stated}.items():
        message[name] = value
    return cast("metadata.PackageMetadata", message)


def test_the_newest_changes_are_those_of_this_version_or_to_come() -> None:
    """The chart's version is compared in test_chart.py."""
    newest = re.search(r"(?m)^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text())
    assert newest is not None
    assert newest[1] in ("Unreleased", __version__)


def test_a_program_that_fails_is_quoted() -> None:
    assert run("sh", "-c", "echo $WORD", WORD="quiet") == "quiet\n"
    with pytest.raises(ProgramError, match="\nwhy\n"):
        run("sh", "-c", "echo why >&2; exit 1")
