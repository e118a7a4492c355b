"""Spark's properties, and the pods that the applications they describe will need.

Except ``pod_group_creator``, all modules are pure: they turn texts and properties into amounts and
manifests.
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
