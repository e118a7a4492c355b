"""What ``tutti plan -o json`` said, as far as it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .cluster import Cluster, Gang, Pod


@dataclass(frozen=True, eq=False)
class Answer:
    """A plan; ``placed`` is whom it gives a node, by gang."""

    proved: bool
    levels: Mapping[int, int]  # admitted, by priority
    placed: Mapping[str, Sequence[tuple[Pod, str]]]
    reasons: Mapping[str, str]
    answers: Mapping[str, str]
    faults: Sequence[str]  # what cannot be told apart from nonsense

    def of(self, gang: Gang) -> Sequence[tuple[Pod, str]]:
        """Whom of a gang the plan gives a node."""
        return self.placed.get(key(gang.name, gang.kind), ())

    def starts(self, gang: Gang) -> bool:
        """Whether the plan starts the gang."""
        return not gang.is_started and bool(self.of(gang))

    @property
    def everybody(self) -> list[tuple[Pod, str]]:
        """All who get a node."""
        return [one for some in self.placed.values() for one in some]


def key(name: str, kind: str) -> str:
    """A gang's name that no other has."""
    return f"{kind} {name}"


def answer(cluster: Cluster, raw: Mapping[str, Any]) -> Answer:
    """Read the JSON of a plan."""
    gangs = {key(gang.name, gang.kind): gang for gang in cluster.gangs}
    placed: dict[str, list[tuple[Pod, str]]] = {}
    reasons, answers, faults = {}, {}, []
    for one in raw["gangs"]:
        name = key(one["gang"], one["kind"])
        reasons[name], answers[name] = one["reason"], one["answer"]
        gang = gangs.get(name)
        if gang is None:
            if one["placement"]:
                faults.append(f"{name} is placed and is no gang")
            continue
        waiting = {pod.name: pod for pod in gang.waiting}
        for place in one["placement"]:
            for pod in place["pods"]:
                if pod in waiting:
                    placed.setdefault(name, []).append((waiting.pop(pod), place["node"]))
                else:
                    faults.append(f"{pod} of {name} does not wait, or is placed twice")
    levels = {level["priority"]: level["admitted"] for level in raw["levels"]}
    return Answer(raw["proved"], levels, placed, reasons, answers, faults)
