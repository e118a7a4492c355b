"""A smaller case of the same disagreement: one thing after the other left out and asked again."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .comparing import Tally, played
from .stage import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .comparing import Case
    from .ours import Ours
    from .scenes import Scene
    from .stage import Stage

    Manifest = dict[str, Any]

SECONDS = 60.0  # enough for a disagreement of usual size
NEEDED = ("schedulerName", "nodeName", "name", "image", "status", "hostname")


async def smallest(stage: Stage, scene: Scene, name: str) -> tuple[Case, Ours] | None:
    """The smallest case found in time that still differs; None if it does not any more."""
    (probe,) = (each for each in scene.probes if each.pod["metadata"]["name"] == name)
    smaller = replace(scene, probes=(probe,))
    found = await _differing(stage, smaller)
    deadline = time.monotonic() + SECONDS
    progress = found is not None
    while progress:
        progress = False
        for candidate in _candidates(smaller):
            if time.monotonic() > deadline:
                return found
            if (still := await _differing(stage, candidate)) is not None:
                found, smaller, progress = still, candidate, True
                break
    return found


async def _differing(stage: Stage, scene: Scene) -> tuple[Case, Ours] | None:
    tally = Tally()
    try:
        await played(stage, copy.deepcopy(scene), tally)
    except RefusedError:
        return None
    return tally.wrong[0] if tally.wrong else None


def _candidates(scene: Scene) -> Iterator[Scene]:
    """The scene without one of its things, the largest first."""
    for i, _ in enumerate(scene.residents):
        yield replace(scene, residents=_without(scene.residents, i))
    for i, node in enumerate(scene.nodes[:-1]):
        name = node["metadata"]["name"]
        staying = [pod for pod in scene.residents if pod["spec"]["nodeName"] != name]
        beside = [each for each in scene.beside if each["metadata"]["name"] != name]
        nodes = _without(scene.nodes, i)
        yield replace(scene, nodes=nodes, residents=tuple(staying), beside=tuple(beside))
    for i, _ in enumerate(scene.beside):
        yield replace(scene, beside=_without(scene.beside, i))
    probe = scene.probes[0]
    for pod in _parts(probe.pod, "metadata", "labels"):
        yield replace(scene, probes=(replace(probe, pod=pod),))
    for pod in _parts(probe.pod, "spec"):
        yield replace(scene, probes=(replace(probe, pod=pod),))
    for i, resident in enumerate(scene.residents):
        for pod in (*_parts(resident, "metadata", "labels"), *_parts(resident, "spec")):
            yield replace(scene, residents=(*scene.residents[:i], pod, *scene.residents[i + 1 :]))
    for i, node in enumerate(scene.nodes):
        for body in (*_parts(node, "metadata", "labels"), *_parts(node, "spec")):
            yield replace(scene, nodes=(*scene.nodes[:i], body, *scene.nodes[i + 1 :]))


def _without(items: tuple[Manifest, ...], i: int) -> tuple[Manifest, ...]:
    return (*items[:i], *items[i + 1 :])


def _parts(body: Manifest, *path: str) -> Iterator[Manifest]:
    """The object without one of the keys or items below a path, the outermost first."""
    level = [list(path)]
    while level:
        below: list[list[Any]] = []
        for at in level:
            value: Any = body
            for step in at:
                value = value[step]
            keys = value if isinstance(value, dict) else range(len(value))
            for key in keys:
                if key in NEEDED:
                    continue
                changed = copy.deepcopy(body)
                place: Any = changed
                for step in at:
                    place = place[step]
                del place[key]
                yield changed
                if isinstance(value[key], dict | list):
                    below.append([*at, key])
        level = below
