"""Operators that break one promise on purpose, so that the judge can be seen to notice.

A mutant is a list of replacements in a copy of `operator/tutti`, made when a test runs: where the
code has moved on, planting it is an error, so that no mutant rots into the unmutated operator.
"""

from .catalogue import MUTANTS
from .planting import Mutant, Patch, RottenError, plant, printed

__all__ = ["MUTANTS", "Mutant", "Patch", "RottenError", "plant", "printed"]
