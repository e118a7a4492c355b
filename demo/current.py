"""The user's own cluster as the stage: said, asked, used, and left as it was.

Nodes are read, never written. What is created is written down before it is created, so that all
of it can be removed at any moment.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from tests.harness.controlplane.access import Access
from tests.harness.operator_process import OperatorProcess

from tutti.cli.output.picture import Block, Hold, NodeRow
from tutti.kube.codec import quantity

from . import installing, sizing
from .cluster import Cluster, DemoError, Manifest, RefusedError, collection, place_of
from .consent import NoConsentError, proposal
from .installing import NAMESPACE
from .stage import GROUPS, Stage, amount, block_of, by_node, example, holds_room

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .screen import Screen
    from .sizing import Sizes

GONE_SECONDS = 120.0  # a namespace takes its pods with it, and those their grace period
ACCOUNT_SECONDS = 30.0


class CurrentStage(Stage):
    """The user's cluster; pods end by themselves."""

    def __init__(self, cluster: Cluster, sizes: Sizes, operator: OperatorProcess | None) -> None:
        self.cluster = cluster
        self.namespace = NAMESPACE
        self.unit = "slots"
        self._sizes = sizes
        self._operator = operator

    def manifests(self, gang: str) -> list[Manifest]:
        """The example, sized for this cluster."""
        return [sizing.resized(each, gang, self._sizes) for each in example(gang, NAMESPACE)]

    def finish(self, gang: str) -> None:
        """Nothing: the gang's containers end by themselves."""

    def rows(self) -> list[NodeRow]:
        """The nodes that the gangs may use, CPU in slots as large as a member."""
        placed = by_node(self.cluster.items("/api/v1/pods"))
        return [self._row(room, placed.get(room.name, [])) for room in self._sizes.nodes]

    def operator_log(self) -> str:
        """The end of the operator's log, if it is ours."""
        return self._operator.tail() if self._operator else ""

    def _row(self, room: sizing.Room, pods: list[Manifest]) -> NodeRow:
        blocks = [block_of(pod, 1, NAMESPACE) for pod in pods]
        gangs = tuple(block for block in blocks if block.gang)
        others = [p for p, block in zip(pods, blocks, strict=True) if not block.gang]
        millis = self._sizes.millis
        used = -(-sum(amount(pod, sizing.CPU) for pod in others) // millis)
        slots = max(room.allocatable // millis, used + len(gangs))
        foreign = (Block("", used, Hold.FOREIGN),) if used else ()
        return NodeRow(room.name, room.kind, slots, gangs + foreign)


@contextmanager
def current_stage(screen: Screen, run_seconds: int, image: str, *, agreed: bool) -> Iterator[Stage]:
    """The stage on the current context's cluster; all that is created goes with the block.

    Raises:
        NoConsentError: the user has not agreed; nothing was created.
    """
    cluster = Cluster()
    found = installing.survey(cluster)
    sizes = _sizes(cluster, run_seconds, image, found.scheduler)
    screen.say(proposal(cluster, found, sizes))
    _ask(agreed=agreed)
    manifests = installing.manifests(found)
    made: list[Manifest] = []
    place = Path(tempfile.mkdtemp(prefix="tutti-demo-"))
    operator: OperatorProcess | None = None
    try:
        with screen.step("create what was said above", 3):
            for manifest in manifests:
                _create(cluster, manifest, made)
            installing.await_established(cluster, made)
            _await_account(cluster)
        if not found.is_running:
            with screen.step("start the operator here: python -m tutti run", 2):
                kubeconfig = installing.operator_kubeconfig(cluster, place)
                operator = OperatorProcess(
                    Access(place, cluster.server),
                    environment={"TUTTI_LEASE_NAMESPACE": NAMESPACE},
                    kubeconfig=kubeconfig,
                )
                operator.start()
        yield CurrentStage(cluster, sizes, operator)
    finally:
        with screen.step("stop the operator and remove all that was created", 10):
            if operator is not None:
                operator.kill()
            shutil.rmtree(place, ignore_errors=True)
            _remove(cluster, made)


def _sizes(cluster: Cluster, run_seconds: int, image: str, scheduler: str) -> Sizes:
    nodes = cluster.items("/api/v1/nodes")
    placed = by_node(filter(holds_room, cluster.items("/api/v1/pods")))
    rooms = [sizing.room_of(node, placed.get(node["metadata"]["name"], [])) for node in nodes]
    largest = max(
        (quantity.offered("cpu", node["status"]["allocatable"]["cpu"]) for node in nodes),
        default=0,
    )
    return sizing.chosen(
        [room for room in rooms if room is not None],
        largest,
        run_seconds=run_seconds,
        image=image,
        scheduler=scheduler,
    )


def _ask(*, agreed: bool) -> None:
    if agreed:
        return
    if not sys.stdin.isatty():
        raise NoConsentError("Nothing was created: nobody is there to ask; --yes agrees.")
    if not click.confirm(" Create this, and remove it at the end?", default=False):
        raise NoConsentError("Nothing was created.")


def _await_account(cluster: Cluster) -> None:
    """Pods are refused until the namespace's own account is there."""
    deadline = time.monotonic() + ACCOUNT_SECONDS
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
    while cluster.find(path) is None:
        if time.monotonic() > deadline:
            raise DemoError(f"namespace {NAMESPACE} has got no service account 'default'")
        time.sleep(0.2)


def _create(cluster: Cluster, manifest: Manifest, manifests: list[Manifest]) -> None:
    """Create an object; it is noted before, so that Ctrl-C in between leaves nothing."""
    manifests.append(manifest)
    try:
        cluster.create(manifest)
    except RefusedError as refusal:
        manifests.remove(manifest)
        name = f"{manifest['kind']} {manifest['metadata']['name']}"
        raise DemoError(f"{name} cannot be created: {refusal}") from refusal


def _remove(cluster: Cluster, manifests: list[Manifest]) -> None:
    """Delete in the reverse order and wait until all is gone; what will not go is named."""
    deadline = time.monotonic() + GONE_SECONDS
    left = []
    # What is in the namespace goes with it; it was made after the cluster-wide ones.
    for manifest in reversed([each for each in manifests if "namespace" not in each["metadata"]]):
        try:
            why = _remove_one(cluster, manifest, deadline)
        except DemoError as problem:
            why = str(problem)
        if why:
            plural = collection(manifest).rsplit("/", 1)[-1]
            left.append(f"kubectl delete {plural} {manifest['metadata']['name']}  # {why}")
    if left:
        raise DemoError("not everything could be removed; what is left:\n" + "\n".join(left))


def _remove_one(cluster: Cluster, manifest: Manifest, deadline: float) -> str:
    """Delete one object if it is the demo's; answers why it is still there."""
    path = place_of(manifest)
    there = cluster.find(path)
    if there is None or not installing.is_ours(there):
        return ""
    if manifest["metadata"]["name"] == installing.GROUPS_CRD and cluster.items(
        f"{GROUPS}/podgroups"
    ):
        return "somebody has made PodGroups of their own since; they would go with it"
    cluster.delete(path)
    while cluster.find(path) is not None:
        if time.monotonic() > deadline:
            return "it takes too long"
        time.sleep(0.2)
    return ""
