"""API objects from files to model values, through the decoder that reads the live cluster.

Where the operator leaves an unreadable object out and goes on, a file is refused: whoever wrote it
is there to put it right.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from ..kube import errors, wire
from ..kube.codec import decode, volumes
from ..kube.codec.encode import API_VERSION, moment
from ..kube.codec.pod_group import GangObject
from ..model.cluster import ForeignPod, Member, Namespace, Node, PriorityClass, Reservation
from ..model.volumes import Attachment, Claim, Driver, NodeDrivers, StorageClass, Volume
from . import defaults, limits, spark
from .documents import BadFile, Document, Text, documents
from .header import DumpHeader, header

SCHEDULER = "tutti"  # where neither a dump nor the caller says another
GROUP = API_VERSION.rpartition("/")[0]
_PRESENT = {
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    (GROUP, "PodGroup"),
    (GROUP, "Reservation"),
}

W = TypeVar("W", bound=wire.Object)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Objects:
    """What a set of files holds."""

    taken_at: float  # seconds since the epoch; of a dump, else of the youngest object
    scheduler: str
    header: DumpHeader | None = None  # of the dump among the files, if there is one
    nodes: tuple[Node, ...] = ()
    members: tuple[Member, ...] = ()
    occupants: tuple[ForeignPod, ...] = ()
    groups: tuple[GangObject, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    classes: tuple[PriorityClass, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    claims: tuple[Claim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    node_drivers: tuple[NodeDrivers, ...] = ()
    drivers: tuple[Driver, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)  # objects of other kinds, by kind
    repeated: int = 0  # objects that came again later, which is the one that counts


def read(texts: Iterable[Text], scheduler: str = "") -> Objects:
    """Read files together: dumps, ``kubectl get`` output, manifests; ``scheduler`` is ours.

    Raises:
        BadFile: one of them cannot be used.
    """
    all_of_them = [document for text in texts for document in documents(text)]
    over = _header(all_of_them)
    taken_at = over.taken_at if over is not None else _youngest(all_of_them)
    ours = scheduler or (over.setup.scheduler if over is not None else SCHEDULER)
    kept: dict[tuple[str, str, str], Document] = {}
    skipped: Counter[str] = Counter()
    repeated = 0
    now = moment(taken_at)
    pods_left = defaults.MOST_PODS
    for document in all_of_them:
        if document.kind == "List":
            continue
        made = _made(document, now, pods_left)
        if (document.group, document.kind) in defaults.WORKLOADS:
            pods_left -= len(made or ())
        if made is None:
            skipped[f"{document.kind}.{document.group}".rstrip(".")] += 1
        for each in made or ():
            key = (each.kind, *_name(each))
            repeated += key in kept
            kept[key] = each
    return _decoded(
        kept.values(), Objects(taken_at, ours, over, skipped=skipped, repeated=repeated)
    )


def _header(found: Sequence[Document]) -> DumpHeader | None:
    """The words over the dump among the files.

    Raises:
        BadFile: they cannot be read, or there are two dumps.
    """
    over: DumpHeader | None = None
    for document in found:
        marks = document.metadata.get("annotations") if document.kind == "List" else None
        if not isinstance(marks, Mapping):
            continue
        try:
            mine = header(marks)
        except errors.BadObject as problem:
            raise BadFile(document.place, problem.sentence) from problem
        if mine is not None and over is not None:
            raise BadFile(document.place, "is a second dump; one at a time can be planned")
        over = mine or over
    return over


def _made(document: Document, now: str, pods_left: int) -> Sequence[Document] | None:
    """The objects that count: itself, or its pods-to-be; None where no decision looks at it.

    So many pods may be ``left`` for it to make.
    """
    is_known = (document.group, document.kind) in _PRESENT
    if not defaults.is_new(document):
        return (document,) if is_known else None
    if is_known:
        return (defaults.filled(document, now),)
    if (document.group, document.kind) in defaults.WORKLOADS:
        return list(defaults.pods(document, now, pods_left))
    return None


def _name(document: Document) -> tuple[str, str]:
    metadata = document.metadata
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _youngest(found: Iterable[Document]) -> float:
    """When the youngest object was made: as good as now, and the same in every run."""
    return max((_created(document) for document in found), default=0.0)


def _created(document: Document) -> float:
    said = document.metadata.get("creationTimestamp")
    try:
        at = said if isinstance(said, datetime) else datetime.fromisoformat(str(said))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0  # decoding will say what is wrong with it


def _decoded(found: Iterable[Document], into: Objects) -> Objects:
    by_kind: dict[str, list[Document]] = {}
    for document in found:
        by_kind.setdefault(document.kind, []).append(document)

    def all_of(kind: type[W], value: Callable[[W], V]) -> tuple[V, ...]:
        return tuple(_one(each, kind, value) for each in by_kind.get(kind.__name__, ()))

    pods = by_kind.get("Pod", ())
    ours = [each for each in pods if _is_ours(each, into.scheduler)]
    others = [each for each in pods if not _is_ours(each, into.scheduler)]
    members = tuple(_one(each, wire.Pod, _member) for each in ours)
    occupants = [_one(each, wire.Pod, decode.decode_occupant) for each in others]
    present = tuple(one for one in occupants if one is not None)
    attachments = all_of(wire.VolumeAttachment, volumes.decode_attachment)
    held = all_of(wire.Reservation, limits.reservation)
    namespaces = all_of(wire.Namespace, decode.decode_namespace)
    implied = () if into.header is not None else _implied(namespaces, members, present)
    return replace(
        into,
        nodes=all_of(wire.Node, decode.decode_node),
        members=members,
        occupants=present,
        groups=all_of(wire.PodGroup, limits.group),
        reservations=tuple(one for one in held if one.scheduler == into.scheduler),
        classes=all_of(wire.PriorityClass, decode.decode_priority_class),
        namespaces=(*namespaces, *implied),
        claims=all_of(wire.PersistentVolumeClaim, volumes.decode_claim),
        volumes=all_of(wire.PersistentVolume, volumes.decode_volume),
        storage_classes=all_of(wire.StorageClass, volumes.decode_class),
        node_drivers=all_of(wire.CSINode, volumes.decode_drivers),
        drivers=all_of(wire.CSIDriver, volumes.decode_driver),
        attachments=tuple(one for one in attachments if one is not None),
    )


def _implied(
    known: Iterable[Namespace], members: Iterable[Member], occupants: Iterable[ForeignPod]
) -> Iterator[Namespace]:
    """The namespaces that must be there since pods are: all that is known of them is their name."""
    named = {one.key.namespace for one in members} | {one.namespace for one in occupants}
    for name in sorted(named - {one.name for one in known}):
        yield Namespace(name, ((defaults.NAMESPACE_NAME, name),))


def _is_ours(document: Document, scheduler: str) -> bool:
    spec: Any = document.raw.get("spec")
    return isinstance(spec, Mapping) and spec.get("schedulerName") == scheduler


def _member(pod: wire.Pod) -> Member:
    """As it is read live, and what a dump says beside it."""
    why = pod.metadata.annotations.get(spark.UNCONFIGURED, "")
    return replace(decode.decode_member(pod), size_unknown_because=why)


def _one(document: Document, kind: type[W], value: Callable[[W], V]) -> V:
    try:
        return value(wire.parse_one(document.raw, kind))
    except errors.BadObject as problem:
        where = "/".join(filter(None, _name(document)))
        what = f"{document.kind} {where}" if where else document.kind
        raise BadFile(f"{document.place} ({what})", problem.sentence) from problem
