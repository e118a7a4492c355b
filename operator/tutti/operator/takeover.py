"""What a new leader does before its first cycle: adopt the standing Reservations, then list again.

The order matters. Once a Reservation is adopted, its old leader can no longer delete it. So the
lists that follow show all pods that the old leader bound and all gangs that it finished.
"""

from collections.abc import Sequence
from typing import Any

from ..kube import list_watch
from ..kube.client import Source
from ..model.keys import LeaderTerm
from .cycle import Cycle


class Takeover:
    """Brings the cluster state up to date for a new term of this replica."""

    def __init__(
        self,
        cycle: Cycle,
        source: Source,
        *,
        reservations: list_watch.Reflector[Any, Any],
        gangs_and_pods: Sequence[list_watch.Reflector[Any, Any]],
    ) -> None:
        """``gangs_and_pods``: the kinds that declare gangs, then pending pods, then bound pods.

        PodGroups are listed after Reservations: a PodGroup whose deletion took its Reservation
        along is then not in the list.
        """
        self._cycle = cycle
        self._source = source
        self._reservations = reservations
        self._gangs_and_pods = gangs_and_pods
        self._adopted: LeaderTerm = ""

    async def adopt(self, term: LeaderTerm) -> None:
        """List the Reservations and sign them; pods that were listed before may lack bindings.

        Raises:
            errors.ApiError: not all could be adopted; begin again.
            Deposed: another replica leads by now.
        """
        if term == self._adopted:
            return
        await list_watch.relist(self._source, self._reservations)
        await self._cycle.begin(term)
        for feed in self._gangs_and_pods:
            feed.sink.expire()
        self._adopted = term

    async def complete(self, term: LeaderTerm) -> None:
        """Adopt, then list gangs and pods again, unless they were listed since the adoption.

        Raises:
            errors.ApiError: not done; begin again.
            Deposed: as of ``adopt``.
        """
        await self.adopt(term)
        for feed in self._gangs_and_pods:
            if not feed.sink.is_fresh:
                await list_watch.relist(self._source, feed)
