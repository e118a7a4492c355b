"""Snapshots as files: written as trimmed API objects, and read back, dumps or not, by one decoder.

``write`` makes a v1 List that kubectl can read; ``read`` takes dumps, ``kubectl get -o yaml`` and
plain manifests. Only what a decision uses is in a Snapshot, so nothing else can be in a dump.
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
