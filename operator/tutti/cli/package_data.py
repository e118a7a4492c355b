"""``tutti crds`` and ``tutti settings``: what the package itself contains, without a cluster."""

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import click


@click.command("crds", short_help="Print the CustomResourceDefinitions, for kubectl apply.")
def crds() -> None:
    """Print the CustomResourceDefinitions, ready for `kubectl apply -f -`."""
    for path in crd_files():
        click.echo(path.read_text().rstrip())  # each begins with a separator


def crd_files() -> Sequence[Path]:
    """The CRDs of this version, from the installed package or else from the checkout."""
    installed = Path(str(resources.files("tutti"))) / "crds"
    checkout = Path(__file__).parents[3] / "charts" / "tutti" / "crds"
    return sorted((installed if installed.is_dir() else checkout).glob("*.yaml"))


@click.command("settings")
def settings() -> None:
    """List every setting: its variable, default and meaning."""
    from ..operator.settings import PREFIX, Settings

    for name, field in Settings.model_fields.items():
        default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        click.echo(f"{PREFIX}{name.upper()}={default}\n    {field.description}")
