"""What every API object says of itself: its name, and its times."""

from datetime import datetime

from .. import wire
from ..errors import BadObject


def named(obj: wire.Object) -> str:
    """The object's ``namespace/name``; an object without a name or uid cannot be identified."""
    metadata = obj.metadata
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    if not metadata.name or not metadata.uid:
        missing = "uid" if metadata.name else "name"
        kind = type(obj).__name__
        raise BadObject(name or f"a {kind} without a name", f"its metadata has no {missing}")
    return name


def seconds_of(moment: datetime | None) -> float:
    """A moment in seconds since the epoch; 0 where there is none."""
    return moment.timestamp() if moment is not None else 0.0
