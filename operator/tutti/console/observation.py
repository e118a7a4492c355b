"""What the console looks at, and what it asks the commands' own code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..kube.gang_sources import GangObject
from ..model.cluster import Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey

Record = Mapping[str, Any]


class WrongQuestion(Exception):  # noqa: N818 - named for the situation, as those of ``kube.errors`` are
    """What was asked cannot be answered; the sentence says why."""


class MissingKind(NamedTuple):
    """Objects that cannot be seen now: of which kind, the right that they need, and why."""

    kind: str
    right: str  # as RBAC writes it: list nodes
    sentence: str
    is_forbidden: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """The cluster as it is seen at one moment; a higher version is a later one."""

    version: int
    snapshot: Snapshot
    groups: Mapping[GangKey, GangObject] = field(default_factory=dict)  # empty for files
    missing: Sequence[MissingKind] = ()


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is supposed to be different."""

    add_nodes: Sequence[tuple[int, str]] = ()  # so many nodes like this one
    remove_nodes: Sequence[str] = ()
    priorities: Sequence[tuple[str, int]] = ()  # of gangs, by name
    manifest: str = ""  # objects to add, in YAML or JSON
    queues: Sequence[str] = ()  # as ``tutti plan --set-queue`` spells changes


class PlanAnswer(NamedTuple):
    """What ``tutti plan -o json`` prints, and the pictures and plans that it is about."""

    record: Record
    plans: Sequence[tuple[Snapshot, Plan]]  # one, or before and after


class Answers(Protocol):
    """The answers of the commands, as data. Every method may raise ``WrongQuestion``."""

    def gangs(self, observation: Observation) -> tuple[Record, Mapping[GangKey, Record]]:
        """The ``states`` and the ``gangs`` that ``tutti status -A -o json`` prints."""

    def queues(self, observation: Observation) -> Record:
        """What ``tutti queue -o json`` prints."""

    def plan(self, observation: Observation) -> PlanAnswer:
        """What ``tutti plan -o json`` prints."""

    def what_if(self, observation: Observation, changes: WhatIf) -> PlanAnswer:
        """What ``tutti plan -o json`` prints with what-if options."""

    def explain(
        self, observation: Observation, gang: GangKey, planned: Callable[[], None]
    ) -> Record:
        """What ``tutti explain GANG -o json`` prints; ``planned`` is called after each plan."""


class Cluster(Protocol):
    """What the server serves: a live cluster, or files."""

    title: str  # the API server, or the names of the files
    is_live: bool

    def observe(self) -> Observation:
        """The cluster as it is seen now."""

    async def changed(self, version: int) -> None:
        """Wait until there is something newer than this version."""

    async def events(self, gang: GangKey) -> Sequence[Record]:
        """The Events about a gang, the newest first. May raise ``WrongQuestion``."""

    async def operators(self) -> Sequence[Record]:
        """The figures of every replica of the operator. May raise ``WrongQuestion``."""


class Files:
    """A cluster as files describe it: it never changes."""

    is_live = False

    def __init__(self, title: str, snapshot: Snapshot) -> None:
        self.title = title
        self._observation = Observation(1, snapshot)

    def observe(self) -> Observation:
        """See ``Cluster.observe``."""
        return self._observation

    async def changed(self, version: int) -> None:
        """See ``Cluster.changed``: ``observe`` never has anything newer."""

    async def events(self, gang: GangKey) -> Sequence[Record]:  # noqa: ARG002 - of no gang
        """See ``Cluster.events``: files hold none that a decision uses."""
        return ()

    async def operators(self) -> Sequence[Record]:
        """See ``Cluster.operators``: a file has none."""
        return ()
