"""Spark's properties, and what the applications that they describe will ask a cluster for.

All but ``pod_group_creator`` is pure: texts and properties in, amounts and manifests out.
"""

from .application_size import ApplicationSize
from .conf import BadProperty
from .gang_size import by_properties, declared_size, group
from .manifests import gang_name, manifests
from .properties import BadProperties, read
from .resources import NEWEST, Part, PodResources, SparkApplication, Version, app

__all__ = [
    "NEWEST",
    "ApplicationSize",
    "BadProperties",
    "BadProperty",
    "Part",
    "PodResources",
    "SparkApplication",
    "Version",
    "app",
    "by_properties",
    "declared_size",
    "gang_name",
    "group",
    "manifests",
    "read",
]
