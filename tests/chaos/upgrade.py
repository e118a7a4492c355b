"""``python -m tests.chaos.upgrade``: a version without queues and this one take turns.

Gangs run meanwhile. Without Queues, a change of the leader writes nothing but the Lease, and one
version ends what the other was killed at. With Queues, the earlier version knows no limit, and what
it does is charged once this one leads again. ``tests/cycle/test_queue_upgrade.py`` has the same
with an API server in memory.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..api.bodies import queue
from ..harness.judge import Promise
from ..harness.operator_process import ROOT, OperatorProcess
from ..harness.rig import QUEUES, Rig, members, pod, pod_group, remove_queues

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUPS = "/apis/tutti.dev/v1alpha1/namespaces/ml/podgroups"
EARLIER = "64d85bf"  # the last commit whose Tutti knows no Queues
MANY = 24  # members of a gang whose start is interrupted
QUIET_SECONDS = 5.0


class Upgrade:
    """Two versions on one cluster, of which one leads."""

    def __init__(self, rig: Rig, source: Path) -> None:
        self.rig = rig
        self.new = rig.operator
        self.old = OperatorProcess(rig.plane, environment={"PYTHONPATH": str(source)})
        self.old.identity = "tutti-old"
        self.old.log = rig.plane.directory / "old.log"

    def gang(self, name: str, count: int = 2) -> None:
        """Create a gang of members with one core."""
        self.rig.create(pod_group(name, count), *members(name, count, cpu=1))

    def start(self, name: str, count: int = 2) -> None:
        """Create a gang, and wait until it is bound."""
        self.gang(name, count)
        self.rig.until_bound(name, count)

    def nodes(self) -> Mapping[str, str]:
        """The nodes of the pods that have one, by uid."""
        return {
            pod["metadata"]["uid"]: pod["spec"]["nodeName"]
            for pod in self.rig.pods()
            if "nodeName" in pod["spec"]
        }

    def hand_over(self, to: OperatorProcess, *, by_kill: bool = False) -> None:
        """Let the other version lead."""
        before = _terms(to)
        other = self.old if to is self.new else self.new
        if by_kill:
            other.kill()
        to.start(ready=False)
        if not by_kill:
            self.rig.until(lambda: to.probe("healthz") == "ok", "it stands by")
            other.stop()
        self.rig.until(lambda: _terms(to) > before, f"{to.identity} leads")

    def hand_over_at_rest(self, to: OperatorProcess) -> None:
        """The same while gangs run and none waits: nothing may change."""
        self.rig.until(lambda: not self.rig.quiet(QUIET_SECONDS), "nothing is written")
        before = self._versions()
        self.hand_over(to)
        writes = self.rig.quiet(QUIET_SECONDS)
        assert not writes, writes
        assert self._versions() == before, "an object has changed"

    def _versions(self) -> Mapping[str, str]:
        groups = self.rig.plane.request("GET", GROUPS)["items"]
        return {
            each["metadata"]["uid"]: each["metadata"]["resourceVersion"]
            for each in (*groups, *self.rig.pods())
        }

    def await_no_reservation(self) -> None:
        """Wait until nothing is reserved."""
        self.rig.until(lambda: not self.rig.reservations(), "no Reservation is left")


def _terms(operator: OperatorProcess) -> int:
    return operator.log.read_text().count("leads as") if operator.log.exists() else 0


def without_queues(upgrade: Upgrade) -> None:
    """Upgrade, roll back, and kill each version in the middle of a start."""
    rig, old, new = upgrade.rig, upgrade.old, upgrade.new
    old.start()
    rig.create(pod("alone", cpu=1))
    for name in ("one", "two"):
        upgrade.start(name)
    rig.until(lambda: all(pod["status"]["phase"] == "Running" for pod in rig.pods()), "all run")
    upgrade.hand_over_at_rest(new)
    click.echo("upgrade: no write but to the Lease")
    upgrade.start("three")
    upgrade.await_no_reservation()
    upgrade.hand_over_at_rest(old)
    click.echo("rollback: no write but to the Lease")
    for name, successor in (("begun-by-old", new), ("begun-by-new", old)):
        upgrade.gang(name, MANY)
        rig.until(rig.reservations, "it is reserved")
        upgrade.hand_over(successor, by_kill=True)
        rig.until_bound(name, MANY)
        upgrade.await_no_reservation()
        click.echo(f"{name}: the other version ends it")


def with_queues(upgrade: Upgrade) -> None:
    """The earlier version leads for a while although there is a Queue."""
    rig, old, new = upgrade.rig, upgrade.old, upgrade.new
    upgrade.hand_over(new)
    before = upgrade.nodes()
    limit = [{"name": "cpu", "limit": len(before) + 2}]
    rig.create(queue({"resources": limit, "namespaces": {}, "defaultFor": {}}, "all"))
    upgrade.start("four")
    upgrade.gang("five")
    rig.until_says("five", "Reserved", "QueueAtLimit")
    before = {**before, **upgrade.nodes()}
    upgrade.hand_over(old)
    rig.until_bound("five", 2)
    click.echo("the earlier version starts a gang above the limit, as it knows none")
    before = {**before, **upgrade.nodes()}
    upgrade.hand_over(new)
    upgrade.gang("six")
    click.echo(rig.until_says("six", "Reserved", "QueueAtLimit", f"{len(before)} of "))
    limit = [{"name": "cpu", "limit": len(before) + 2}]
    rig.plane.request("PATCH", f"{QUEUES}/all", {"spec": {"resources": limit}})
    rig.until_bound("six", 2)
    assert before.items() <= upgrade.nodes().items(), "a gang that ran has ended"
    remove_queues(rig.plane.request)
    upgrade.await_no_reservation()


@click.command()
@click.option("--earlier", default=EARLIER, show_default=True, help="A commit without Queues.")
def main(earlier: str) -> None:
    """Let a version without queues and this one take turns while gangs run."""
    archive = subprocess.run(
        ["git", "archive", earlier, "operator"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory() as place, Rig.start(operator=False) as rig:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(place, filter="data")
        rig.nodes(4, cpu=30, memory="64Gi")
        upgrade = Upgrade(rig, Path(place) / "operator")
        try:
            without_queues(upgrade)
            with_queues(upgrade)
        finally:
            upgrade.old.stop()
        verdict = rig.verdict()
        click.echo(verdict.summary())
        others = [
            violation for violation in verdict.violations if violation.promise is not Promise.LIMITS
        ]
        assert not others, "the earlier version may exceed the limit, and nothing else"
        raise SystemExit(0)


if __name__ == "__main__":
    main()
