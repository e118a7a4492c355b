"""``tutti explain``: why gangs wait and what would start them, on a live cluster or from files.

It lists, plans and prints, and never writes to the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from ..model.terminal import visible
from . import inputs
from .inputs import fail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..model.cluster import Snapshot
    from ..model.decisions import Plan
    from ..model.keys import GangKey
    from ..queues.use import GangCover
    from ..whatif import Advice, Planner
    from ..whatif.gang_state import GangStanding

NOT_FOUND = 1  # no such gang, or no cluster


@dataclass(frozen=True, slots=True)
class Explained:
    """The state of one gang, and what would help if it waits."""

    standing: GangStanding
    advice: Advice | None


@dataclass(frozen=True)
class Question:
    """The Snapshot to explain, its planner, and what keeps all gangs from starting."""

    snapshot: Snapshot
    planner: Planner
    hindrance: str = ""

    @cached_property
    def covers(self) -> Mapping[GangKey, GangCover]:
        """What is covered of each gang that runs in a queue."""
        from ..planning.observed_demand import observe
        from ..planning.queued_gangs import queue_gangs
        from ..queues.use import gang_covers

        charged = queue_gangs(observe(self.snapshot)).charged
        return {} if charged is None else gang_covers(charged, self.planner.policy.preemption)

    def explained(self, plan: Plan, key: GangKey, advice: Advice | None) -> Iterator[Explained]:
        """The state of the gang and the advice; nothing if the gang does not exist."""
        from ..whatif.gang_state import GangOutcome, standing

        gang_standing = standing(self.snapshot, plan, key)
        if gang_standing is not None:
            gang_standing = replace(gang_standing, cover=self.covers.get(key))
        if gang_standing is not None and gang_standing.state is GangOutcome.STARTS:
            gang_standing = replace(gang_standing, hindrance=self.hindrance)
        if gang_standing is not None:
            yield Explained(gang_standing, advice)


@click.command("explain", short_help="Say why gangs wait and what would start them.")
@click.argument("gang", required=False)
@inputs.FILES
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The format: sentences, or the same as data.",
)
@click.option("-n", "--namespace", help="Explain gangs of this namespace. Default: of all.")
@click.option(
    "-A",
    "--all-namespaces",
    "everywhere",
    is_flag=True,
    help="Explain gangs of all namespaces, even with -n.",
)
@click.option(
    "--preemption",
    type=click.Choice(inputs.PREEMPTIONS),
    help="What if: use this setting of preemption, and say who would end for a gang. Default: "
    "$TUTTI_PREEMPTION, or the setting of the dump.",
)
@inputs.KUBECONFIG
@inputs.CONTEXT
def command(
    gang: str | None,
    paths: Sequence[str],
    *,
    output: str,
    namespace: str | None,
    everywhere: bool,
    preemption: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Say why GANG waits and what would start it. Without GANG, explain all gangs that wait.

    GANG is NAMESPACE/NAME, or NAME if only one namespace has a gang of this name. The planner tries
    each change that could start the gang: more nodes of an existing kind, a smaller minMember, the
    end of bound gangs, or fewer waiting gangs. "proved" means that no smaller change is enough. Of
    several gangs that wait for the same, the command explains one.

    For a live cluster, the settings come from the environment, as for the operator. For files, they
    come from the dump, if there is one, or are the defaults. Exit code 1: there is no such gang or
    no cluster; 2: a file, a setting or the command line is wrong.
    """
    if everywhere:
        namespace = None
    space, is_full, _ = (gang or "").partition("/")
    if namespace and is_full and space != namespace:
        fail(f"{gang} and -n {namespace} contradict each other: leave one of them out")
    if paths:
        question = _from_files(paths, preemption)
    else:
        question = _from_cluster(kubeconfig, context, preemption)
    if gang:
        is_plain = namespace is not None and "/" not in gang
        explained = _explanations_of(question, f"{namespace}/{gang}" if is_plain else gang)
    else:
        explained = _all(question, namespace)
    if output != "text":
        from .output.watch import print_data

        print_data(data(explained), output)
        return
    no_gang_waits = f"no gang waits{f' in namespace {namespace}' if namespace else ''}"
    texts = ("\n".join(map(visible, sentences_of(explanation))) for explanation in explained)
    click.echo("\n\n".join(texts) or visible(no_gang_waits))


def _from_files(paths: Sequence[str], preemption: str | None = None) -> Question:
    """The Snapshot of the files, and the planner of the dump among them, or the default planner."""
    from .output import offline

    snapshot, objects = inputs.read_files(paths)
    setup = offline.changed(offline.setup_of(objects), None, None, preemption)
    return Question(snapshot, offline.planner_of(setup))


def _from_cluster(
    kubeconfig: str | None, context: str | None, preemption: str | None = None
) -> Question:
    """The cluster as it is now, and the planner that the environment configures."""
    from ..operator import main as operator
    from ..operator.settings import Settings
    from .output import live_cluster, offline, watch
    from .output.gang_rows import hindrance

    try:
        view = watch.look(None, kubeconfig, context, preemption)
    except live_cluster.OutOfReach as problem:
        fail(str(problem), NOT_FOUND)
    settings = Settings.from_environment(inputs.environment(preemption))
    planner = offline.planner_of(operator.setup_of(settings))
    return Question(view.snapshot, planner, hindrance(view.rows))


def _explanations_of(question: Question, name: str) -> Sequence[Explained]:
    return explain_gang(question, _key(question.snapshot, name))


def explain_gang(question: Question, key: GangKey) -> Sequence[Explained]:
    """The state of one gang, and what would start it; empty if there is no such gang."""
    from ..whatif import advise

    snapshot, planner = question.snapshot, question.planner
    plan = planner.plan(snapshot)
    return list(question.explained(plan, key, advise(snapshot, plan, key, planner)))


def data(explained: Sequence[Explained]) -> Mapping[str, Any]:
    """The explanations as data for programs: docs/plugin.md has the fields."""
    return {"gangs": [_plain(explanation) for explanation in explained]}


def _all(question: Question, namespace: str | None) -> Sequence[Explained]:
    from ..whatif import advise_all

    plan = question.planner.plan(question.snapshot)
    held_back = plan.placements if question.hindrance else ()
    with_advice: list[tuple[GangKey, Advice | None]] = [
        (placement.gang, None)
        for placement in held_back
        if namespace in (None, placement.gang.namespace)
    ]
    all_advice = advise_all(question.snapshot, plan, question.planner, namespace)
    with_advice += [(advice.gang, advice) for advice in all_advice]
    return [
        explanation
        for key, advice in with_advice
        for explanation in question.explained(plan, key, advice)
    ]


def _key(snapshot: Snapshot, name: str) -> GangKey:
    """The key of the named gang; a PodGroup comes before a pod of the same name."""
    from ..model.keys import POD_GROUP

    space, _, plain = name.rpartition("/")
    meant = [
        gang.key
        for gang in snapshot.gangs
        if gang.key.name == plain and space in ("", gang.key.namespace)
    ]
    meant.sort(key=lambda key: (key.kind != POD_GROUP, key))
    spaces = sorted({key.namespace for key in meant})
    if not meant:
        fail(f"there is no gang {name}", NOT_FOUND)
    if len(spaces) > 1:
        fail(f"{name} is in {', '.join(spaces)}: write {spaces[0]}/{name}")
    return meant[0]


def sentences_of(explained: Explained) -> Sequence[str]:
    """The explanation in sentences; the advice on a waiting gang already says that it waits."""
    from ..whatif import sentences
    from ..whatif.gang_state import GangOutcome

    advice, standing = explained.advice, explained.standing
    lines = [] if advice is None else sentences.of_advice(advice)
    if advice is not None and standing.state is GangOutcome.WAITS:
        return lines
    return [sentences.of_standing(standing), *lines]


def _plain(value: Any) -> Any:
    """A value as JSON: fields in camelCase, keys as ``namespace/name``, amounts as quantities."""
    from ..gang.quantities import listed
    from ..model.keys import GangKey
    from ..model.resources import Resources
    from ..whatif.results import OPTIONAL

    if isinstance(value, GangKey):
        return str(value)
    if isinstance(value, Resources):
        return dict(listed(value))
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {
            _camel(field.name): _plain(getattr(value, field.name))
            for field in fields(value)
            if getattr(value, field.name) or not field.metadata.get(OPTIONAL)
        }
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
