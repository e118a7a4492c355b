"""axe-core, which finds what keeps people from using a page: one pinned npm package, in the cache.

It is fetched for tests alone, and is part of nothing that is shipped (MPL-2.0).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..controlplane import cache
from .chromium import unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .driver import Page

PACKAGE, VERSION = "axe-core", "4.14.1"
INTEGRITY = (
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NP"
    "jCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
SERIOUS = ("serious", "critical")
RUN = """axe.run(document, {resultTypes: ['violations']})
  .then((found) => found.violations.flatMap((one) =>
    one.nodes.map((node) => [one.impact, `${one.id}: ${one.help}: ${node.html.slice(0, 160)}: ` +
      (node.failureSummary ?? '')])))
  .then(JSON.stringify)"""


def script() -> str:
    """The source of axe-core, fetched if the cache has none.

    Raises:
        NoBrowser: it cannot be had.
    """
    path = cache.root().parent / f"axe-core-{VERSION}.js"
    with cache.locked(path.parent / f"{path.name}.lock", lambda: None):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".axe-") as partial:
                unpack(Path(partial), PACKAGE, VERSION, INTEGRITY)
                (Path(partial) / "package" / "axe.min.js").replace(path)
    return path.read_text()


async def findings(page: Page, source: str) -> Sequence[str]:
    """What axe-core finds serious or critical on the page as it is."""
    if not await page.evaluate("typeof axe !== 'undefined'"):
        await page.send("Runtime.evaluate", expression=source)
    found = json.loads(await page.evaluate(RUN))
    return [sentence for impact, sentence in found if impact in SERIOUS]
