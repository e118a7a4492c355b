"""What the user is told before anything is created in a cluster of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from .cluster import DemoError
from .installing import NAMESPACE, manifests

if TYPE_CHECKING:
    from .cluster import Cluster
    from .installing import Found
    from .sizing import Sizes


class NoConsentError(DemoError):
    """The user has not agreed to what would be created."""


def proposal(cluster: Cluster, found: Found, sizes: Sizes) -> str:
    """Which cluster, what is created in it, what it costs, and how it ends; in rich's markup."""
    created = [
        f"  • {manifest['kind']} {manifest['metadata']['name']}" for manifest in manifests(found)
    ]
    pods = sum(sizes.workers.values()) + 1
    nodes = ", ".join(room.name for room in sizes.nodes)
    return f"""\
This plays on your own cluster:
  context [bold]{escape(cluster.context)}[/]
  server  [bold]{escape(cluster.server)}[/]
It creates
{escape(chr(10).join(created))}
  • in namespace {NAMESPACE}: 4 PodGroups, and 5 Jobs with at most {pods} pods
{escape(_operator(found))}
For about {sizes.run_seconds + 20} s the pods ask for up to {sizes.most_millis / 1000:.1f} CPUs on
{escape(nodes)}. They run `sleep` in {escape(sizes.image)}.
No node is touched. At the end, or on Ctrl-C, all of it is removed."""


def _operator(found: Found) -> str:
    if found.is_running:
        return f"Tutti is installed already ({found.deployment}): it is used as it is."
    return "Tutti runs here, as a process of the demo, with the rights of that ServiceAccount."
