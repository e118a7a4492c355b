"""The generated cases show what they are for, often, without any code of Tutti's."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from . import cases

GENERATOR = ("cases", "clusters", "gangs", "members", "objects", "rules", "singles", "storage")
OFTEN = (
    *("pod affinity", "pod anti-affinity", "topology spread", "preferred rules"),
    *("absent members", "standing Reservations", "Reservations with slots"),
    *("volumes with places", "volumes with CSI limits", "ReadWriteOncePod"),
    *("starved gangs", "partial gangs", "partial gangs with onPartial: Release"),
    *("elastic gangs", "maxMember", "heterogeneous roles", "priorities", "GPUs", "host ports"),
    *("taints", "tolerations", "node selector", "node affinity", "unschedulable nodes"),
    *("nodes not ready", "single pods", "foreign pods", "terminating pods", "finished pods"),
    *(
        "not modelled",
        "scheduling gates",
        "claims that are not bound",
        "refused",
        "contended",
        "roomy",
        "held",
    ),
    *("timeouts with onTimeout: Fail", "Spark", "manifests"),
    *("workloads", "too few members", "pods that name no PodGroup that is there"),
    *(f"strategy {name}" for name in sorted(set(cases.STRATEGIES))),
)
NOW_AND_THEN = (
    *("PodGroups being deleted", "Reservations that evict", "slots that were lost"),
    "Spark without a PodGroup",
)


def test_every_feature_is_shown_often() -> None:
    seen = Counter[str]()
    for number in range(cases.NUMBER):
        seen.update(cases.generated(number).shown)
    assert [name for name in OFTEN if seen[name] < 300] == []
    assert [name for name in NOW_AND_THEN if seen[name] < 100] == []


def test_a_case_is_the_same_whenever_it_is_generated() -> None:
    assert cases.generated(7).text == cases.generated(7).text
    assert len({cases.generated(number).text for number in range(100)}) == 100


def test_the_generator_knows_no_code_of_tutti() -> None:
    for name in GENERATOR:
        tree = ast.parse(Path(__file__).with_name(f"{name}.py").read_text())
        for at in ast.walk(tree):
            names = [alias.name for alias in at.names] if isinstance(at, ast.Import) else []
            if isinstance(at, ast.ImportFrom):
                assert at.level <= 1, f"{name}: {ast.unparse(at)}"
                names = [at.module or ""]
            assert not [one for one in names if one.startswith("tutti")], name
