"""The data that the console shows, and the questions that it puts to the commands' code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..kube.gang_sources import GangObject
from ..model.cluster import Snapshot
from ..model.decisions import Plan
from ..model.keys import GangKey

Record = Mapping[str, Any]


class WrongQuestion(Exception):  # noqa: N818 - named for the situation, as those of ``kube.errors`` are
    """The question cannot be answered; the message says why."""


class MissingKind(NamedTuple):
    """A kind of objects that cannot be read now: the right that is missing, and the reason."""

    kind: str
    right: str  # in the words of RBAC: list nodes
    sentence: str
    is_forbidden: bool


@dataclass(frozen=True, slots=True)
class Observation:
    """The cluster as it is seen at one moment; a higher version is later."""

    version: int
    snapshot: Snapshot
    groups: Mapping[GangKey, GangObject] = field(default_factory=dict)  # empty for files
    missing: Sequence[MissingKind] = ()


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The changes of a what-if question."""

    add_nodes: Sequence[tuple[int, str]] = ()  # how many nodes, and the node that they are like
    remove_nodes: Sequence[str] = ()
    priorities: Sequence[tuple[str, int]] = ()  # of gangs, by name
    manifest: str = ""  # objects to add, in YAML or JSON
    queues: Sequence[str] = ()  # in the format of ``tutti plan --set-queue``
    objective: str = ""  # as ``tutti plan --objective``; empty: as it is
    preemption: str = ""  # as ``tutti plan --preemption``; empty: as it is


class PlanAnswer(NamedTuple):
    """What ``tutti plan -o json`` prints, and the Snapshots and plans behind it."""

    record: Record
    plans: Sequence[tuple[Snapshot, Plan]]  # one, or before and after


class Answers(Protocol):
    """The answers of the commands, as data. Every method may raise ``WrongQuestion``."""

    def gangs(self, observation: Observation) -> tuple[Record, Mapping[GangKey, Record]]:
        """The ``states`` and the ``gangs`` that ``tutti status -A -o json`` prints."""

    def room(self, observation: Observation) -> Record:
        """The ``nodes`` and the ``resources`` that ``tutti status -o json`` prints."""

    def settings(self) -> Record:
        """The settings of the planner: ``strategy``, ``objective`` and ``preemption``."""

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
    """What the server shows: a live cluster, or files."""

    title: str  # the API server, or the names of the files
    is_live: bool

    def observe(self) -> Observation:
        """The cluster as it is seen now."""

    async def changed(self, version: int) -> None:
        """Wait until something is newer than this version."""

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
        """See ``Cluster.events``; files have no Events that a decision uses."""
        return ()

    async def operators(self) -> Sequence[Record]:
        """See ``Cluster.operators``; files have none."""
        return ()
