"""Histories by hand: a few words per event, revisions counted up by themselves."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ...harness.judge import (
    AuditEntry,
    Change,
    Event,
    Gap,
    History,
    Kind,
    Standpoint,
    Verdict,
    weigh,
)

US = "system:serviceaccount:tutti-system:tutti"
KUBE = "system:kube-scheduler"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Story:
    """Events in the order of the calls, and the audit log that goes with them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.entries: list[AuditEntry] = []
        self.gaps: list[Gap] = []
        self.revision = 100
        self._change: Change | None = Change.INITIAL
        self._bodies: dict[tuple[Kind, str], dict[str, Any]] = {}

    def begins(self) -> "Story":
        """Make all before this the initial state."""
        self._change = None
        return self

    def put(self, kind: Kind, body: dict[str, Any]) -> int:
        """Create an object, or change it."""
        self.revision += 1
        uid = body["metadata"].setdefault("uid", f"uid-{body['metadata']['name']}")
        known = (kind, uid) in self._bodies
        change = self._change or (Change.MODIFIED if known else Change.ADDED)
        self._bodies[kind, uid] = body
        self.events.append(Event(kind, change, self.revision, body))
        return self.revision

    def body(self, kind: Kind, name: str) -> dict[str, Any]:
        """An object as it is now."""
        return self._bodies[kind, f"uid-{name}"]

    def drop(self, kind: Kind, uid: str) -> int:
        """Delete an object."""
        self.revision += 1
        body = self._bodies.pop((kind, uid))
        self.events.append(Event(kind, Change.DELETED, self.revision, body))
        return self.revision

    def node(
        self,
        name: str,
        *,
        cordoned: bool = False,
        labels: Mapping[str, str] | None = None,
        **offered: str,
    ) -> int:
        """Put a node; ``gpu`` stands for nvidia.com/gpu."""
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"} | _resources(offered)
        ready = {"type": "Ready", "status": "True"}
        return self.put(
            Kind.NODES,
            {
                "metadata": {"name": name, "labels": labels or {}},
                "spec": {"unschedulable": cordoned},
                "status": {"allocatable": allocatable, "conditions": [ready]},
            },
        )

    def queue(
        self,
        name: str,
        parent: str = "",
        *,
        generation: int = 1,
        observed: int = 0,
        uid: str = "",
        deleted: bool = False,
        drained_at: float | None = None,
        spec: Mapping[str, Any] | None = None,
        **limits: str,
    ) -> int:
        """Put a Queue with these limits; ``drained_at`` is the second at which its drain began."""
        lines = [{"name": key, "limit": value} for key, value in _resources(limits).items()]
        metadata = {"name": name, "generation": generation}
        metadata |= {"uid": uid} if uid else {}
        metadata |= {"deletionTimestamp": moment(0.0)} if deleted else {}
        since = {} if drained_at is None else {"drainingSince": moment(drained_at)}
        return self.put(
            Kind.QUEUES,
            {
                "metadata": metadata,
                "spec": {"parent": parent, "resources": lines, **(spec or {})},
                "status": {"observedGeneration": observed, **since},
            },
        )

    def namespace(self, name: str, **labels: str) -> int:
        """Put a namespace."""
        return self.put(Kind.NAMESPACES, {"metadata": {"name": name, "labels": labels}})

    def queued(self, name: str, least: int, queue: str, *, at: float = 0.0) -> int:
        """Put a PodGroup that names its queue, created at a second."""
        return self._group(name, {"minMember": least, "queue": queue}, at=at)

    def topology(self, *labels: str, kind: Kind = Kind.TOPOLOGIES) -> int:
        """Put the Topology with these levels."""
        levels = [{"nodeLabel": label} for label in labels]
        return self.put(kind, {"metadata": {"name": "network"}, "spec": {"levels": levels}})

    def ruled(self, name: str, topology: Mapping[str, Any], **spec: Any) -> int:
        """Put a PodGroup that names levels."""
        return self._group(name, {**spec, "topology": topology})

    def group(self, name: str, least: int | None = None, **roles: int) -> int:
        """Put a PodGroup."""
        listed = [{"name": role, "minMember": count} for role, count in roles.items()]
        return self._group(
            name, {"roles": listed} | ({} if least is None else {"minMember": least})
        )

    def awaiting(self, name: str, *, maker: str = "", **roles: int) -> int:
        """Put a PodGroup whose members of 1 CPU, the driver aside, are awaited for 5 s."""
        template = {"template": {"resources": {"cpu": "1"}}}
        listed = [
            {"name": role, "minMember": count} | ({} if role == "driver" else template)
            for role, count in roles.items()
        ]
        spec: dict[str, Any] = {"roles": listed, "absentMemberTimeoutSeconds": 5}
        return self._group(name, spec, [{"kind": "Pod", "name": maker}] if maker else [])

    def _group(
        self, name: str, spec: Mapping[str, Any], owners: Iterable[object] = (), at: float = 0.0
    ) -> int:
        metadata = {"name": name, "namespace": "ml", "ownerReferences": list(owners)}
        metadata["creationTimestamp"] = moment(at)
        return self.put(Kind.POD_GROUPS, {"metadata": metadata, "spec": spec})

    def pod(
        self,
        name: str,
        group: str = "",
        *,
        role: str = "",
        node: str = "",
        scheduler: str = "tutti",
        phase: str = "Pending",
        uid: str = "",
        created: str = "",
        deleted: str = "",
        index: str = "",
        **requests: str,
    ) -> int:
        """Put a pod, waiting or bound; ``deleted`` is since when it terminates."""
        labels = {"tutti.dev/pod-group": group, "tutti.dev/role": role, "index": index}
        return self.put(
            Kind.PODS,
            {
                "metadata": {
                    "name": name,
                    "namespace": "ml",
                    "uid": uid or f"uid-{name}",
                    "labels": {key: value for key, value in labels.items() if value},
                    "creationTimestamp": created or moment(0.0),
                    **({"deletionTimestamp": deleted} if deleted else {}),
                },
                "spec": {
                    "schedulerName": scheduler,
                    "nodeName": node,
                    "containers": [{"resources": {"requests": _resources(requests)}}],
                },
                "status": {"phase": phase},
            },
        )

    def gated(self, name: str, group: str, *gates: str, pin: str = "") -> int:
        """Put a pod of kube-scheduler with these gates, pinned to a node if one is named."""
        pinned = {"key": "metadata.name", "operator": "In", "values": [pin]}
        required = {"nodeSelectorTerms": [{"matchFields": [pinned]}]}
        affinity = {"nodeAffinity": {REQUIRED: required}} if pin else {}
        metadata = {"name": name, "namespace": "ml", "labels": {"tutti.dev/pod-group": group}}
        spec = {
            "schedulingGates": [{"name": gate} for gate in gates],
            "affinity": affinity,
            "containers": [{"resources": {"requests": {"cpu": "1"}}}],
        }
        return self.put(Kind.PODS, {"metadata": metadata, "spec": spec, "status": {}})

    def pods(self, group: str, count: int, **requests: str) -> None:
        """Put members ``group-0`` and so on, waiting."""
        for index in range(count):
            self.pod(f"{group}-{index}", group, **requests)

    def bind(self, name: str, node: str, *, by: str = US, at: float | None = None) -> int:
        """Bind a pod, in the watch and in the audit log."""
        uid = f"uid-{name}"
        old = self._bodies[Kind.PODS, uid]
        self.wrote("create", "pods/binding", name, user=by, uid=uid, code=201, at=at)
        return self.put(Kind.PODS, old | {"spec": old["spec"] | {"nodeName": node}})

    def phase(self, name: str, phase: str) -> int:
        """Change a pod's phase."""
        old = self._bodies[Kind.PODS, f"uid-{name}"]
        return self.put(Kind.PODS, old | {"status": {"phase": phase}})

    def reserve(
        self,
        group: str,
        pods: Mapping[str, str] | None = None,
        *,
        slots: Mapping[str, Mapping[str, int]] | None = None,
        queue: str = "",
        ends: Mapping[str, Iterable[str]] | None = None,
        whole: bool = False,
        evict: Iterable[str] = (),
    ) -> int:
        """Put the gang's Reservation: nodes by pod name, slots by node and role.

        With a queue it has the record of a start; ``ends`` are pods that end for it, by gang, and
        ``whole`` says that these gangs end whole; ``evict`` are members that are given up.
        """
        victims = [
            {"name": gang, "uid": f"uid-{gang}", "pods": [f"uid-{pod}" for pod in pods]}
            | ({"whole": True} if whole else {})
            for gang, pods in (ends or {}).items()
        ]
        given_up = [f"uid-{pod}" for pod in evict]
        placement: list[dict[str, Any]] = [
            {"node": node, "pods": [{"name": pod, "uid": f"uid-{pod}"}]}
            for pod, node in (pods or {}).items()
        ]
        placement += [{"node": node, "slots": dict(roles)} for node, roles in (slots or {}).items()]
        return self.put(
            Kind.RESERVATIONS,
            {
                "metadata": {
                    "name": f"uid-{group}",
                    "namespace": "ml",
                    "uid": f"reservation-{group}",
                },
                "spec": {
                    "podGroup": {"name": group, "uid": f"uid-{group}"},
                    "reservedAt": NOON.isoformat(),
                    "placement": placement,
                    **({"queue": {"name": queue, "uid": f"uid-{queue}"}} if queue else {}),
                    **({"claim": {"victims": victims}} if victims else {}),
                    **({"evict": given_up} if given_up else {}),
                },
            },
        )

    def release(self, group: str, *, by: str = US, at: float | None = None) -> int:
        """Delete the gang's Reservation."""
        name = f"uid-{group}"
        self.wrote("delete", "reservations", name, user=by, api_group="tutti.dev", at=at)
        return self.drop(Kind.RESERVATIONS, f"reservation-{group}")

    def evict(self, name: str) -> None:
        """Evict a pod, which is gone at once."""
        self.wrote("create", "pods/eviction", name, uid=f"uid-{name}", code=201)
        self.drop(Kind.PODS, f"uid-{name}")

    def wrote(
        self,
        verb: str,
        resource: str,
        name: str,
        *,
        user: str = US,
        uid: str = "",
        code: int = 200,
        api_group: str = "",
        denied: bool = False,
        at: float | None = None,
        fields: frozenset[str] = frozenset(),
    ) -> None:
        """Add a line to the audit log; a call takes no time."""
        when = None if at is None else NOON + timedelta(seconds=at)
        self.entries.append(
            AuditEntry(
                *(user, verb, resource, api_group, "ml", name, code, when, uid, denied),
                answered=when,
                fields=fields,
            )
        )

    def history(self) -> History:
        """Give the history."""
        return History.of(self.events, start=100, gaps=self.gaps)

    def verdict(
        self,
        *,
        namespaces: frozenset[str] | None = None,
        seen: Mapping[str, int] | None = None,
    ) -> Verdict:
        """Have it judged."""
        standpoint = Standpoint(US, namespaces=namespaces, seen=seen)
        return weigh(self.history(), self.entries, standpoint)


def _resources(given: Mapping[str, str]) -> dict[str, str]:
    return {"nvidia.com/gpu" if name == "gpu" else name: value for name, value in given.items()}


def moment(seconds: float) -> str:
    """A second of the story, as the API writes it."""
    return (NOON + timedelta(seconds=seconds)).isoformat()


def two_nodes() -> Story:
    """Begin with two nodes of four GPUs each."""
    story = Story()
    story.node("a", gpu="4")
    story.node("b", gpu="4")
    return story.begins()


def whole_gang(story: Story, name: str = "train", count: int = 4) -> Story:
    """Tell of a gang that is reserved, bound and released as it should be."""
    story.group(name, count)
    story.pods(name, count, gpu="1")
    nodes = {f"{name}-{index}": "ab"[index % 2] for index in range(count)}
    story.reserve(name, nodes)
    for pod, node in nodes.items():
        story.bind(pod, node)
    story.release(name)
    return story
