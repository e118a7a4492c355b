"""``tutti explain``: why gangs wait and what would start them, on a live cluster or from files.

It lists, plans and prints; nothing is ever written.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import click

from . import files
from .files import fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Snapshot
    from ..model.keys import GangKey
    from ..planning.advice import Advice, Planner
    from ..planning.advice.standing import Standing

NOT_FOUND = 1  # no such gang, or no cluster


@dataclass(frozen=True, slots=True)
class Explained:
    """What has become of one gang, and what would help if it waits."""

    standing: Standing
    advice: Advice | None


@click.command("explain", short_help="Say why gangs wait and what would start them.")
@click.argument("gang", required=False)
@click.option(
    "-f",
    "--filename",
    "paths",
    multiple=True,
    metavar="FILE",
    help="Look at files instead of a cluster: a dump, `kubectl get -o yaml` output, manifests, "
    "directories of them; - is standard input. May be given again.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="Sentences, or the same as data.",
)
@click.option("-n", "--namespace", help="Gangs of this namespace. Default: of all.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Cluster to look at. Default: $KUBECONFIG, the pod's own service account, ~/.kube/config.",
)
@click.option("--context", help="The kubeconfig's context. Default: its current one.")
def command(
    gang: str | None,
    paths: Sequence[str],
    *,
    output: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Say why GANG waits and what would start it; without GANG, all that wait.

    GANG is NAMESPACE/NAME, or a name that only one namespace has. What would start it: more nodes
    of a kind that is there, a smaller minMember, the end of bound gangs, other gangs not wanting
    the room. Each is tried on the planner; "proved" says that no less will do. Of gangs that wait
    for the same, one is explained.

    What is asked of a live cluster is planned by the operator's settings, from the environment; of
    files by what a dump says, else by the defaults. Exit code 1: there is no such gang, or no
    cluster; 2: a file, a setting or the command line is wrong.
    """
    snapshot, planner = _from_files(paths) if paths else _from_cluster(kubeconfig, context)
    if gang:
        is_plain = namespace is not None and "/" not in gang
        explained = _one(snapshot, planner, f"{namespace}/{gang}" if is_plain else gang)
    else:
        explained = _all(snapshot, planner, namespace)
    if output != "text":
        from .looking import print_data

        print_data({"gangs": [_plain(one) for one in explained]}, output)
        return
    click.echo("\n\n".join("\n".join(_lines(one)) for one in explained) or "no gang waits")


def _from_files(paths: Sequence[str]) -> tuple[Snapshot, Planner]:
    """What the files hold, and who planned it, if one of them is a dump."""
    from . import planning

    snapshot, found = files.observed(paths)
    return snapshot, planning.planner_of(planning.setup_of(found))


def _from_cluster(kubeconfig: str | None, context: str | None) -> tuple[Snapshot, Planner]:
    """The cluster as it is now, and who plans it, as far as the environment says it."""
    from .. import main as operator
    from ..settings import Settings, SettingsError
    from . import live, planning

    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as wrong:
        fail("; ".join(wrong.sentences))
    planner = planning.planner_of(operator.setup_of(settings))
    try:
        world = live.look(settings, kubeconfig, context)
    except live.OutOfReach as problem:
        fail(str(problem), NOT_FOUND)
    return world.snapshot(time.time()), planner


def _one(snapshot: Snapshot, planner: Planner, name: str) -> Sequence[Explained]:
    from ..planning.advice import advise
    from ..planning.advice.standing import standing

    key = _key(snapshot, name)
    plan = planner.plan(snapshot)
    found = standing(snapshot, plan, key)
    return [Explained(found, advise(snapshot, plan, key, planner))] if found is not None else []


def _all(snapshot: Snapshot, planner: Planner, namespace: str | None) -> Sequence[Explained]:
    from ..planning.advice import advise_all
    from ..planning.advice.standing import standing

    plan = planner.plan(snapshot)
    given = advise_all(snapshot, plan, planner, namespace)
    found = ((standing(snapshot, plan, advice.gang), advice) for advice in given)
    return [Explained(one, advice) for one, advice in found if one is not None]


def _key(snapshot: Snapshot, name: str) -> GangKey:
    """The gang that is meant; one made from a PodGroup before a pod of the same name."""
    from ..model.keys import Origin

    space, _, plain = name.rpartition("/")
    meant = [
        gang.key
        for gang in snapshot.gangs
        if gang.key.name == plain and space in ("", gang.key.namespace)
    ]
    meant.sort(key=lambda key: (key.origin is not Origin.POD_GROUP, key))
    spaces = sorted({key.namespace for key in meant})
    if not meant:
        fail(f"there is no gang {name}", NOT_FOUND)
    if len(spaces) > 1:
        fail(f"{name} is in {', '.join(spaces)}: say which, as {spaces[0]}/{name}")
    return meant[0]


def _lines(found: Explained) -> Sequence[str]:
    """In words; of a gang that only waits, the advice says so itself."""
    from ..planning.advice import words
    from ..planning.advice.standing import State

    said = [] if found.advice is None else words.of_advice(found.advice)
    is_said = found.advice is not None and found.standing.state is State.WAITS
    return said if is_said else [words.of_standing(found.standing), *said]


def _plain(value: Any) -> Any:
    """As JSON holds it: fields in camelCase, keys as ``namespace/name``, amounts as written."""
    from ..model.keys import GangKey
    from ..model.resources import Resources
    from ..planning.amounts import listed

    if isinstance(value, GangKey):
        return str(value)
    if isinstance(value, Resources):
        return dict(listed(value))
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if is_dataclass(value):
        return {_camel(one.name): _plain(getattr(value, one.name)) for one in fields(value)}
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
