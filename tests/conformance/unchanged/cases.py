"""The cases: 5,000 generated dumps and manifests by number, and the files of the tests and docs."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from . import clusters, gangs, singles
from .objects import SCHEDULER, Object, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[3]
NUMBER = 5_000
EXPLAINED = 20  # one case in so many is explained, too
STRATEGIES = (
    *("ilp",) * 6,
    *("bestfit", "firstfit", "spread", "flow", "ilp-highs"),
)
OBJECTIVES = ("resources", "resources", "resources", "gangs", "members")
# So much time that the clock never ends a search: then a plan depends on its input alone.
SECONDS = 600.0
BESIDE = "docs/explain/cluster.yaml"  # the cluster that each manifest is planned in, too
FOLDERS = ("docs", "examples", "tests")


@dataclass(frozen=True)
class Case:
    """An input of ``tutti``, and what is asked of it."""

    name: str
    text: bytes
    command: str = "plan"
    shown: frozenset[str] = frozenset()  # the features that the generator put in

    @property
    def arguments(self) -> Sequence[str]:
        """The command line; the input comes by standard input."""
        return (self.command, "-f", "-", "-o", "json")

    @property
    def digest(self) -> str:
        """Tells this input from others."""
        return hashlib.sha256(self.text).hexdigest()[:4]


def generated(number: int) -> Case:
    """The generated case of this number, the same on every machine."""
    rng = Random(number)
    made = clusters.cluster(rng)
    is_crowded = made.theme in ("contended", "held")
    for _ in range(rng.randint(5, 9) if is_crowded else rng.choice((1, 2, 2, 3, 3, 4))):
        gangs.add_gang(made)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        singles.add_single(made)
    if rng.random() < 0.12:
        singles.add_spark(made)
    strategy = rng.choice(STRATEGIES)
    header = _header(made, strategy, rng.choice(OBJECTIVES))
    rng.shuffle(made.objects)
    if made.is_manifest:
        made.shown.add("manifests")
        documents = (json.dumps(_as_written(item)) for item in made.objects)
        text = "\n---\n".join(documents)
    else:
        made.shown.add(f"strategy {strategy}")
        whole = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": header}}
        text = json.dumps({**whole, "items": made.objects})
    return Case(f"{number:04}", text.encode(), shown=frozenset(made.shown))


def _header(cluster: clusters.Cluster, strategy: str, objective: str) -> Mapping[str, str]:
    """What a dump says beside its objects."""
    policy = {"objective": objective, "age_seconds": 3600.0, "starvation_seconds": 3600.0}
    budget = {"nodes": 500, "seconds": SECONDS}
    settings = {"schedulerName": SCHEDULER, "strategy": strategy}
    words: dict[str, object] = {"settings": {**settings, "policy": policy, "budget": budget}}
    for name in ("finished", "bereft", "refused"):
        if found := getattr(cluster, name):
            words[name] = found
    written = {f"tutti.dev/{name}": json.dumps(value) for name, value in words.items()}
    return {"tutti.dev/taken-at": moment(0), **written}


def _as_written(one: Object) -> Object:
    """An object without what the API server adds when it is created."""
    added = ("uid", "resourceVersion", "generation")
    metadata = {name: value for name, value in one["metadata"].items() if name not in added}
    return {**one, "metadata": metadata}


def explained(number: int) -> Case:
    """The same input, of which is asked why gangs wait and what would start them."""
    case = generated(number)
    return Case(f"{case.name}.explain", case.text, "explain")


def files() -> Iterator[Case]:
    """Manifests and dumps of the repository: alone, explained, and beside a small cluster."""
    beside = (ROOT / BESIDE).read_bytes()
    for path in _paths():
        text = (ROOT / path).read_bytes()
        yield Case(path, text)
        yield Case(f"{path}.explain", text, "explain")
        if path != BESIDE and not text.lstrip().startswith(b"{"):
            yield Case(f"{path}+cluster", text + b"\n---\n" + beside)


def _paths() -> Sequence[str]:
    """Where they are, from the root of the repository; files that are no manifests among them."""
    wanted = [f"{folder}/*.{kind}" for folder in FOLDERS for kind in ("yaml", "yml", "json")]
    command = ["git", "-C", str(ROOT), "ls-files", *wanted]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    return [path for path in listed.stdout.split() if (ROOT / path).exists()]


def file_case(name: str, digest: str) -> Case | None:
    """The case of a recorded file, which may have moved since but not have changed."""
    known = {case.name: case for case in files()}
    if name in known:
        return known[name]
    kind = _kind(name)
    alike = (one for one in known.values() if _kind(one.name) == kind and one.digest == digest)
    return next(alike, None)


def _kind(name: str) -> str:
    return next((kind for kind in (".explain", "+cluster") if name.endswith(kind)), "")


def is_generated(name: str) -> bool:
    """Whether a case of this name is generated, not a file."""
    return name.partition(".")[0].isdecimal()


def by_name(name: str) -> Case:
    """The generated case of this name."""
    number, _, kind = name.partition(".")
    return explained(int(number)) if kind == "explain" else generated(int(number))


def numbered(numbers: Iterable[int]) -> Iterator[str]:
    """The names of these generated cases, and of those among them that are explained, too."""
    for number in numbers:
        yield f"{number:04}"
        if number % EXPLAINED == 0:
            yield f"{number:04}.explain"
