"""A faulty road between a client and the API server: a reverse proxy on loopback with rules.

A rule is a match and an action; the first that matches decides, else the call is forwarded. It
runs on a thread of its own, so that a test can turn rules on and off while the operator works.
"""

from .actions import (
    PATIENCE,
    Action,
    Gate,
    Match,
    after,
    anything,
    before,
    delay,
    duplicate,
    duplicate_unanswered,
    echo,
    expire,
    lose,
    lose_answer,
    nth,
    refuse,
    watches,
    writes,
)
from .exchange import Call, Exchange
from .server import Proxy

__all__ = [
    "PATIENCE",
    "Action",
    "Call",
    "Exchange",
    "Gate",
    "Match",
    "Proxy",
    "after",
    "anything",
    "before",
    "delay",
    "duplicate",
    "duplicate_unanswered",
    "echo",
    "expire",
    "lose",
    "lose_answer",
    "nth",
    "refuse",
    "watches",
    "writes",
]
