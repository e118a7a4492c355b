"""What every contract by which an application says its size comes to.

Separate so that each contract can stand by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ApplicationSize:
    """How many executors a gang begins with, how many it may have, and what each will ask for.

    ``most`` is None where there is no bound; ``template`` is that of the role; ``claims`` are those
    that all executors name: where their volumes can be reached is not part of it.
    """

    executors: int
    most: int | None
    template: Mapping[str, Any]
    claims: tuple[str, ...] = ()
