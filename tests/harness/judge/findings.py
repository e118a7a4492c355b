"""What the judge says: violations, and what is worth knowing but breaks no promise."""

from dataclasses import dataclass
from enum import StrEnum


class Promise(StrEnum):
    """The promises that are judged."""

    WHOLE = "P1 whole or nothing"
    CAPACITY = "P2 no over-commit"
    HANDS_OFF = "P8 hands off"
    RESERVED_FIRST = "reserved before bound"
    LIMITS = "limits of queues"
    STOPS = "stops of queues"
    DOMAINS = "domains of the network"
    ENDS = "no pod ends for a gang that does not start"
    PROTECTED = "no pod ends whose gang a budget or a Job protects, and no gang by half"
    NAMED_FIRST = "named before evicted"
    DEVICES = "devices of claims"
    VOLUMES = "volumes of claims"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found; ``revision`` is None where the audit log alone told of it."""

    promise: Promise
    subject: str
    sentence: str
    revision: int | None = None

    def __str__(self) -> str:
        """Put promise, revision and sentence on one line."""
        where = "" if self.revision is None else f" @{self.revision}"
        return f"[{self.promise}{where}] {self.sentence}"


Violation = Finding


@dataclass(frozen=True, slots=True)
class Findings:
    """What one promise's judging gives; joined into the Verdict."""

    violations: tuple[Finding, ...] = ()
    collisions: tuple[Finding, ...] = ()
    broken: tuple[Finding, ...] = ()
    unfinished: tuple[Finding, ...] = ()
    unproved: tuple[Finding, ...] = ()
    judged: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings over one history.

    ``bindings``, ``gangs``, ``writes`` and ``charges`` count what was judged, so that nothing
    judged can be told from nothing wrong.
    """

    violations: tuple[Finding, ...]
    collisions: tuple[Finding, ...] = ()  # over-commit by another scheduler, and the like
    broken: tuple[Finding, ...] = ()  # gangs that lost members after their commit
    unfinished: tuple[Finding, ...] = ()  # at rest: partly bound, or what no pod uses is held
    unproved: tuple[Finding, ...] = ()  # lies in a gap of the watch
    bindings: int = 0
    gangs: int = 0
    writes: int = 0
    charges: int = 0  # that Tutti has raised while there were queues
    ends: int = 0  # evictions for claims
    protections: int = 0  # budgets and Jobs of the pods that claims have evicted
    domains: int = 0  # Reservations and bindings of gangs with rules on domains
    devices: int = 0  # allocations by Tutti, and its bindings of pods with claims for devices
    volumes: int = 0  # what it wrote of volumes, and its bindings of pods with claims for volumes

    def of(self, promise: Promise) -> tuple[Finding, ...]:
        """Give the violations of one promise."""
        return tuple(finding for finding in self.violations if finding.promise is promise)

    def summary(self) -> str:
        """Say everything, one finding a line."""
        head = (
            f"{len(self.violations)} violations in {self.bindings} bindings by Tutti, "
            f"{self.gangs} gangs and {self.writes} writes"
        )
        sections = (
            ("violations", self.violations),
            ("collisions with others", self.collisions),
            ("broken after the commit", self.broken),
            ("not at rest", self.unfinished),
            ("not provable, the watch has a gap", self.unproved),
        )
        lines = [head]
        for title, section_findings in sections:
            if section_findings:
                lines += [f"{title}:", *(f"  {finding}" for finding in section_findings)]
        return "\n".join(lines)


def assert_clean(verdict: Verdict, *, allow_gaps: bool = False) -> None:
    """Raise AssertionError unless no promise was broken, and all could be judged."""
    if verdict.violations or (verdict.unproved and not allow_gaps):
        raise AssertionError(verdict.summary())
