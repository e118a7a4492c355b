"""``tutti run``: the operator."""

import os
import sys

import click
import uvloop

from .inputs import KUBECONFIG, WRONG_INPUT, say

NO_CLUSTER = 1


@click.command("run")
@KUBECONFIG
def command(kubeconfig: str | None) -> None:
    """Run the operator, as the container does.

    Each setting is an environment variable; `tutti settings` lists them with their defaults. With
    an unknown or invalid setting, the command ends with exit code 2.
    """
    from ..operator.settings import Settings, SettingsError

    try:
        settings = Settings.of_operator(os.environ)
    except SettingsError as wrong:
        for sentence in wrong.sentences:
            say(f"tutti run: {sentence}", aside=True)
        sys.exit(WRONG_INPUT)
    from ..kube.errors import NoAccess
    from ..kube.leader_election import NameTaken
    from ..operator import main as operator
    from ..reporting import logs
    from ..strategies import StrategyError

    logs.configure(settings.log_format, settings.log_level)
    try:
        uvloop.run(operator.serve(settings, kubeconfig))
    except StrategyError as problem:
        say(f"tutti run: {problem}", aside=True)
        sys.exit(WRONG_INPUT)
    except NoAccess as problem:
        todo = problem.todo or "name a cluster with --kubeconfig"
        say(f"tutti run: {problem}; {todo}", aside=True)
        sys.exit(NO_CLUSTER)
    except (NameTaken, OSError) as problem:
        say(f"tutti run: {problem}", aside=True)
        sys.exit(NO_CLUSTER)
