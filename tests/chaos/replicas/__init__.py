"""Two operators before one API server, and a leader that is stopped in the middle of its work.

``pausing`` stops it between each pair of writes, lets the other take over, give back and plan
elsewhere, and wakes it again. ``python -m tests.chaos.replicas`` does so at every write, twice.
"""

from .pausing import MODES, Pausing, Victim

__all__ = ["MODES", "Pausing", "Victim"]
