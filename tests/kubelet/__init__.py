"""A test agent in the kubelet's place: it admits pods by their node's sum, runs and ends them.

kwok looks at one pod at a time, so no pod of its nodes is ever refused; here ``Kubelet.nodes``
makes nodes that kwok leaves alone. ``admission`` is the rule, ``agent`` the watch and the writes.
"""

from .admission import Ledger, Rejection
from .agent import FAIL_SECONDS, Kubelet

__all__ = ["FAIL_SECONDS", "Kubelet", "Ledger", "Rejection"]
