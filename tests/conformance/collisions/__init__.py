"""How often two schedulers put pods onto the same room, and what becomes of it.

No scheduler sees what another decides before it is written. ``run`` has Tutti, or a second
kube-scheduler, start gangs on nodes where kube-scheduler binds ordinary pods at full speed.
"""

from .load import OWN, SHARED, Load
from .running import Figures, Run, beside_tutti, two_kube_schedulers

__all__ = ["OWN", "SHARED", "Figures", "Load", "Run", "beside_tutti", "two_kube_schedulers"]
