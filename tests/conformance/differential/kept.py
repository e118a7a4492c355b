"""Disagreements as files, which tests replay without a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .comparing import Case
from .oracle import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).parent / "kept"
STORAGE = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode")
NOISE = ("managedFields", "finalizers", "generation", "resourceVersion", "creationTimestamp")


def keep(case: Case, folder: Path) -> Path:
    """Write a case into a folder; answers the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.name}.yaml"
    content: dict[str, Any] = {
        "about": ", ".join(case.rows),
        "nodes": None if case.answer is None else sorted(case.answer.nodes),
        "message": "" if case.answer is None else case.answer.message,
        "pod": _brief(case.pod),
        "objects": [_brief(each) for each in _told(case)],
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=100))
    return path


def kept(folder: Path = FOLDER) -> Iterator[Case]:
    """The cases that were kept, by name."""
    for path in sorted(folder.glob("*.yaml")):
        content: Mapping[str, Any] = yaml.safe_load(path.read_text())
        nodes = content["nodes"]
        answer = None if nodes is None else Answer(frozenset(nodes), "", content["message"])
        rows = tuple(content["about"].split(", "))
        yield Case(path.stem, rows, content["objects"], content["pod"], answer)


def _told(case: Case) -> Iterator[Mapping[str, Any]]:
    """The objects without those that no pod here has to do with."""
    pods = [item for item in case.objects if item["kind"] == "Pod"]
    claimed = {
        (pod["metadata"]["namespace"], volume["persistentVolumeClaim"]["claimName"])
        for pod in (*pods, case.pod)
        for volume in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    }
    for item in case.objects:
        metadata, kind = item["metadata"], item["kind"]
        if kind == "PersistentVolumeClaim":
            if (metadata["namespace"], metadata["name"]) in claimed:
                yield item
        elif kind == "PersistentVolume":
            claim = item["spec"].get("claimRef", {})
            if (claim.get("namespace"), claim.get("name")) in claimed:
                yield item
        elif claimed or kind not in STORAGE:
            yield item


def _brief(body: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what neither side looks at."""
    metadata = {k: v for k, v in body["metadata"].items() if k not in NOISE}
    return {**body, "metadata": metadata}
