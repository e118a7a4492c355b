"""Controllers of other projects, as components of a control plane: real, with their webhooks.

Read `recipes` (what each needs and how it is called), then `manifests` (their CRDs and webhooks,
from the files of the module that the binary is built from).
"""

from .manifests import install
from .recipe import Recipe
from .recipes import RECIPES

__all__ = ["RECIPES", "Recipe", "install"]
