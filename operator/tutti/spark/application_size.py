"""The size of an application's gang, which every contract for declaring it returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ApplicationSize:
    """How many executors a gang begins with, how many it may have, and what each requests.

    ``most`` is None if there is no bound. ``template`` is the template of the role. ``claims`` are
    the volume claims that all executors name; the template does not say from which nodes their
    volumes can be reached.
    """

    executors: int
    most: int | None
    template: Mapping[str, Any]
    claims: tuple[str, ...] = ()
