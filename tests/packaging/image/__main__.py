"""Build the image's root from the Dockerfile without a Docker engine; try and install the result.

The base image itself is not tested: a clean Debian of the same release, by debootstrap, stands in
its place. 0: all of it works. 1: something does not. 3: this machine cannot check it.
"""

from __future__ import annotations

import platform
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING

import click

from . import base, building, dockerfile, installing, root, trying

if TYPE_CHECKING:
    from .building import Built

FAILED, CANNOT = 1, 3


@click.command(help=__doc__)
def main() -> None:
    """Build and try."""
    started = time.monotonic()
    try:
        stages = dockerfile.read((building.PROJECT / "Dockerfile").read_text())
        base.clean(stages[-1].suite)
        with building.built(stages) as image:
            for line in chain(trying.tried(image), installing.installed(image)):
                click.echo(line)
            _tell_sizes(image)
    except base.CannotCheckError as problem:
        click.echo(f"image-check: this machine cannot check the image: {problem}", err=True)
        sys.exit(CANNOT)
    except (dockerfile.DockerfileError, root.StepError, trying.WrongError) as problem:
        click.echo(f"image-check: {problem}", err=True)
        sys.exit(FAILED)
    click.echo(f"image-check: all of it works, {time.monotonic() - started:.0f} s")


def _tell_sizes(image: Built) -> None:
    """Sizes on this machine's kind; of the base they are debootstrap's, not the base image's."""
    above = sum(layer.megabytes for layer in image.layers)
    click.echo(f"size on {platform.machine()}, unpacked; as a registry keeps it (tar, gzip):")
    for layer in image.layers:
        click.echo(f"  {layer.megabytes:7.1f} MB            {layer.step[:80]}")
    click.echo(f"  {above:7.1f} MB {image.packed_megabytes:7.1f} MB  above the base")
    base_is = "a clean Debian, in place of the base image, which leaves out documentation"
    click.echo(f"  {image.base_megabytes:7.1f} MB {image.base_packed_megabytes:7.1f} MB  {base_is}")


if __name__ == "__main__":
    main()
