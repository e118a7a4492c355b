"""``tutti dump``: a live cluster as a file that can be planned offline."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import live_cluster
from .inputs import fail

if TYPE_CHECKING:
    from ..model.cluster import Snapshot
    from ..settings import Settings

NO_CLUSTER = 1
FORMATS = ("json", "yaml", "wide", "table")  # what -o means to the other commands

EXAMPLES = """\b
Examples:
  tutti dump | tutti plan -f -
  tutti dump -o now.json --context prod
  tutti dump | jq -c '.items[] | select(.kind == "PodGroup")'
\b
Exit codes: 0 written; 1 the cluster cannot be reached or does not answer;
2 an option or a setting is wrong.
"""


@click.command(
    "dump", epilog=EXAMPLES, short_help="Write what Tutti sees of a cluster as one file."
)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Cluster to read. Default: $KUBECONFIG, the pod's own service account, ~/.kube/config.",
)
@click.option("--context", help="The kubeconfig's context. Default: its current one.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True),
    help="File to write, as JSON. Default: standard output.",
)
@click.option("--no-plan", is_flag=True, help="Leave out the plan that Tutti would make of it.")
def command(
    kubeconfig: str | None, context: str | None, output: str | None, *, no_plan: bool
) -> None:
    """Write what Tutti sees of a cluster, and the plan it makes of that, as one file.

    Lists nodes, namespaces, pods, PodGroups, Reservations and PriorityClasses, and what is of
    storage where a pod of Tutti's names a claim; nothing is changed. The file is a v1 List that
    kubectl reads, too. It holds only what decisions use: no environment variables, secrets, images
    or annotations, but those that say how large a Spark application is; of other schedulers' pods
    only what they ask for, and their labels while a rule between pods may count them.

    How is planned comes from the same variables as the operator's settings: see `tutti settings`.
    """
    from ..settings import Settings, SettingsError

    if output in FORMATS:
        fail(f"-o names the file to write, and a dump is JSON; a file of that name is ./{output}")
    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as wrong:
        fail("; ".join(wrong.sentences))
    try:
        state = live_cluster.look(settings, kubeconfig, context)
    except live_cluster.OutOfReach as problem:
        fail(str(problem), NO_CLUSTER)
    written = _written(state.snapshot(time.time()), settings, with_plan=not no_plan)
    if output is None:
        click.echo(written, nl=False)
        return
    try:
        Path(output).write_text(written)
    except OSError as problem:
        fail(f"{output}: {problem.strerror}")


def _written(snapshot: Snapshot, settings: Settings, *, with_plan: bool) -> str:
    from dataclasses import asdict

    from .. import dump
    from .output import offline

    setup = dump.PlannerConfig(
        settings.scheduler_name, settings.strategy, settings.policy, asdict(settings.budget)
    )
    made = offline.planned(snapshot, setup).plan if with_plan else None
    return dump.write(snapshot, setup, made)
