"""Decodes API objects in files to model values, with the decoders of the live cluster.

The operator leaves an unreadable object out. A file with such an object is refused instead, because
its author can correct it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from ..kube import errors, kinds, wire
from ..kube.calls import Kind
from ..kube.codec import decode, hand_over
from ..kube.codec.encode import moment
from ..kube.codec.metadata import seconds_by_users
from ..kube.gang_sources import GangObject, pod_group
from ..kube.list_watch import Item
from ..model.cluster import ForeignPod, Member, Namespace
from ..model.keys import ApiKind, Uid
from . import defaults, limits, membership
from .documents import BadFile, Document, Text, documents
from .header import DumpHeader, header

SCHEDULER = "tutti"  # the scheduler name if neither a dump nor the caller gives another
_PRESENT = {kind.api for kind in kinds.KINDS}

W = TypeVar("W", bound=wire.Object)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects in a set of files."""

    taken_at: float  # seconds since the epoch: time of the dump, or of the newest object
    scheduler: str
    header: DumpHeader | None = None  # of the dump among the files, if there is one
    members: tuple[Member, ...] = ()
    occupants: tuple[ForeignPod, ...] = ()
    items: Mapping[kinds.AnyKind, Sequence[Item[Any]]] = field(default_factory=dict)  # not pods
    skipped: Mapping[str, int] = field(default_factory=dict)  # objects of other kinds, by kind
    repeated: int = 0  # objects that the files have twice; the last one counts

    def of(self, kind: Kind[Any, V]) -> tuple[V, ...]:
        """The objects of one kind, which is not Pod."""
        return tuple(item.value for item in self.items.get(kind, ()))


def read(texts: Iterable[Text], scheduler: str = "") -> Objects:
    """Read files together: dumps, ``kubectl get`` output, manifests.

    ``scheduler`` is the schedulerName of our pods.

    Raises:
        BadFile: a file cannot be used.
    """
    all_of_them = [document for text in texts for document in documents(text)]
    dump_header = _header(all_of_them)
    taken_at = dump_header.taken_at if dump_header is not None else _youngest(all_of_them)
    ours = scheduler or (dump_header.setup.scheduler if dump_header is not None else SCHEDULER)
    documents_by_key: dict[tuple[str, ...], Document] = {}
    skipped: Counter[str] = Counter()
    repeated = 0
    now = moment(taken_at)
    pods_allowed = defaults.MOST_PODS
    for document in all_of_them:
        if document.kind == "List":
            continue
        parts = _documents_in(document, now, pods_allowed)
        if (document.group, document.kind) in defaults.WORKLOADS:
            pods_allowed -= sum(part.kind == "Pod" for part in parts or ())
        if parts is None:
            skipped[f"{document.kind}.{document.group}".rstrip(".")] += 1
        for part in parts or ():
            key = (part.group, part.kind, _declared_by(part), *_name(part))
            repeated += key in documents_by_key
            documents_by_key[key] = part
    return _decoded(
        documents_by_key.values(),
        Objects(taken_at, ours, dump_header, skipped=skipped, repeated=repeated),
    )


def _header(all_documents: Sequence[Document]) -> DumpHeader | None:
    """The header of the dump among the files; None if there is no dump.

    Raises:
        BadFile: the header cannot be read, or there are two dumps.
    """
    dump_header: DumpHeader | None = None
    for document in all_documents:
        marks = document.metadata.get("annotations") if document.kind == "List" else None
        if not isinstance(marks, Mapping):
            continue
        try:
            mine = header(marks)
        except errors.BadObject as problem:
            raise BadFile(document.place, problem.sentence) from problem
        if mine is not None and dump_header is not None:
            raise BadFile(document.place, "is a second dump; one at a time can be planned")
        dump_header = mine or dump_header
    return dump_header


def _documents_in(document: Document, now: str, pods_left: int) -> Sequence[Document] | None:
    """The objects that count: the document itself, and the pods that a controller would create.

    None if no decision uses the document. At most ``pods_left`` pods may be created.
    """
    is_known = _api(document) in _PRESENT
    if not defaults.is_new(document):
        return (document,) if is_known else None
    own = (defaults.filled(document, now),) if is_known else ()
    if (document.group, document.kind) in defaults.WORKLOADS:
        return *own, *defaults.pods(document, now, pods_left)
    return own or None


def _name(document: Document) -> tuple[str, str]:
    metadata = document.metadata
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _declared_by(document: Document) -> str:
    """The kind that a PodGroup in a dump stands for; empty if it stands for itself."""
    marks = document.metadata.get("annotations")
    return str(marks.get(membership.DECLARED_BY, "")) if isinstance(marks, Mapping) else ""


def _youngest(all_documents: Iterable[Document]) -> float:
    """When the newest object was created, in seconds since the epoch: the same in every run."""
    return max((_created(document) for document in all_documents), default=0.0)


def _created(document: Document) -> float:
    timestamp = document.metadata.get("creationTimestamp")
    try:
        at = (
            timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(str(timestamp))
        )
        return seconds_by_users(at)
    except (ValueError, OverflowError):
        return 0.0  # the decoder reports the error


def _decoded(all_documents: Iterable[Document], into: Objects) -> Objects:
    by_kind: dict[ApiKind, list[Document]] = {}
    for document in all_documents:
        by_kind.setdefault(_api(document), []).append(document)

    pods = by_kind.get(kinds.POD.api, ())
    decoded = [
        _decode_document(document, wire.Pod, partial(_pod, scheduler=into.scheduler))
        for document in pods
    ]
    members = tuple(pod for pod in decoded if isinstance(pod, Member))
    present = tuple(pod for pod in decoded if isinstance(pod, ForeignPod))
    items = {
        kind: [*_items(by_kind.get(kind.api, ()), kind)]
        for kind in kinds.KINDS
        if kind is not kinds.POD
    }
    reservations = items[kinds.RESERVATION]
    items[kinds.RESERVATION] = [
        item for item in reservations if item.value.scheduler == into.scheduler
    ]
    if into.header is None:
        namespaces = [item.value for item in items[kinds.NAMESPACE]]
        implied = _implied(namespaces, members, present)
        items[kinds.NAMESPACE] += (Item(Uid(namespace.name), 1, namespace) for namespace in implied)
    return replace(into, members=members, occupants=present, items=items)


def _api(document: Document) -> ApiKind:
    return ApiKind(document.group, document.kind)


def _items(of_kind: Iterable[Document], kind: kinds.AnyKind) -> Iterator[Item[Any]]:
    """The decoded objects of one kind with their uids; without a uid, the name is used."""
    read = _LIMITED.get(kind, kind.decode)
    for document in of_kind:
        value = _decode_document(document, kind.model, read)
        if value is not None:
            uid = document.metadata.get("uid") or "/".join(_name(document))
            yield Item(Uid(str(uid)), 1, value)


def _implied(
    namespaces: Iterable[Namespace], members: Iterable[Member], occupants: Iterable[ForeignPod]
) -> Iterator[Namespace]:
    """The namespaces of pods that no file has; only their names are known."""
    names = {member.key.namespace for member in members} | {pod.namespace for pod in occupants}
    for name in sorted(names - {namespace.name for namespace in namespaces}):
        yield Namespace(name, ((defaults.NAMESPACE_NAME, name),))


def _pod(pod: wire.Pod, scheduler: str) -> Member | ForeignPod | None:
    """The pod as the operator reads it, with the fields that a dump adds; None if it has no room.

    A pod of kube-scheduler that Tutti hands over, or has handed over, is a member.
    """
    if pod.spec.scheduler_name == scheduler:
        member = decode.decode_member(pod)
    elif hand_over.is_member(pod):
        member = hand_over.decode_handed_member(pod)
    else:
        return decode.decode_occupant(pod)
    return membership.read_back(member, pod.metadata.annotations)


def _group(group: pod_group.PodGroup) -> GangObject:
    """The PodGroup as the operator reads it; in a dump it may stand for another kind."""
    annotations = group.metadata.annotations
    is_foreign = membership.DECLARED_BY in annotations
    return membership.declared(limits.group(group, is_foreign=is_foreign), annotations)


def _decode_document(document: Document, kind: type[W], value: Callable[[W], V]) -> V:
    try:
        return value(wire.parse_one(document.raw, kind))
    except errors.BadObject as problem:
        where = "/".join(filter(None, _name(document)))
        subject = f"{document.kind} {where}" if where else document.kind
        raise BadFile(f"{document.place} ({subject})", problem.sentence) from problem


# The decoders of kinds with limits; the API server, which would enforce them, has not seen files.
_LIMITED: Mapping[kinds.AnyKind, Callable[[Any], Any]] = {
    pod_group.KIND: _group,
    kinds.RESERVATION: limits.reservation,
}
