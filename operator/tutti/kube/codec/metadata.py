"""The metadata of every API object: its name and its times."""

from datetime import UTC, datetime
from functools import lru_cache

from .. import wire
from ..errors import BadObject


def named(obj: wire.Object) -> str:
    """The ``namespace/name`` of an object.

    Raises:
        BadObject: the object has no name or no uid, so it cannot be identified.
    """
    metadata = obj.metadata
    name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
    if not metadata.name or not metadata.uid:
        missing = "uid" if metadata.name else "name"
        kind = type(obj).__name__
        raise BadObject(name or f"a {kind} without a name", f"its metadata has no {missing}")
    return name


def seconds_of(moment: datetime | None) -> float:
    """A moment in seconds since the epoch; 0 if there is none."""
    return 0.0 if moment is None else _timestamp(moment)


@lru_cache(maxsize=4096)
def _timestamp(moment: datetime) -> float:
    """The seconds since the epoch; many objects are created within a second, and share it."""
    return moment.timestamp()


def seconds_by_users(moment: datetime) -> float:
    """A moment that a user wrote, in seconds since the epoch; it is in UTC if it has no zone.

    Raises:
        ValueError, OverflowError: in UTC, it is not in the years 1 to 9999.
    """
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    datetime.fromtimestamp(seconds, UTC)
    return seconds
