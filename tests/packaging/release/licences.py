"""The licences of what the image runs, as the packages state them: docs/dependencies.md."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from . import dependencies, vendoring

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = dependencies.PROJECT / "docs" / "dependencies.md"
_STATED = ("License-Expression", "License")  # where; the newer one first
# What packages of ours wrote before licences had SPDX expressions, and what is meant by it.
_MEANT = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
}
_HEAD = """\
# Dependencies and their licences

`make lock` writes this page, and a test compares it with the packages. The table has the Python
packages that the image contains beside Tutti, which is Apache-2.0. Their versions are those of
[`locks/run.txt`](../locks/run.txt), and their licences have the names of
[SPDX](https://spdx.org/licenses/). Two packages contain programs of other authors: PuLP contains
the engine CBC (EPL-1.0, as a file beside it says), and NumPy contains libraries of linear algebra,
with their licences. The licences of Debian's packages, Python among them, are under
`/usr/share/doc` of a Debian system.

"""

_PAGE = """\
## The page of the console

These files of npm packages are part of the Python package, with their licences beside them.
[`locks/console.json`](../locks/console.json) pins the packages by their hashes.
"""


def page() -> str:
    """The page's text."""
    return "\n".join([_HEAD + "\n".join(_table()), "", _PAGE, *_libraries(), ""])


def licence(about: metadata.PackageMetadata) -> str:
    """What a package states, as an SPDX expression.

    Raises:
        LookupError: it states nothing that is understood here.
    """
    stated = next((about[name] for name in _STATED if name in about), "")
    if not stated or "\n" in stated:
        prefix = "License :: OSI Approved :: "
        found = [one for one in about.get_all("Classifier") or () if one.startswith(prefix)]
        stated = found[0].removeprefix(prefix) if len(found) == 1 else ""
    if not stated:
        raise LookupError(f"{about['Name']} states no licence")
    return _MEANT.get(stated, stated)


def _libraries() -> Iterator[str]:
    yield "| package | version | licence | files |"
    yield "|---|---|---|---|"
    for library in vendoring.libraries():
        files = ", ".join(f"`{name}`" for name in library.files)
        yield f"| {library.name} | {library.version} | {library.licence} | {files} |"


def _table() -> Iterator[str]:
    needed = dependencies.closure(dependencies.of_the_image(), "x86_64")
    yield "| package | version | licence | for |"
    yield "|---|---|---|---|"
    for package, by in needed.items():
        users = ", ".join(name or "Tutti" for name in by)
        about = metadata.metadata(package)
        yield f"| {package} | {about['Version']} | {licence(about)} | {users} |"
