"""The interface of gang sources, which the rest of Tutti uses."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ...model.applications import ApplicationPod
from ...model.cluster import GangDeclaration, MadeFor, Role
from ...model.keys import ApiKind, GangKey, Uid
from ...model.resources import NOTHING, Resources
from .. import wire
from ..calls import Kind, Right

# The largest number of roles in a gang; counting more roles with minimums would take too long.
MOST_ROLES = 100


@dataclass(frozen=True, slots=True)
class GangObject(GangDeclaration):
    """An API object that declares a gang, as the API server last showed it."""

    version: str = ""  # metadata.resourceVersion
    status: Mapping[str, Any] = field(default_factory=dict)  # to compare with the new status
    # How many members of a gang under way have succeeded, as a status says that no user may write.
    succeeded_before: int = 0
    owner: Uid | None = None  # of the pod that owns the object; it is deleted with the pod
    # Name and uid of the job whose controller creates the pods once the status says that there is
    # room for them; None if no job waits.
    job_awaiting_room: tuple[str, Uid] | None = None
    min_resources: Resources = NOTHING  # of all needed members together, by its controller
    queue_if_exists: str = ""  # the queue that it is in if there is a Queue of this name
    # The roles of each stage, if the gang starts stage by stage. The pods of the newest stage that
    # has pods start together. Empty if the roles are always the same.
    stages: tuple[tuple[Role, ...], ...] = ()
    # Whether a stage needs room for all later stages, too, whose roles then have templates.
    holds_later_stages: bool = False


class GangOutcome(NamedTuple):
    """The state of a gang, for the status of the object that declares it."""

    generation: int  # of the object
    is_whole: bool  # every needed member has its node, or has succeeded
    reason: str = ""  # why it waits, in one word; empty if it has its room
    message: str = ""
    phase: str = ""  # as in Tutti's PodGroup
    seen: int = 0  # members that exist, of these ...
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    needed: int = 1


class StatusWords(Protocol):
    """Makes the status that an object should have, with the fields of its kind."""

    def __call__(
        self, outcome: GangOutcome, observed: Mapping[str, Any], now: str, *, keep_sentences: bool
    ) -> Mapping[str, Any]:
        """The status for this ``outcome``; ``observed`` is the status that the object has.

        With ``keep_sentences``, a sentence stays if the new one only says it in other words.
        """


class StatusWriter(NamedTuple):
    """How Tutti writes the status of the objects of a source."""

    right: Right  # for the merge patch
    # None if the status is like that of Tutti's PodGroup, which ``reporting.drafts`` makes.
    words: StatusWords | None = None
    # Whether other controllers act on the status or write it. Then Tutti writes it only for gangs
    # whose pods it binds.
    has_effects: bool = False


class JobPods(NamedTuple):
    """The pods that the controller of a job will create."""

    schedulers: frozenset[str]  # the scheduler names of all these pods
    roles: tuple[Role, ...] = ()  # with templates; empty if a template cannot be placed
    problem: str = ""  # why a template cannot be placed, in words


class JobKind(NamedTuple):
    """A kind of jobs whose controller creates the pods of a gang once there is room for them."""

    get: Right
    model: type[wire.Object]
    pods_of: Callable[[Any, GangObject], JobPods]
    # The fields to merge into the status of the gang so that the pods are created.
    status_with_room: Mapping[str, Any]


class GangSource(NamedTuple):
    """A source of gangs: the objects that declare them, and how a pod names its gang."""

    name: str
    # If several sources find a gang for a pod, the source with the lowest number counts.
    precedence: int
    # The gang that a pod names by the labels, fields or annotations of this source, if any.
    gang_of: Callable[[wire.Pod], GangKey | None]
    # The kinds whose objects declare gangs; each decodes to a ``GangObject``, or to None.
    kinds: tuple[Kind[Any, Any], ...] = ()
    # The rights that it needs beside list and watch of its kinds.
    rights: frozenset[Right] = frozenset()
    # Whether a pod waits for an object that does not exist yet. If not, the pod is outside the gang
    # until the object exists.
    is_awaited: bool = True
    # How Tutti writes the status of its objects; None if their own controller does.
    status: StatusWriter | None = None
    # Whether the gang that a pod names was made by a controller, which makes one for every pod that
    # names none. Such a gang counts only if the pod names no other gang. None: never.
    is_automatic: Callable[[wire.Pod], bool] | None = None
    # The jobs that create the pods of gangs that wait for room, if any.
    job_kind: JobKind | None = None
    # Whether a pod shows that it belongs to a gang of more pods. If such a source is not read, its
    # pods start alone, which is probably a mistake, and an Event says so.
    names_group: bool = False
    # Gangs of other sources that are the same gang; the controller of the pod makes them, too.
    same_gangs: Callable[[wire.Pod], Iterable[GangKey]] | None = None
    # The role of a pod in a gang of this source; None: by the labels of Tutti and Spark.
    role_of: Callable[[wire.Pod], str] | None = None
    # The number of the run that a pod was created for. Live pods are members only if they are of
    # the newest run.
    run_of: Callable[[wire.Pod], int] | None = None
    # The object of this source whose controller created a pod, if known. Pods of a deleted object
    # are no members of a new one of its name.
    made_for: Callable[[wire.Pod], MadeFor | None] | None = None
    # The field of pods that names the gang, as users write it. A pod with this field is placed only
    # if the source is read.
    pod_field: str = ""
    # The application that a pod names, if the gang is that of an application: its PodGroup is made
    # from the pod.
    application_of: Callable[[wire.Pod], ApplicationPod | None] | None = None
    # The kind of the gangs that pods name, if no object of it exists.
    named_kind: ApiKind | None = None
    # Whether Tutti reads the source only if the setting TUTTI_GANG_SOURCES has its name, which is
    # the name of its CRD, or of the annotation that it reads. The cluster need not have that CRD.
    is_optional: bool = False
    # For an optional source: whether the setting has its name by default.
    is_default: bool = False
