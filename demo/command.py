"""The command line of the demo: what can be chosen, and what the exit code means."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich.markup import escape
from tests.harness.controlplane.errors import ControlPlaneError
from tests.harness.operator_process import OperatorError

from .cluster import DemoError
from .consent import NoConsentError
from .screen import Screen
from .stage import GANGS, GANGS_IN_QUEUES
from .story import Pace, Story

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from .stage import Stage

RUN_SECONDS = 20
NOT_SEEN, WRONG_USE = 1, 2


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--cluster",
    type=click.Choice(["current"]),
    help="Use the cluster of your kubeconfig's current context instead of a control plane of the "
    "demo's own. The demo says what it would create, asks, and removes all of it at the end.",
)
@click.option("--yes", is_flag=True, help="Do not ask before using --cluster current.")
@click.option(
    "--run-seconds",
    type=click.IntRange(3, 600),
    default=RUN_SECONDS,
    show_default=True,
    help="How long the first gang runs before it makes room for the gang that waits.",
)
@click.option(
    "--stay",
    is_flag=True,
    help="Keep the cluster until Ctrl-C, and print how to use it with kubectl.",
)
@click.option(
    "--image",
    default="registry.k8s.io/e2e-test-images/busybox:1.29-4",
    show_default=True,
    help="With --cluster current: the image of the pods, which must have `sleep`.",
)
def main(cluster: str | None, run_seconds: int, image: str, *, yes: bool, stay: bool) -> None:
    """See gang scheduling happen: seven gangs, one cluster, about a minute.

    The demo starts a real Kubernetes control plane on loopback with 40 GPU nodes (kwok plays the
    kubelets), runs Tutti beside it and applies examples/demo. It shows what each gang waits for,
    when Tutti reserves its room and binds it, and which gang has which GPU. In the end, a queue
    gets back what it guarantees, and a gang that borrows ends for it. Ctrl-C ends the demo and
    removes everything.

    The first run builds the control plane from source, once. Helm is not needed. kubectl is built
    only with --stay, and only if PATH has none within one minor version of the control plane.

    Exit code 0: all steps of the demo happened; 1: a step failed; 2: wrong use.
    """
    began = time.monotonic()
    screen = Screen(GANGS if cluster else (*GANGS, *GANGS_IN_QUEUES))
    try:
        with _stage(screen, cluster, run_seconds, image, yes=yes, stay=stay) as stage:
            story = Story(stage, screen, Pace(run_seconds))
            try:
                story.play()
                judged = stage.judged()
            except DemoError:
                _show_log(screen, stage)
                raise
            if stay:
                _stay(screen, stage)
        _close(screen, story, judged, time.monotonic() - began)
        _advise(screen, cluster)
    except NoConsentError as refusal:
        _end(screen, str(refusal), WRONG_USE)
    except (DemoError, ControlPlaneError, OperatorError, OSError) as problem:
        _end(screen, f"The demo failed: {problem}", NOT_SEEN)


def _stage(
    screen: Screen, cluster: str | None, run_seconds: int, image: str, *, yes: bool, stay: bool
) -> AbstractContextManager[Stage]:
    """Import what is needed: two stages have little in common."""
    if cluster == "current":
        from .current import current_stage  # noqa: PLC0415

        return current_stage(screen, run_seconds, image, agreed=yes)
    from .own import own_stage  # noqa: PLC0415

    # Nothing here, nor any child, may act on the cluster of the user's shell.
    os.environ.pop("KUBECONFIG", None)
    return own_stage(screen, run_seconds, stay=stay)


def _stay(screen: Screen, stage: Stage) -> None:
    """Leave all running until Ctrl-C."""
    screen.title("Look around in another terminal; Ctrl-C here ends it")
    look = f"kubectl get ptg -n {stage.namespace} -o wide"
    page = f"{Path(sys.executable).parent / 'tutti'} ui  # the same in your browser"
    for line in (*stage.exports(), look, page):
        screen.console.print(line, soft_wrap=True, markup=False)
    with suppress(KeyboardInterrupt):
        signal.pause()


def _show_log(screen: Screen, stage: Stage) -> None:
    if log := stage.operator_log():
        screen.title("The end of the operator's log")
        screen.say(escape(log))


def _close(screen: Screen, story: Story, judged: str, seconds: float) -> None:
    """Say what was seen."""
    when = story.chronicle.when
    waited = (when("next", "bound") or 0.0) - (when("next", "created") or 0.0)
    gangs = story.chronicle.gangs
    screen.title("What you have seen")
    screen.say(
        f"• training ({gangs['training'].needed} members) and roles ({gangs['roles'].needed}, "
        "a driver and its workers) started whole: the room of every member was written down "
        "as a Reservation before the first one was bound.\n"
        f"• too-large waits and says why: [i]{escape(gangs['too-large'].sentence)}[/]\n"
        f"• next waited {waited:.0f} s without holding anything, and started whole when "
        "training made room.\n"
        f"{_reclaim(story)}"
        f"• {judged or 'No gang was seen half started.'} All of it took {seconds:.0f} s."
    )


def _reclaim(story: Story) -> str:
    """What the last act has shown."""
    if not story.reclaimed:
        return (
            "• That a queue gets back what it guarantees is shown only on the demo's own control "
            "plane, because a gang ends for it: make demo.\n"
        )
    return (
        "• borrower ended whole, because vision wanted what it guarantees; covered, which its own "
        "queue guarantees, did not. borrower waits for room once its Job has made its pods again.\n"
    )


def _advise(screen: Screen, cluster: str | None) -> None:
    """Say what to try next."""
    screen.title("What to try next")
    for command, why in _next_steps(cluster):
        screen.say(f"[bold cyan]{escape(command)}[/]\n    {why}")


def _next_steps(cluster: str | None) -> list[tuple[str, str]]:
    if cluster:
        return [
            ("tutti crds | kubectl apply -f -", "install the CRDs to stay"),
            ("kubectl apply -f examples/job.yaml", "a gang of your own: see examples/"),
            ("kubectl get ptg -o wide", "what each gang has come to, and why it waits"),
            ("tutti ui", "the whole cluster in your browser"),
        ]
    return [
        ("make demo STAY=1", "the same, and the cluster stays: kubectl and tutti ui show it"),
        ("make demo CLUSTER=current", "the same on your own cluster; asks first"),
        ("make test", "everything that Tutti promises, tested"),
    ]


def _end(screen: Screen, sentence: str, code: int) -> NoReturn:
    screen.say(f"[bold red]{escape(sentence)}[/]")
    sys.exit(code)
