"""The command line of the load generator."""

from __future__ import annotations

import json
import math
import secrets
import sys
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

import click
from demo.cluster import Cluster, DemoError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .figures import Within
from .gangs import IMAGE, SCHEDULERS, Form, Load, Member
from .run import LABEL, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .run import Outcome

NOT_ALL_BOUND, WRONG_USE = 1, 2
_MOST_PODS = 100_000


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--cluster",
    type=click.Choice(["current"]),
    required=True,
    help="The cluster of your kubeconfig's current context; there is no other choice, and no "
    "default, because pods are created there.",
)
@click.option("--gangs", type=click.IntRange(1, 10_000), default=10, show_default=True)
@click.option("--members", type=click.IntRange(1, 5_000), default=8, show_default=True)
@click.option(
    "--gpus", type=click.IntRange(0, 64), default=0, show_default=True, help="Per member."
)
@click.option("--cpu", default="10m", show_default=True, help="Per member.")
@click.option("--memory", default="16Mi", show_default=True, help="Per member.")
@click.option(
    "--form",
    type=click.Choice([form.value for form in Form]),
    default=Form.TUTTI.value,
    show_default=True,
    help="How a gang is declared: for Tutti; as pods alone; as kube-scheduler's own gangs; for "
    "scheduler-plugins; for Volcano; as a pod group of Kueue's queue named default.",
)
@click.option("--scheduler", default="", help="The schedulerName of the pods, if not the usual.")
@click.option("--namespace", help="One that is there, and stays; otherwise one is made for it.")
@click.option("--image", default=IMAGE, show_default=True, help="It should run until told to end.")
@click.option("--in-flight", type=click.IntRange(1, 128), default=16, show_default=True)
@click.option(
    "--seconds",
    type=Within(1, 3600),
    default=120.0,
    show_default=True,
    help="How long to wait for the bindings after the last pod is created.",
)
@click.option("--yes", is_flag=True, help="Do not ask before anything is created.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
def main(*, output: str, yes: bool, **about: object) -> None:
    """Create gangs on your cluster, measure how fast they are bound, and remove them.

    All pods are created at once. pods/s counts from the first pod's creation to the last binding;
    p50 and p99 are the time from a gang's last member's creation to its last binding, both as seen
    by this machine. The scheduler must be at work already. Ctrl-C ends it; nothing stays behind.

    Exit code 0: all pods were bound; 1: not all of them, or the cluster failed; 2: wrong use.
    """
    aside = Console(stderr=True, highlight=False)
    gangs, members = _number(about, "gangs"), _number(about, "members")
    if gangs * members > _MOST_PODS:
        raise click.UsageError(f"{gangs} gangs of {members} are more than {_MOST_PODS} pods")
    try:
        cluster = Cluster()
        mark = secrets.token_hex(3)
        load = _load(about, mark)
        run = Run(cluster, load, {f"g{mark}-{i}": members for i in range(gangs)})
        run.check()
        aside.print(_proposal(cluster, load, about), markup=False, soft_wrap=True)
        _ask(aside, agreed=yes)
        outcome = _play(run, about, aside)
    except DemoError as problem:
        _end(aside, str(problem))
    if output == "json":
        print(json.dumps({k: _finite(v) for k, v in asdict(outcome).items()}))
    else:
        Console().print(_table(outcome))
    if outcome.bound < outcome.pods:
        _end(aside, f"not all were bound; is a scheduler named {_scheduler(load)} at work?")


def _play(run: Run, about: dict[str, object], aside: Console) -> Outcome:
    try:
        run.prepare(creates_namespace=about["namespace"] is None)
        with _progress(run.pods, aside) as tick:
            return run.play(_number(about, "in_flight"), float(str(about["seconds"])), tick)
    finally:
        with aside.status("removing what was created"):
            run.remove()


def _load(about: dict[str, object], mark: str) -> Load:
    member = Member(
        gpus=_number(about, "gpus"),
        cpu=str(about["cpu"]),
        memory=str(about["memory"]),
        image=str(about["image"]),
    )
    return Load(
        form=Form(str(about["form"])),
        namespace=str(about["namespace"] or f"tutti-load-{mark}"),
        member=member,
        labels={LABEL: mark},
        scheduler=str(about["scheduler"]),
    )


def _proposal(cluster: Cluster, load: Load, about: dict[str, object]) -> str:
    asked = ", ".join(f"{v} {k}" for k, v in load.member.resources["requests"].items())
    made = "a new namespace" if about["namespace"] is None else "the namespace"
    return (
        f"On {cluster.context} ({cluster.server}), in {made} {load.namespace}:\n"
        f"{about['gangs']} gangs of {about['members']} pods for the scheduler {_scheduler(load)}; "
        f"each pod asks for {asked}\nand runs {load.member.image}. "
        "At the end, or on Ctrl-C, all of it is removed."
    )


def _ask(aside: Console, *, agreed: bool) -> None:
    if agreed:
        return
    if not sys.stdin.isatty():
        _end(aside, "Nothing was created: nobody is there to ask; --yes agrees.", WRONG_USE)
    if not click.confirm("Create this, and remove it at the end?", default=False, err=True):
        _end(aside, "Nothing was created.", WRONG_USE)


@contextmanager
def _progress(pods: int, aside: Console) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=aside) as progress:
        created, bound = (progress.add_task(text, total=pods) for text in ("created", "bound"))

        def tick(n_created: int, n_bound: int) -> None:
            progress.update(created, completed=n_created)
            progress.update(bound, completed=n_bound)

        yield tick


def _table(outcome: Outcome) -> Table:
    table = Table("", "", show_header=False)
    table.add_row("pods bound", f"{outcome.bound} of {outcome.pods}")
    table.add_row("gangs whole", f"{outcome.whole} of {outcome.gangs}")
    table.add_row("pods created per second", f"{outcome.created_per_second:.0f}")
    table.add_row("pods bound per second", f"{outcome.pods_per_second:.0f}")
    table.add_row("a gang's wait, p50", f"{outcome.wait_p50:.2f} s")
    table.add_row("a gang's wait, p99", f"{outcome.wait_p99:.2f} s")
    return table


def _scheduler(load: Load) -> str:
    return load.scheduler or SCHEDULERS[load.form]


def _number(about: dict[str, object], name: str) -> int:
    return int(str(about[name]))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _end(aside: Console, sentence: str, code: int = NOT_ALL_BOUND) -> NoReturn:
    aside.print(sentence, markup=False, soft_wrap=True)
    sys.exit(code)
