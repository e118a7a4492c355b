"""``tutti dump``: a live cluster as a file for planning offline."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .inputs import CONTEXT, KUBECONFIG, PREEMPTION, environment, fail
from .output import live_cluster

if TYPE_CHECKING:
    from ..model.cluster import Snapshot
    from ..operator.settings import Settings

NO_CLUSTER = 1
FORMATS = ("json", "yaml", "wide", "table")  # values of -o for other commands

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
    "dump", epilog=EXAMPLES, short_help="Write what Tutti reads from a cluster to one file."
)
@KUBECONFIG
@CONTEXT
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True),
    help="The JSON file to write. Default: standard output.",
)
@click.option("--no-plan", is_flag=True, help="Leave out the plan.")
@PREEMPTION
def command(
    kubeconfig: str | None,
    context: str | None,
    output: str | None,
    *,
    no_plan: bool,
    preemption: str | None,
) -> None:
    """Write what Tutti reads from a cluster, and the plan that Tutti makes of it, to one file.

    The command lists nodes, namespaces, pods, PodGroups and the objects of other projects that make
    gangs, Reservations, PriorityClasses, Queues and Topologies, and objects of storage and devices
    if a pod of Tutti names a claim. It changes nothing. The file is a v1 List that kubectl can
    read. It holds only fields that decisions use. It has no secrets, no images and no environment
    variables, and of annotations only those that decisions use. Of the pods of other schedulers it
    has only the requests, and the labels if a rule between pods may count them. With another
    setting of preemption than Off it also has the PodDisruptionBudgets, and the plan names the
    gangs that would end.

    The settings come from the environment, as for the operator: see `tutti settings`.
    """
    from ..operator.settings import Settings, SettingsError

    if output in FORMATS:
        fail(f"-o names the file to write; to write JSON to a file of this name, use -o ./{output}")
    try:
        settings = Settings.from_environment(environment(preemption))
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
        settings.scheduler_name,
        settings.strategy,
        settings.policy,
        asdict(settings.budget),
        settings.bind_volumes,
    )
    plan = offline.planned(snapshot, setup).plan if with_plan else None
    return dump.write(snapshot, setup, plan)
