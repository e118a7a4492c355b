"""Where kube-scheduler lets a pod go before the PV controller has bound its claims.

A volume whose ``claimRef`` names a claim is for that claim: the PV controller binds the two as soon
as it sees them, and from then on the pod runs where the volume is. Tutti keeps the pod there at
once. In between, ``FindPodVolumes`` of kube-scheduler also takes any node for which the class can
provision: ``FindMatchingVolume`` finds no match on a node that the volume is not for, and the claim
is then one to provision. No PV controller is on this stage, so that the moment lasts.
"""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any

from .ours import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .comparing import Case

    Manifest = dict[str, Any]

APART = "-provisioned"  # ends the name of a class that has no volumes


def is_of_a_claim_not_bound_yet(case: Case) -> bool:
    """Whether the nodes are those of Tutti, and those for which claims could be provisioned."""
    keys = _prebound(case)
    if not keys or case.answer is None:
        return False
    nodes: frozenset[str] = frozenset()
    for some in _subsets(keys):
        ours = Reading(_provisioned(case.objects, some)).answer(case.pod)
        if ours.unmodelled or ours.broken or ours.gated or ours.is_bound:
            return False
        nodes |= ours.nodes
    return nodes == case.answer.nodes


def _prebound(case: Case) -> list[tuple[str, str]]:
    """The claims of the pod that have a volume and are not bound, by namespace and name."""
    space = case.pod["metadata"]["namespace"]
    volumes = case.pod["spec"].get("volumes") or ()
    named = {v.get("persistentVolumeClaim", {}).get("claimName") for v in volumes}
    open_ones = {
        (space, item["metadata"]["name"])
        for item in case.objects
        if item["kind"] == "PersistentVolumeClaim"
        and item["metadata"]["namespace"] == space
        and item["metadata"]["name"] in named
        and not item["spec"].get("volumeName")
    }
    return sorted(open_ones & {_claim_of(item) for item in case.objects})


def _claim_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """The claim that a volume is for; nothing for other objects."""
    is_volume = item["kind"] == "PersistentVolume"
    ref = (item["spec"].get("claimRef") or {}) if is_volume else {}
    return ref.get("namespace", ""), ref.get("name", "")


def _subsets(keys: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], ...]]:
    for size in range(len(keys) + 1):
        yield from itertools.combinations(keys, size)


def _provisioned(
    objects: Iterable[Manifest], keys: Sequence[tuple[str, str]]
) -> Iterator[Manifest]:
    """The cluster, in which these claims have no volume, and get none but a new one."""
    for item in objects:
        kind, metadata = item["kind"], item["metadata"]
        if kind == "PersistentVolume" and _claim_of(item) in keys:
            continue
        changed = copy.deepcopy(item)
        if kind == "PersistentVolumeClaim":
            if (metadata["namespace"], metadata["name"]) in keys:
                changed["spec"]["storageClassName"] += APART
        elif kind in ("StorageClass", "CSIStorageCapacity"):
            yield item
            for field in ("name", "uid"):
                changed["metadata"][field] += APART
            if kind == "CSIStorageCapacity":
                changed["storageClassName"] += APART
        yield changed
