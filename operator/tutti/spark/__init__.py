"""Spark's properties, and what the applications that they describe will ask a cluster for.

Pure: texts and properties in, amounts and manifests out.
"""

from .asking import NEWEST, App, Asked, Part, Version, app
from .conf import BadProperty
from .declared import Declared
from .declaring import by_properties, group, said
from .manifests import gang_name, manifests
from .properties import BadProperties, read

__all__ = [
    "NEWEST",
    "App",
    "Asked",
    "BadProperties",
    "BadProperty",
    "Declared",
    "Part",
    "Version",
    "app",
    "by_properties",
    "gang_name",
    "group",
    "manifests",
    "read",
    "said",
]
