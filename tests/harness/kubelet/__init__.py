"""A test agent in the kubelet's place: it admits pods by their node's sum, runs and ends them.

kwok looks at one pod at a time, so no pod of its nodes is ever refused; here ``Kubelet.nodes``
makes nodes that kwok leaves alone. ``admission`` is the rule, ``agent`` the watch and the
writes, ``containers`` what runs in the pods: nothing, unless a test brings processes.
"""

from .admission import Ledger, Rejection
from .agent import Kubelet
from .containers import FAIL_SECONDS, Containers

__all__ = ["FAIL_SECONDS", "Containers", "Kubelet", "Ledger", "Rejection"]
