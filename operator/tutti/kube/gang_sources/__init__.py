"""The gang sources, one module for each. To add a source, add its module."""

from collections.abc import Collection, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from ...model.applications import ApplicationPod
from ...model.cluster import MadeFor
from ...model.keys import POD_GROUP, ApiKind, GangKey
from .. import wire
from ..calls import CORE_VERSION, api_version
from .base import GangObject, GangOutcome, GangSource, JobKind, JobPods, StatusWriter
from .spark import role_of as labelled_role

__all__ = [
    "ALWAYS",
    "DEFAULT",
    "FIELDS",
    "OPTIONAL",
    "SOURCES",
    "GangObject",
    "GangOutcome",
    "GangSource",
    "JobKind",
    "JobPods",
    "Membership",
    "StatusWriter",
    "UnknownSourceError",
    "api_version_of",
    "application_of",
    "chosen",
    "job_kind",
    "membership_of",
    "numbers_runs",
    "source_name",
    "status_writer",
    "unread_gang_of",
]

_modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
_sources: list[GangSource] = [module.SOURCE for module in _modules if hasattr(module, "SOURCE")]

# All sources. If a pod names several gangs, the first source in this order counts. A pod that names
# no gang is a gang of its own, and its binding is the commit.
SOURCES = tuple(sorted(_sources, key=lambda source: source.precedence))
ALWAYS = tuple(source for source in SOURCES if not source.is_optional)
OPTIONAL = {source.name: source for source in SOURCES if source.is_optional}

# The optional sources that are read by default.
DEFAULT = tuple(source for source in SOURCES if source.is_default)
# For each field of pods that only one source reads, the name of that source.
FIELDS = {source.pod_field: source.name for source in SOURCES if source.pod_field}

_NAMING = tuple(source for source in SOURCES if source.names_group)
_KINDS = {kind.api: kind for source in SOURCES for kind in source.kinds}
_NAMES = {
    kind: source.name
    for source in SOURCES
    for kind in (source.named_kind, *(kind.api for kind in source.kinds))
    if kind is not None
}
_JOB_KINDS = {kind.api: source.job_kind for source in SOURCES for kind in source.kinds}
_NUMBERING = {kind.api for source in SOURCES if source.run_of for kind in source.kinds}
_WRITERS = {kind.api: source.status for source in SOURCES for kind in source.kinds}


class UnknownSourceError(ValueError):
    """There is no optional source of that name; the message lists the optional sources."""


def chosen(names: Iterable[str]) -> tuple[GangSource, ...]:
    """The sources that are always read, and the optional sources of these names.

    Raises:
        UnknownSourceError: there is no optional source of one of the names.
    """
    names = frozenset(names)
    if unknown := sorted(names - OPTIONAL.keys()):
        raise UnknownSourceError(f"{unknown[0]!r} is not one of {', '.join(OPTIONAL)}")
    return tuple(source for source in SOURCES if not source.is_optional or source.name in names)


class Membership(NamedTuple):
    """The gang that a pod is in, and the other gangs that it names."""

    group: str = ""  # empty for a single pod
    kind: ApiKind = POD_GROUP
    other_gangs: tuple[GangKey, ...] = ()
    role: str | None = None  # None: by Tutti's and Spark's labels
    run: int = 0
    made_for: MadeFor | None = None


ALONE = Membership()


def membership_of(pod: wire.Pod, sources: Iterable[GangSource] = ALWAYS) -> Membership:
    """The gang of a pod by the first of these sources that finds one.

    If the pods of that source do not wait for their object, the pod is not in the gang here; it
    joins the gang once the object exists.
    """
    candidates = [(source, key) for source in sources if (key := source.gang_of(pod)) is not None]
    if len(candidates) > 1:
        candidates = [(source, key) for source, key in candidates if not _is_automatic(source, pod)]
    if not candidates:
        return ALONE
    (source, first), *rest = candidates
    same = {first} if source.same_gangs is None else {first, *source.same_gangs(pod)}
    other_gangs = tuple(dict.fromkeys(key for _, key in rest if key not in same))
    if not source.is_awaited:
        role = None if source.role_of is None else source.role_of(pod)
        return Membership(other_gangs=other_gangs, role=role)
    sources = [source for source, _ in candidates]
    run = max((source.run_of(pod) for source in sources if source.run_of is not None), default=0)
    makers = (source.made_for(pod) for source in sources if source.made_for is not None)
    made_for = next(filter(None, makers), None)
    return Membership(first.name, first.kind, other_gangs, _role(pod, *sources), run, made_for)


def _role(pod: wire.Pod, source: GangSource, *other_sources: GangSource) -> str:
    """The role of a pod: by the source of its gang, by labels of Tutti or Spark, or by others."""
    if source.role_of is not None:
        return source.role_of(pod)
    roles = (
        other_source.role_of(pod)
        for other_source in other_sources
        if other_source.role_of is not None
    )
    return labelled_role(pod.metadata.labels) or next(filter(None, roles), "")


def _is_automatic(source: GangSource, pod: wire.Pod) -> bool:
    return source.is_automatic is not None and source.is_automatic(pod)


def application_of(pod: wire.Pod, sources: Iterable[GangSource]) -> ApplicationPod | None:
    """The application of a pod by the first of these sources that finds one."""
    readers = (source.application_of for source in sources if source.application_of is not None)
    return next((application for read in readers if (application := read(pod)) is not None), None)


def unread_gang_of(pod: wire.Pod, sources: Collection[GangSource]) -> GangKey | None:
    """The group that a pod names by a source that is not one of these; None if there is none."""
    unread = (source for source in _NAMING if source not in sources)
    named = (source.gang_of(pod) for source in unread if not _is_automatic(source, pod))
    return next((key for key in named if key is not None), None)


def source_name(kind: ApiKind) -> str:
    """The name of the source of gangs of this kind."""
    return _NAMES[kind]


def job_kind(kind: ApiKind) -> JobKind | None:
    """The jobs that create the pods of such gangs once there is room; None if no job waits."""
    return _JOB_KINDS.get(kind)


def numbers_runs(kind: ApiKind) -> bool:
    """Whether pods of gangs of this kind have the number of the run that they were created for."""
    return kind in _NUMBERING


def status_writer(kind: ApiKind) -> StatusWriter | None:
    """How Tutti writes the status of gang objects of this kind; None if it does not write it."""
    return _WRITERS.get(kind)


def api_version_of(kind: ApiKind) -> str:
    """The apiVersion of objects that declare a gang: pods, or objects of a source."""
    version = _KINDS[kind].version if kind in _KINDS else CORE_VERSION
    return api_version(kind.group, version)
