"""The commands: ``tutti run``, ``crds``, ``settings`` and ``version``; thin over what they call."""

import asyncio
import os
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import click

from .. import __version__

WRONG_INPUT = 2  # click's own exit code for a wrong command line
NO_CLUSTER = 1


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: tutti crds | kubectl apply -f -",
)
def main() -> None:
    """Gang scheduling for Kubernetes: a gang's pods start together or not at all.

    A PodGroup says how many members a gang needs; its pods name it with the label
    tutti.dev/pod-group and set schedulerName: tutti. Tutti holds them until one placement exists
    for all, writes it down as a Reservation, and binds them together.
    """


@main.command()
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Cluster to run against. Default: $KUBECONFIG, the pod's own service account, "
    "~/.kube/config.",
)
def run(kubeconfig: str | None) -> None:
    """Run the operator: what the container runs.

    Settings come from the environment, one variable each; an unknown or wrong one stops the start
    with exit code 2. `tutti settings` lists them with their defaults.
    """
    from ..settings import Settings, SettingsError

    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as wrong:
        for sentence in wrong.sentences:
            click.echo(f"tutti run: {sentence}", err=True)
        sys.exit(WRONG_INPUT)
    from .. import main as operator
    from ..kube.errors import NoAccess

    operator.configure_logs(settings.log_format, settings.log_level)
    try:
        asyncio.run(operator.serve(settings, kubeconfig))
    except (NoAccess, OSError) as problem:
        click.echo(f"tutti run: {problem}", err=True)
        sys.exit(NO_CLUSTER)


@main.command()
def settings() -> None:
    """List every setting: its variable, default and meaning."""
    from ..settings import PREFIX, Settings

    for name, field in Settings.model_fields.items():
        click.echo(f"{PREFIX}{name.upper()}={field.default}\n    {field.description}")


@main.command()
def crds() -> None:
    """Print the CustomResourceDefinitions, ready for `kubectl apply -f -`."""
    for path in crd_files():
        click.echo(f"---\n{path.read_text().rstrip()}")


def crd_files() -> Sequence[Path]:
    """The CRDs that belong to this version: of the installed package, else of the checkout."""
    installed = Path(str(resources.files("tutti"))) / "crds"
    checkout = Path(__file__).parents[3] / "crds"
    return sorted((installed if installed.is_dir() else checkout).glob("*.yaml"))


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(f"tutti {__version__}")
