"""Snapshots as files of trimmed API objects; one decoder reads dumps and other files.

``write`` makes a v1 List that kubectl can read. ``read`` takes dumps, the output of ``kubectl get
-o yaml`` and plain manifests. A Snapshot has only what decisions use, and so does a dump.
"""

from .decode import Objects, read
from .documents import BadFile, Text
from .header import DumpHeader, PlannerConfig, plan_record
from .write import write

__all__ = [
    "BadFile",
    "DumpHeader",
    "Objects",
    "PlannerConfig",
    "Text",
    "plan_record",
    "read",
    "write",
]
