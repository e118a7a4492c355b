"""Two operators before one API server, and a leader that is stopped in the middle of its work.

``pausing`` stops it between each pair of writes, lets the other take over, give back and plan
elsewhere, and wakes it again. ``python -m tests.chaos.replicas`` does so at every write, twice.
"""

from .claimed import Claimed
from .pausing import MODES, Pausing, Victim, evicts
from .preempting import Preempting
from .scene import Scene

__all__ = ["MODES", "Claimed", "Pausing", "Preempting", "Scene", "Victim", "evicts"]
