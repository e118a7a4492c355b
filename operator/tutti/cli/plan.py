"""``tutti plan``: the planner on files, also with changes to the cluster."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from .inputs import FILE, PREEMPTIONS, contents, decode_texts, fail, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..dump import Objects, Text
    from ..model.cluster import Snapshot
    from .output.offline import Planned

BROKEN = 1
NOT_REPRODUCED = 3
ABOUT_SPARK = ("spark_conf", "spark_version")
AS_IT_IS = ("scheduler_name", "namespace", "everywhere")  # options that change nothing in the plan
OBJECTIVES = ("resources", "gangs", "members")

EXAMPLES = """\b
Examples:
  # what would start now, and why the rest waits
  tutti dump -o now.json && tutti plan -f now.json
  kinds=nodes,ns,pods,ptg,reservations,priorityclasses
  kubectl get $kinds,queues.tutti.dev,topologies.tutti.dev -A -o yaml \\
    | tutti plan -f -
\b
  # before you create a gang: would it start, and which gangs would it delay?
  tutti plan -f now.json --add train.yaml
\b
  # before you submit a Spark application: would it start now?
  tutti plan -f now.json --spark-properties spark.properties --namespace etl
\b
  # are four more nodes like gpu-7 enough? may gpu-3 be drained?
  tutti plan -f now.json --add-nodes 4 --like gpu-7
  tutti plan -f now.json --remove-node gpu-3
\b
  # with another objective or priority
  tutti plan -f now.json --objective gangs
  tutti plan -f now.json --set-priority ml/train=1000
\b
  # who would end for whom, before you turn preemption on
  tutti plan -f now.json --preemption Reclaim
\b
  # with another quota, before you apply it: which gangs would start, or wait?
  tutti plan -f now.json --set-queue vision.limit.nvidia.com/gpu=48
  tutti plan -f now.json --add-queue team.yaml
\b
Exit codes: 0 planned; 1 the plan failed its check, which is a bug;
2 a file or an option is wrong; 3 the plan differs from the plan in the dump.
"""


def _strategies(_context: click.Context, _option: click.Parameter, begin: str) -> list[str]:
    """The installed strategies that complete a word."""
    from ..strategies import names

    return [name for name in names() if name.startswith(begin)]


@click.command(
    "plan",
    epilog=EXAMPLES,
    short_help="Plan offline: which gangs would start, and why the others wait.",
)
@click.option(
    "-f",
    "--filename",
    "files",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="A dump, output of `kubectl get -o yaml`, manifests, or a directory of such files; - for "
    "standard input. You can repeat this option: all files together describe one cluster.",
)
@click.argument("more", type=FILE, nargs=-1, metavar="[FILE]...")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "picture"]),
    default="table",
    show_default=True,
    help="The format of the plan.",
)
@click.option(
    "-n",
    "--namespace",
    help="Show only gangs of this namespace; Tutti still plans all. Default: show all.",
)
@click.option(
    "-A",
    "--all-namespaces",
    "everywhere",
    is_flag=True,
    help="Show the gangs of all namespaces, even with -n.",
)
@click.option(
    "--scheduler-name",
    default="",
    help="Plan pods with this scheduler name. Default: that of the dump.",
)
@click.option("--add-nodes", type=int, multiple=True, help="What if: add this many empty nodes …")
@click.option("--like", metavar="NODE", multiple=True, help="… of the same kind as this node.")
@click.option("--remove-node", metavar="NODE", multiple=True, help="What if: remove this node.")
@click.option(
    "--add", type=FILE, metavar="FILE", multiple=True, help="What if: add the objects of this file."
)
@click.option(
    "--spark-properties",
    type=FILE,
    metavar="FILE",
    multiple=True,
    help="What if: add the Spark application that this properties file describes, in the namespace "
    "of -n or else of the file.",
)
@click.option(
    "--spark-conf",
    metavar="NAME=VALUE",
    multiple=True,
    help="… with this property instead of the one in the file.",
)
@click.option(
    "--spark-version",
    metavar="X.Y",
    help="… with this version of Spark. Default: the newest that Tutti knows.",
)
@click.option(
    "--set-priority",
    metavar="GANG=N",
    multiple=True,
    help="What if: give the pods of this gang this priority.",
)
@click.option(
    "--set-queue",
    metavar="QUEUE.FIELD=VALUE",
    multiple=True,
    help="What if: change a queue. The fields are limit.RESOURCE and guaranteed.RESOURCE (none "
    "for no quota), weight, parent, stop, mode and preemption.",
)
@click.option(
    "--add-queue",
    type=FILE,
    metavar="FILE",
    multiple=True,
    help="What if: add the Queues of this file, or replace those of the same name.",
)
@click.option(
    "--strategy",
    shell_complete=_strategies,
    help="What if: use this strategy.",
)
@click.option("--objective", type=click.Choice(OBJECTIVES), help="What if: use this objective.")
@click.option(
    "--preemption",
    type=click.Choice(PREEMPTIONS),
    help="What if: use this setting of preemption, and say who would end for which gangs.",
)
def command(files: tuple[str, ...], more: tuple[str, ...], output: str, **options: object) -> None:
    """Plan offline: which gangs would start, where, and why the others wait.

    The command reads files instead of a cluster and changes nothing. The same objects give the same
    plan, in any order. Tutti reads a manifest as if you created it now; Jobs, Deployments,
    ReplicaSets and StatefulSets count as their pods.

    With what-if options, Tutti plans twice, without and with the options, and shows the difference:
    gangs that start, that no longer start, that move, or that wait for another reason.
    """
    from .output import offline, render

    paths = (*files, *more)
    if not paths:
        fail("name a file: tutti plan -f FILE; - means standard input")
    what_if = _WhatIf(options)
    texts, name = contents(paths), what_if.text("scheduler_name")
    snapshot, objects = decode_texts(texts, name)
    setup = offline.setup_of(objects)
    before = offline.planned(snapshot, setup)
    if not what_if.all("spark_properties") and what_if.is_about_spark:
        fail("--spark-conf and --spark-version need --spark-properties")
    if not what_if.is_any:
        render.show(output, before, namespace=what_if.shown_namespace)
        sys.exit(BROKEN if before.broken else _compared(before, objects))
    if added := _added(what_if, before.snapshot, objects):
        snapshot, objects = decode_texts([*texts, *added], name)
    changed_setup = offline.changed(
        setup,
        what_if.text("strategy") or None,
        what_if.text("objective") or None,
        what_if.text("preemption") or None,
    )
    after = offline.planned(_changed(snapshot, objects, what_if), changed_setup)
    render.show(output, after, before, namespace=what_if.shown_namespace)
    if output == "table" and what_if.all("spark_properties"):
        _tell_what_is_missing(before, after)
    sys.exit(BROKEN if before.broken or after.broken else 0)


class _WhatIf:
    """The options of the command, by name."""

    def __init__(self, options: dict[str, object]) -> None:
        self._options = options

    @property
    def is_any(self) -> bool:
        """Whether an option changes the cluster or the planner."""
        return any(value for name, value in self._options.items() if name not in AS_IT_IS)

    @property
    def is_about_spark(self) -> bool:
        """Whether an option says how to read a Spark application."""
        return any(self._options.get(name) for name in ABOUT_SPARK)

    @property
    def shown_namespace(self) -> str:
        """The namespace whose gangs are shown, or empty; with Spark, -n has another meaning."""
        is_for_spark = bool(self.all("spark_properties"))
        return "" if is_for_spark or self._options.get("everywhere") else self.text("namespace")

    def text(self, name: str) -> str:
        """An option that can be given once; empty if it is absent."""
        value = self._options.get(name)
        return value if isinstance(value, str) else ""

    def all(self, name: str) -> Sequence[str]:
        """An option that can be given several times."""
        value = self._options.get(name)
        return [str(item) for item in value] if isinstance(value, tuple) else []


def _added(what_if: _WhatIf, snapshot: Snapshot, objects: Objects) -> Sequence[Text]:
    """The contents of the files whose objects are added to the cluster."""
    from .output import spark_gangs

    spark_options = spark_gangs.SparkOptions(
        what_if.text("spark_version"), what_if.all("spark_conf"), what_if.text("namespace")
    )
    apps = spark_gangs.texts(
        what_if.all("spark_properties"), spark_options, snapshot, objects.scheduler
    )
    return [*contents(what_if.all("add")), *apps]


def _changed(snapshot: Snapshot, objects: Objects, what_if: _WhatIf) -> Snapshot:
    from ..whatif import changes, edits

    snapshot = _with_queues(snapshot, objects, what_if.all("add_queue"))
    counts, models = what_if.all("add_nodes"), what_if.all("like")
    if len(counts) != len(models):
        fail("give --add-nodes N and --like NODE together, once for each kind of node")
    nodes = [(int(count), like) for count, like in zip(counts, models, strict=True)]
    try:
        wanted_changes = changes.Changes(
            nodes,
            what_if.all("remove_node"),
            list(map(_priority, what_if.all("set_priority"))),
            what_if.all("set_queue"),
        )
        return changes.change(snapshot, wanted_changes)
    except edits.WrongChange as problem:
        fail(str(problem))


def _with_queues(snapshot: Snapshot, objects: Objects, paths: Sequence[str]) -> Snapshot:
    """The cluster with the Queues of these files added."""
    from ..kube import kinds
    from ..whatif.queue_edits import with_queue

    namespaces = [item.value for item in objects.items.get(kinds.NAMESPACE, ())]
    for path in paths:
        queues = decode_texts(contents([path]))[0].queues
        if not queues:
            fail(f"--add-queue {path}: this file has no Queue")
        for queue in queues:
            snapshot = with_queue(snapshot, queue, namespaces)
    return snapshot


def _priority(words: str) -> tuple[str, int]:
    gang, _, priority = words.rpartition("=")
    if not gang or not priority.removeprefix("-").isdecimal():
        fail(f"--set-priority {words}: write it as namespace/name=number")
    return gang, int(priority)


def _tell_what_is_missing(before: Planned, after: Planned) -> None:
    """For each new gang that waits, print what would start it."""
    from ..whatif import advise, sentences
    from .output import offline

    gangs_before = {line.gang.key for line in before.lines}
    planner = offline.planner_of(after.setup)
    advised = (
        advise(after.snapshot, after.plan, line.gang.key, planner)
        for line in after.lines
        if line.gang.key not in gangs_before
    )
    for advice in filter(None, advised):
        for sentence in sentences.of_advice(advice):
            say(sentence)


def _compared(planned: Planned, objects: Objects) -> int:
    """The exit code: 0 if the plan is the one in the dump, or the dump has none; prints which."""
    from .. import dump

    dumped_plan = objects.header and objects.header.plan
    if dumped_plan is None:
        return 0
    if json.loads(json.dumps(dump.plan_record(planned.plan))) == dumped_plan:
        click.echo("the plan is the one in the dump", err=True)
        return 0
    click.echo(
        "the plan differs from the one in the dump, made by another version, or this is a bug",
        err=True,
    )
    return NOT_REPRODUCED
