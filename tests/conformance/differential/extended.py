"""Extended resources that device classes back: pods request devices as counts of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from . import devices
from .drawing import among

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .drawing import Draw

    Manifest = dict[str, Any]

# Of classes that back one resource, all made in the same second, the first by name counts.
CLASSES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "backs-gpus": ("example.com/gpu", (f'device.driver == "{devices.GPU}"',)),
    "backs-gpus-too": ("example.com/gpu", ('device.driver == "tpu.example.com"',)),
    "backs-nics": ("example.com/nic", (f'device.driver == "{devices.NIC}"',)),
    "backs-models": (
        "example.com/a",
        (f'device.driver == "{devices.GPU}" && device.attributes["{devices.GPU}"].model == "a"',),
    ),
}
IMPLICIT = "deviceclass.resource.kubernetes.io/"  # before the name of any class
RESOURCES = (
    *("example.com/gpu",) * 4,
    *("example.com/nic", "example.com/a", "example.com/a", "example.com/unbacked"),
    *(f"{IMPLICIT}gpu", f"{IMPLICIT}backs-nics"),
)


def classes() -> Iterator[Manifest]:
    """The device classes of all scenes that back a resource."""
    for name, (resource, selectors) in CLASSES.items():
        made = devices.class_of(name, selectors)
        made["spec"]["extendedResourceName"] = resource
        yield made


def requests(draw: Draw, pod: Manifest) -> None:
    """Containers, sidecars and init containers that request one or two resources."""
    chosen = tuple(draw(among(RESOURCES)) for _ in range(draw(among((1, 1, 1, 2)))))
    for resource in sorted({*chosen}):
        _add(pod["spec"]["containers"][0], resource, draw(among((1, 1, 1, 1, 2, 3))))
    if draw(among((False, False, False, True))):
        other = {"name": "c1", "image": "pause"}
        _add(other, chosen[0], draw(among((1, 1, 2))))
        pod["spec"]["containers"].append(other)
    if draw(among((False, False, False, True))):
        pod["spec"]["initContainers"] = [
            _first(draw, i, chosen) for i in range(draw(among((1, 1, 2))))
        ]
    if draw(among((False, False, False, True))):
        devices.claims(draw, pod)


def _first(draw: Draw, i: int, resources: tuple[str, ...]) -> Manifest:
    """An init container or a sidecar."""
    made: Manifest = {"name": f"i{i}", "image": "pause"}
    if draw(st.booleans()):
        made["restartPolicy"] = "Always"
    _add(made, draw(among(resources)), draw(among((1, 1, 2, 3))))
    return made


def _add(container: Manifest, resource: str, count: int) -> None:
    """Let a container request so many; a limit says the same."""
    for kind in ("requests", "limits"):
        container.setdefault("resources", {}).setdefault(kind, {})[resource] = str(count)
