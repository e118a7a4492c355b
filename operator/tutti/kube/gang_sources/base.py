"""What a gang source is: all that the rest of Tutti asks of it.

Separate from the sources so that each can be read, and added, by itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...model.cluster import GangDeclaration
from ...model.keys import GangKey, Uid
from .. import wire
from ..calls import Kind, Right


@dataclass(frozen=True, slots=True)
class GangObject(GangDeclaration):
    """An API object that declares a gang, as the API server has it now."""

    version: str = ""  # metadata.resourceVersion
    status: Mapping[str, Any] = field(default_factory=dict)  # compared before it is written
    owner: Uid | None = None  # of the pod that it was made for, and goes with


class GangSource(NamedTuple):
    """Where gangs come from: what declares them, and how a pod says which one it is in."""

    name: str
    # A pod is in the gang of the source with the lowest number of those that have one for it.
    precedence: int
    # The gang that a pod names by this source's own labels, fields or annotations, if any.
    gang_of: Callable[[wire.Pod], GangKey | None]
    # The kinds whose objects declare gangs; each decodes to a ``GangObject``.
    kinds: tuple[Kind[Any, GangObject], ...] = ()
    # What it needs beside lists and watches of its kinds.
    rights: frozenset[Right] = frozenset()
    # Whether a pod waits for an object that does not exist yet. Where it does not, the pod joins
    # the gang once the object is there, and starts alone before.
    is_awaited: bool = True
    # Whether Tutti writes the status of its objects. Where it does not, their own controller does.
    has_status: bool = False
    # Whether Tutti reads it only where the setting TUTTI_GANG_SOURCES has its name, which is then
    # the name of its CRD. The cluster need not have that CRD, now or ever.
    is_optional: bool = False
