"""``tutti settings``: every setting there is."""

import click


@click.command("settings")
def command() -> None:
    """List every setting: its variable, default and meaning."""
    from ..settings import PREFIX, Settings

    for name, field in Settings.model_fields.items():
        default = ",".join(field.default) if isinstance(field.default, tuple) else field.default
        click.echo(f"{PREFIX}{name.upper()}={default}\n    {field.description}")
