"""A cluster of its own for one test: control plane, operator, witness; judged at the end.

``Rig`` is what e2e and API tests talk to: make nodes and pods, wait for something, look.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tutti.reporting.reporter import SENTENCE_SECONDS

from . import judge, operator_process
from .controlplane.cluster import ControlPlane
from .controlplane.errors import RequestError
from .controlplane.nodes import RUN_SECONDS, node_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from .operator_process import OperatorProcess

T = TypeVar("T")

GROUP_LABEL = "tutti.dev/pod-group"
ROLE_LABEL = "tutti.dev/role"
QUEUES = "/apis/tutti.dev/v1alpha1/queues"
# A condition is expected within one or two seconds; words alone are rewritten once a minute.
PATIENCE = 2 * SENTENCE_SECONDS
PAUSE = "registry.k8s.io/pause:3.10"


def pod_group(
    name: str, min_member: int | None = None, *, namespace: str = "ml", **roles: int
) -> dict[str, Any]:
    """A PodGroup manifest; roles as keywords."""
    spec: dict[str, Any] = {} if min_member is None else {"minMember": min_member}
    if roles:
        spec["roles"] = [{"name": role, "minMember": n} for role, n in roles.items()]
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def pod(
    name: str,
    group: str = "",
    *,
    namespace: str = "ml",
    role: str = "",
    scheduler: str = "tutti",
    run_seconds: float | None = None,
    spec: Mapping[str, Any] | None = None,
    **requests: str | int,
) -> dict[str, Any]:
    """A pod manifest; ``gpu=1`` is nvidia.com/gpu, other keywords are resource names.

    ``run_seconds`` is how long kwok lets it run before it succeeds; None is for ever.
    """
    labels = ({GROUP_LABEL: group} if group else {}) | ({ROLE_LABEL: role} if role else {})
    amounts = {
        "nvidia.com/gpu" if key == "gpu" else key.replace("_", "-"): str(amount)
        for key, amount in requests.items()
    }
    resources = {"requests": amounts, "limits": {k: v for k, v in amounts.items() if "/" in k}}
    annotations = {} if run_seconds is None else {RUN_SECONDS: str(run_seconds)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": PAUSE, "resources": resources}],
            **(spec or {}),
        },
    }


def members(group: str, n: int, **about: Any) -> list[dict[str, Any]]:
    """So many equal members of a group."""
    return [pod(f"{group}-{i}", group, **about) for i in range(n)]


def ending(one: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What makes a pod end so long after its start, once it is applied."""
    known = {key: one["metadata"][key] for key in ("name", "namespace")}
    metadata = {**known, "annotations": {RUN_SECONDS: str(seconds)}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


class Rig:
    """One test's cluster; a context manager that ends with the judge's verdict."""

    def __init__(self, plane: ControlPlane, operator: OperatorProcess) -> None:
        self.plane = plane
        self.operator = operator
        self._witness = judge.Witness(plane.kubeconfig, operator.gang_sources)
        self.ends_at_rest = True  # a test that ends in the middle of something says so
        self.is_outlived = False  # operator and control plane are somebody else's, and go on
        self.shares_nodes = False  # others bind to the nodes too; the operator logs at debug

    @classmethod
    def start(
        cls,
        *components: str,
        operator: bool = True,
        crds: bool = True,
        values: Sequence[str] = (),
        **options: Any,
    ) -> Self:
        """Start a control plane with kwok and these components, install, and run the operator."""
        plane = ControlPlane.start(components=("kwok", *components))
        try:
            plane.create_namespace("ml")  # the chart may grant something there
            operator_process.install(plane, *values, crds=crds)
            rig = cls(plane, operator_process.OperatorProcess(plane, **options))
            if operator:
                rig.operator.start()
        except BaseException:
            plane.stop()
            raise
        return rig

    def __enter__(self) -> Self:
        self._witness.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                if self.ends_at_rest:
                    self.until(lambda: not self._standing(), "no Reservation is left")
                verdict = self.verdict()
                judge.assert_clean(verdict)
                assert not (self.ends_at_rest and verdict.unfinished), verdict.summary()
            elif isinstance(problem, Exception):
                problem.add_note(f"the operator's log ends:\n{self.operator.tail()}")
        finally:
            self._witness.__exit__(kind, problem, trace)
            if not self.is_outlived:
                self.operator.stop()
                self.plane.stop()

    def verdict(self, user: str = operator_process.USER, scheduler_name: str = "") -> judge.Verdict:
        """What the judge finds so far of the doings of Tutti, or of another scheduler."""
        self._witness.stop()
        return judge.judge(
            self._witness.history(),
            audit=self.plane.audit_log,
            operator_user=user,
            scheduler_name=scheduler_name or self.operator.scheduler_name,
            seen=self.operator.seen() if self.shares_nodes else None,
        )

    def _standing(self) -> list[dict[str, Any]]:
        return list(self.plane.request("GET", "/apis/tutti.dev/v1alpha1/reservations")["items"])

    # Make

    def nodes(self, n: int, prefix: str = "node", **about: Any) -> None:
        """Make nodes that kwok keeps alive, and wait until pods may run there."""
        self.plane.create_nodes(node_manifest(f"{prefix}-{i:03}", **about) for i in range(n))

    def create(self, *objects: Mapping[str, Any]) -> None:
        """Create objects, which must be new."""
        self.plane.create(objects)

    def delete(self, kind: str, name: str, namespace: str = "ml") -> None:
        """Delete one object by kubectl, without waiting."""
        self.plane.kubectl("delete", kind, name, "-n", namespace, "--wait=false")

    # Look

    def node(self, name: str) -> dict[str, Any]:
        """One node."""
        return self.plane.request("GET", f"/api/v1/nodes/{name}")

    def pods(self, group: str = "", namespace: str = "ml") -> list[dict[str, Any]]:
        """The pods of a namespace, or of one group in it."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        selector = f"?labelSelector={GROUP_LABEL}%3D{group}" if group else ""
        return list(self.plane.request("GET", path + selector)["items"])

    def pod(self, name: str, namespace: str = "ml") -> dict[str, Any]:
        """One pod."""
        return self.plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")

    def bound(self, group: str = "", namespace: str = "ml") -> int:
        """How many pods of a group have a node."""
        return sum("nodeName" in pod_object["spec"] for pod_object in self.pods(group, namespace))

    def group(self, name: str, namespace: str = "ml") -> dict[str, Any]:
        """One PodGroup."""
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{namespace}/podgroups/{name}"
        return self.plane.request("GET", path)

    def reservations(self, namespace: str = "ml") -> list[dict[str, Any]]:
        """The standing Reservations."""
        path = f"/apis/tutti.dev/v1alpha1/namespaces/{namespace}/reservations"
        return list(self.plane.request("GET", path)["items"])

    def condition(self, group: str, kind: str, namespace: str = "ml") -> dict[str, Any]:
        """One condition of a PodGroup; empty while it is not there."""
        lines = self.group(group, namespace).get("status", {}).get("conditions", [])
        return next((line for line in lines if line["type"] == kind), {})

    def events(self, name: str, namespace: str = "ml") -> list[dict[str, Any]]:
        """The Events about one object."""
        path = f"/api/v1/namespaces/{namespace}/events"
        query = f"?fieldSelector=involvedObject.name%3D{name}"
        return list(self.plane.request("GET", path + query)["items"])

    def pod_says(self, name: str, namespace: str = "ml") -> dict[str, Any]:
        """A pod's PodScheduled condition; empty while it has none."""
        lines = self.pod(name, namespace)["status"].get("conditions", [])
        return next((line for line in lines if line["type"] == "PodScheduled"), {})

    # Wait

    def until(self, look: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
        """Wait until something is so, and answer it."""
        deadline = time.monotonic() + seconds
        answer: object = None
        while time.monotonic() < deadline:
            try:
                if answer := look():
                    return answer
            except RequestError as problem:
                answer = problem
            time.sleep(0.05)
        raise AssertionError(
            f"not within {seconds} s: {what}; last seen: {answer!r}\n"
            f"the operator's log ends:\n{self.operator.tail()}"
        )

    def until_in_use(self, resource: str, amount: float) -> None:
        """Wait until Tutti has seen that pods with a node request so much of a resource."""
        name = f'tutti_resource_allocated{{resource="{resource}",'
        self.until(
            lambda: any(
                line.startswith(name) and float(line.rpartition(" ")[2]) == amount
                for line in self.operator.probe("metrics").splitlines()
            ),
            f"{amount} {resource} are in use",
        )

    def until_queue_is_known(self, name: str) -> None:
        """Wait until Tutti has written about a Queue as it is."""

        def is_known() -> bool:
            read = self.plane.request("GET", f"/apis/tutti.dev/v1alpha1/queues/{name}")
            observed = read.get("status", {}).get("observedGeneration")
            return bool(observed == read["metadata"]["generation"])

        self.until(is_known, f"the status of {name} is of its last change")

    def until_bound(self, group: str, n: int, namespace: str = "ml") -> None:
        """Wait until exactly so many pods of a group are bound."""
        what = f"{n} pods of {group} are bound"
        self.until(lambda: self.bound(group, namespace) == n, what)

    def until_waiting(self, group: str, reason: str, namespace: str = "ml") -> str:
        """Wait until a PodGroup says this reason under Reserved; answers its sentence."""
        return self.until_says(group, "Reserved", reason, namespace=namespace)

    def until_says(
        self, group: str, kind: str, reason: str, words: str = "", namespace: str = "ml"
    ) -> str:
        """Wait until a condition has this reason and these words; answers its sentence."""

        def sentence() -> str:
            line = self.condition(group, kind, namespace)
            is_said = line.get("reason") == reason and words in line["message"]
            return str(line["message"]) if is_said else ""

        return self.until(sentence, f"{group} says {kind} {reason} {words}")

    def until_pod_says(
        self, name: str, reason: str, words: str = "", namespace: str = "ml"
    ) -> None:
        """Wait until the PodScheduled condition of a pod has this reason and these words."""

        def is_said() -> bool:
            line = self.pod_says(name, namespace)
            return line.get("reason") == reason and words in line["message"]

        self.until(is_said, f"{name} says {reason} {words}")

    def quiet(self, seconds: float = 2.0) -> list[dict[str, Any]]:
        """The writes of the operator in the next seconds, but to its Lease: none, once settled."""
        before = len(self._writes())
        time.sleep(seconds)
        return self._writes()[before:]

    def _writes(self) -> list[dict[str, Any]]:
        return [
            line
            for line in self.plane.audited()
            if line["user"]["username"] == operator_process.USER
            and line["verb"] not in ("get", "list", "watch")
            and line["objectRef"]["resource"] != "leases"
        ]


def remove_queues(request: Callable[..., Any], prefix: str = "") -> None:
    """Delete the Queues with such names, and remove Tutti's finalizer, as administrators can.

    In this order: Tutti adds its finalizer again to a Queue that is not being deleted.
    """
    for item in request("GET", QUEUES)["items"]:
        path = f"{QUEUES}/{item['metadata']['name']}"
        if not item["metadata"]["name"].startswith(prefix):
            continue
        request("DELETE", path)
        try:
            request("PATCH", path, {"metadata": {"finalizers": None}})
        except RequestError as problem:
            if problem.status != HTTPStatus.NOT_FOUND:
                raise
