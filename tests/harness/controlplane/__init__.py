"""A real Kubernetes control plane on loopback, built from pinned Go modules.

Read `pins` (what), `build` (from source into a cache), `components` (how each process is
called), `cluster` (start, use, stop). `make up`, `make demo` and the fixtures share all of it.
"""

from .cluster import ControlPlane
from .errors import ControlPlaneError
from .nodes import RUN_SECONDS, STOP_SECONDS, node_manifest

__all__ = ["RUN_SECONDS", "STOP_SECONDS", "ControlPlane", "ControlPlaneError", "node_manifest"]
