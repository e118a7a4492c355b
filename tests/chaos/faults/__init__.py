"""The operator killed, and its road to the API server broken, at every write of one scenario.

``scenario`` is what happens in the cluster, ``trials`` which faults strike it when, ``arena`` the
control plane that all runs share, ``run`` one of them from a clean start to the judge's verdict.
``python -m tests.chaos.faults`` runs the whole series and prints the table.
"""

from .arena import Arena
from .run import Outcome
from .trials import Trial

__all__ = ["Arena", "Outcome", "Trial"]
