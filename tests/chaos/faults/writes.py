"""What the operator writes, told apart by address alone; and the streams that it watches."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...harness.proxy import Call


class Write(StrEnum):
    """The kinds of writes on the closed list."""

    RESERVE = "create Reservation"
    ADOPT = "patch Reservation"
    BIND = "binding"
    HAND_OVER = "patch pod"
    RELEASE = "delete Reservation"
    GROUP_STATUS = "status"
    QUEUE_FINALIZER = "patch Queue"
    QUEUE_STATUS = "queue status"
    EVENT = "event"
    POD_STATUS = "pod status"
    EVICT = "eviction"
    MAKE_CLAIM = "create claim"
    PROTECT_CLAIM = "patch claim"
    CLAIM_STATUS = "claim status"
    SELECT_NODE = "patch claim of a volume"
    BIND_VOLUME = "patch volume"
    LEASE = "lease"
    OTHER = "other"


WORK = frozenset(Write) - {Write.LEASE}  # what a scenario makes it write; Leases follow the clock

_ADDRESSES = (
    (Write.RESERVE, r"POST .*/reservations"),
    (Write.ADOPT, r"PATCH .*/reservations/[^/]+"),
    (Write.RELEASE, r"DELETE .*/reservations/[^/]+"),
    (Write.BIND, r"POST .*/pods/[^/]+/binding"),
    (Write.HAND_OVER, r"PATCH .*/pods/[^/]+"),
    (Write.EVICT, r"POST .*/pods/[^/]+/eviction"),
    (Write.POD_STATUS, r"PATCH .*/pods/[^/]+/status"),
    (Write.GROUP_STATUS, r"PATCH .*/podgroups/[^/]+(/status)?"),  # of Volcano's, the object
    (Write.QUEUE_FINALIZER, r"PATCH .*/queues/[^/]+"),
    (Write.QUEUE_STATUS, r"PATCH .*/queues/[^/]+/status"),
    (Write.MAKE_CLAIM, r"POST .*/resourceclaims"),
    (Write.PROTECT_CLAIM, r"PATCH .*/resourceclaims/[^/]+"),
    (Write.CLAIM_STATUS, r"PATCH .*/resourceclaims/[^/]+/status"),
    (Write.SELECT_NODE, r"PATCH .*/persistentvolumeclaims/[^/]+"),
    (Write.BIND_VOLUME, r"PATCH .*/persistentvolumes/[^/]+"),
    (Write.EVENT, r"POST .*/events"),
    (Write.LEASE, r"[A-Z]+ .*/leases(/[^/]+)?"),
)


def write_of(call: Call) -> Write | None:
    """The kind of a write; None for a read."""
    if not call.is_write:
        return None
    text = f"{call.method} {call.path}"
    return next(
        (write for write, address in _ADDRESSES if re.fullmatch(address, text)), Write.OTHER
    )


def stream_of(call: Call) -> str:
    """The stream that a watch follows."""
    return f"{call.path}?{call.query.get('fieldSelector', '')}"
