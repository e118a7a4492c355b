"""What mkdocs is told beyond mkdocs.yml: links that lead out of docs/ into the checkout.

Somebody who reads the pages in the checkout follows them; on the site they are their words alone.
One that leads nowhere is a warning, as for links between pages.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
LINK = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)(?:#[^)]*)?\)")
logger = logging.getLogger("mkdocs.plugins.site")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Take such links off a page; mkdocs calls it by its name."""
    return without_ways_out(markdown, page.file.src_uri)


def without_ways_out(markdown: str, source: str) -> str:
    """The page in the file ``source`` of docs/, with words for links to files outside."""

    def instead(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.group(2)))
        if not target.startswith(".."):
            return link.group(0)
        if not (DOCS / target).exists():
            logger.warning("%s links to %s, which does not exist", source, target)
        return link.group(1)

    return LINK.sub(instead, markdown)
