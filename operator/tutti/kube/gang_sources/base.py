"""What a gang source is: all that the rest of Tutti asks of it.

Separate from the sources so that each can be read, and added, by itself.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ...model.cluster import GangDeclaration, Role
from ...model.keys import GangKey, Uid
from ...model.resources import NOTHING, Resources
from .. import wire
from ..calls import Kind, Right

# Roles of one gang: with more that have a minimum each, counting them would take too long.
MOST_ROLES = 100


@dataclass(frozen=True, slots=True)
class GangObject(GangDeclaration):
    """An API object that declares a gang, as the API server has it now."""

    version: str = ""  # metadata.resourceVersion
    status: Mapping[str, Any] = field(default_factory=dict)  # compared before it is written
    owner: Uid | None = None  # of the pod that it was made for, and goes with
    # Name and uid of the job whose controller makes the pods once the status says that there is
    # room for them; None where nothing waits for that.
    job_awaiting_room: tuple[str, Uid] | None = None
    min_resources: Resources = NOTHING  # of all members that it needs, by its controller
    queue_if_exists: str = ""  # the queue that it is in if there is a Queue of this name
    # The roles of pods that never live beside those of another stage: the members are those of the
    # newest stage that has pods. None where the roles are always the same.
    stages: tuple[tuple[Role, ...], ...] = ()


class GangOutcome(NamedTuple):
    """What has become of a gang, for the status of what declares it."""

    generation: int  # of the object that all this is about
    is_whole: bool  # every needed member has its node, or has succeeded
    reason: str = ""  # why it waits, in one word; empty where a Reservation is carried out
    message: str = ""
    phase: str = ""  # of Tutti's PodGroup
    seen: int = 0  # members that exist, of these ...
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    needed: int = 1


class StatusWords(Protocol):
    """The status that an object is to have, in the words of its kind."""

    def __call__(
        self, outcome: GangOutcome, observed: Mapping[str, Any], now: str, *, keep_sentences: bool
    ) -> Mapping[str, Any]:
        """The status after this ``outcome``; ``observed`` is the one that the object has.

        ``keep_sentences`` leaves a sentence that says the same in other words.
        """


class StatusWriter(NamedTuple):
    """How Tutti writes the status of a source's objects."""

    right: Right  # of the merge patch
    # None where the words are those of Tutti's PodGroup, which ``reporting.drafts`` has.
    words: StatusWords | None = None
    # Whether others act upon it or write it, too: then Tutti writes it only where it binds pods.
    has_effects: bool = False


class JobPods(NamedTuple):
    """What a job says of the pods that its controller will make."""

    schedulers: frozenset[str]  # the names of schedulers in all of them
    roles: tuple[Role, ...] = ()  # with templates; none where one of these cannot be placed
    problem: str = ""  # then why


class JobKind(NamedTuple):
    """The jobs whose controller makes the pods of a gang once there is room for them."""

    get: Right
    model: type[wire.Object]
    pods_of: Callable[[Any, GangObject], JobPods]
    # The fields of the gang's status to merge so that the pods are made.
    status_with_room: Mapping[str, Any]


class GangSource(NamedTuple):
    """Where gangs come from: what declares them, and how a pod says which one it is in."""

    name: str
    # A pod is in the gang of the source with the lowest number of those that have one for it.
    precedence: int
    # The gang that a pod names by this source's own labels, fields or annotations, if any.
    gang_of: Callable[[wire.Pod], GangKey | None]
    # The kinds whose objects declare gangs; each decodes to a ``GangObject``, or to None.
    kinds: tuple[Kind[Any, Any], ...] = ()
    # What it needs beside lists and watches of its kinds.
    rights: frozenset[Right] = frozenset()
    # Whether a pod waits for an object that does not exist yet. Where it does not, the pod joins
    # the gang once the object is there, and starts alone before.
    is_awaited: bool = True
    # How Tutti writes the status of its objects; None where their own controller does.
    status: StatusWriter | None = None
    # Whether a controller, and no user, has made the gang that a pod names, as it does for every
    # pod that names none: it counts only for a pod that names no other. None: never.
    is_automatic: Callable[[wire.Pod], bool] | None = None
    # What makes the pods of gangs that wait for room, if any do.
    job_kind: JobKind | None = None
    # Whether the gang is a group of the name that the pod gives: then a pod starts alone only by
    # mistake where the source is not read, and says so.
    names_group: bool = False
    # Gangs of other sources that are the same gang: the pod's controller has made them as well.
    same_gangs: Callable[[wire.Pod], Iterable[GangKey]] | None = None
    # The role of a pod in a gang of this source; None: by Tutti's and Spark's labels.
    role_of: Callable[[wire.Pod], str] | None = None
    # The number of the run that a pod was made for: of the pods of a gang that live, only those of
    # the newest run are its members.
    run_of: Callable[[wire.Pod], int] | None = None
    # The field of pods that names the gang, as users write it: a pod that has it is placed only
    # where the source is read.
    pod_field: str = ""
    # Whether Tutti reads it only where the setting TUTTI_GANG_SOURCES has its name, which is then
    # the name of its CRD. The cluster need not have that CRD, now or ever.
    is_optional: bool = False
    # Of such a source: whether the setting has its name unless users say otherwise.
    is_default: bool = False
