"""Whether a gang has a placement at all: CP-SAT's word, from the manifests that are played."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tutti.dump.decode import read
from tutti.dump.documents import Text
from tutti.dump.load import snapshot_of
from tutti.model.decisions import Objective, Policy
from tutti.model.keys import NodeName

from ...bench.load.gangs import Form
from ..oracle.admission import Reading
from ..oracle.optimum import optimum
from . import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cases import Case

PLACE = "somewhere"


def has_placement(case: Case) -> bool:
    """Whether all members can run at the same time, none of them where it may not."""
    worth = optimum(Reading(_snapshot(case), Policy(Objective.GANGS)).case())
    return sum(value for _, value in worth) == 1


def is_placement(case: Case, nodes: Mapping[str, str]) -> bool:
    """Whether the members may all be where they are: nodes by the pods' names."""
    reading = Reading(_snapshot(case), Policy(Objective.GANGS))
    where = {pod: NodeName(f"{PLACE}-{node}") for pod, node in nodes.items()}
    worth = optimum(reading.carried_out(where))
    return sum(value for _, value in worth) == len(nodes) == case.size


def _snapshot(case: Case) -> Any:
    objects = [
        *manifests.nodes(case, PLACE),
        *manifests.others(case, PLACE),
        *manifests.gang(case, PLACE, Form.TUTTI),
    ]
    items = [_as_served(item) for item in objects]
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    return snapshot_of(read([Text(case.name, content.encode())], "tutti"))


def _as_served(body: dict[str, Any]) -> dict[str, Any]:
    """With what the API server adds and a Snapshot needs."""
    name = body["metadata"]["name"]
    about = {"uid": f"{body['kind']}-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {**body, "metadata": {**body["metadata"], **about}}
