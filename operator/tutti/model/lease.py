"""Who leads: the Lease object that all replicas share, as a value."""

from dataclasses import dataclass

LeaderTerm = str  # one unbroken time of leading; no two are ever the same


@dataclass(frozen=True, slots=True)
class Lease:
    """A coordination.k8s.io Lease; times are RFC 3339 with microseconds, as they were written.

    An empty holder has given it back. An empty version means that there is no such object yet.
    """

    holder: str = ""
    acquired: str = ""
    renewed: str = ""
    seconds: int = 0  # without a renewal, until others may take it
    transitions: int = 0
    version: str = ""  # metadata.resourceVersion

    @property
    def term(self) -> LeaderTerm:
        """The holder and when it acquired the Lease: what a Reservation is signed with."""
        return f"{self.holder}/{self.acquired}" if self.holder else ""
