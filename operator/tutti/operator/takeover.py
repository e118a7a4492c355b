"""What a new leader does before its first decision: adopt what stands, then look afresh.

Separate from the election, which knows nothing of Reservations, and from the cycle, which trusts
the cluster state. The order is what counts: once a Reservation is adopted its old leader can
delete it no more, so whatever that one bound and finished before is in the lists that come after.
"""

from collections.abc import Sequence
from typing import Any

from ..kube import list_watch
from ..kube.client import Source
from ..model.keys import LeaderTerm
from .cycle import Cycle


class Takeover:
    """Brings the cluster state up to a term of ours."""

    def __init__(
        self,
        cycle: Cycle,
        source: Source,
        *,
        reservations: list_watch.Reflector[Any, Any],
        gangs_and_pods: Sequence[list_watch.Reflector[Any, Any]],
    ) -> None:
        """``gangs_and_pods``: what declares gangs, then the pending pods, then the bound ones.

        A PodGroup is listed after the Reservations: one that has taken its own along is not there.
        """
        self._cycle = cycle
        self._source = source
        self._reservations = reservations
        self._gangs_and_pods = gangs_and_pods
        self._adopted: LeaderTerm = ""

    async def adopt(self, term: LeaderTerm) -> None:
        """List the Reservations and sign them; pods listed before may lack what was bound since.

        Raises:
            errors.ApiError: not all could be adopted; begin again.
            Deposed: somebody else leads by now.
        """
        if term == self._adopted:
            return
        await list_watch.relist(self._source, self._reservations)
        await self._cycle.begin(term)
        for feed in self._gangs_and_pods:
            feed.sink.expire()
        self._adopted = term

    async def complete(self, term: LeaderTerm) -> None:
        """Adopt, and list PodGroups and pods again unless that has happened since.

        Raises:
            errors.ApiError: not done; begin again.
            Deposed: as of ``adopt``.
        """
        await self.adopt(term)
        for feed in self._gangs_and_pods:
            if not feed.sink.is_fresh:
                await list_watch.relist(self._source, feed)
