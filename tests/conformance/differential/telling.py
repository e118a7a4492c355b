"""Words and tables for people: what a disagreement is about, and what a run has counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .comparing import Case, Tally
    from .ours import Ours

DULL = (
    *("schedulerName", "terminationGracePeriodSeconds", "dnsPolicy", "restartPolicy", "priority"),
    *("securityContext", "serviceAccount", "serviceAccountName", "enableServiceLinks", "volumes"),
    "preemptionPolicy",
)
DULL_PARTS = ("image", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")


def sentences(case: Case, ours: Ours) -> Iterator[str]:
    """A disagreement, line by line."""
    yield f"{case.name}: {', '.join(case.rows)}"
    yield yaml.safe_dump(_brief(case.pod), sort_keys=False, width=100).rstrip()
    if case.answer is None:
        yield f"gated for kube-scheduler, for Tutti not: {sorted(ours.nodes)}"
        return
    if ours.broken:
        yield f"Tutti raises {ours.broken}"
    yield f"both:                {_names(case.answer.nodes & ours.nodes)}"
    yield f"kube-scheduler only: {_names(case.answer.nodes - ours.nodes)}"
    yield f"Tutti only:          {_names(ours.nodes - case.answer.nodes)}"
    if case.answer.message:
        yield f"kube-scheduler says: {case.answer.message}"
    differing = case.answer.nodes ^ ours.nodes
    for item in case.objects:
        name = item["metadata"]["name"]
        if item["kind"] == "Node" and name in differing:
            about = {
                key: item["spec"][key] for key in ("taints", "unschedulable") if key in item["spec"]
            }
            labels = item["metadata"].get("labels", {})
            yield f"  {name}: {labels} {about} {item['status']['allocatable']}"
        elif item["kind"] == "ResourceSlice" and item["spec"].get("nodeName") in differing:
            yield f"  {_flat(item['spec'])}"
        elif item["kind"] == "ResourceClaim" and name in _claims(case.pod):
            yield f"  {name}: {_flat(item['spec'])}"
        elif item["kind"] == "DeviceTaintRule":
            yield f"  {_flat(item['spec'])}"
        elif item["kind"] == "Pod" and item["spec"].get("nodeName") in differing:
            yield f"  {item['spec']['nodeName']} has {_flat(_brief(item))}"


def _claims(pod: Mapping[str, Any]) -> set[str]:
    return {claim["resourceClaimName"] for claim in pod["spec"].get("resourceClaims", ())}


def _brief(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec = {k: v for k, v in pod["spec"].items() if k not in DULL}
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [
                {k: v for k, v in each.items() if k not in DULL_PARTS and k != "volumeMounts"}
                for each in spec[kind]
            ]
    claims = [v for v in pod["spec"].get("volumes", ()) if "projected" not in v]
    metadata = pod["metadata"]
    about = {"namespace": metadata.get("namespace"), "labels": metadata.get("labels", {})}
    return {**about, **spec} | ({"volumes": claims} if claims else {})


def _flat(body: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(body), default_flow_style=True, width=10_000).strip()


def _names(nodes: frozenset[str]) -> str:
    return ", ".join(sorted(nodes)) or "-"


def table(tally: Tally) -> Table:
    """The rows of the rules, and how often each was asked about."""
    made = Table("rule", "cases", "some nodes, not all", "disagreements")
    made.title = "Tutti beside kube-scheduler, node by node"
    wrong = [row for case, _ in tally.wrong for row in case.rows]
    for row, count in sorted(tally.rows.items()):
        made.add_row(row, f"{count}", f"{tally.telling_rows[row]}", f"{wrong.count(row)}")
    made.add_section()
    made.add_row("in all", f"{tally.cases}", f"{tally.telling}", f"{len(tally.wrong)}")
    made.caption = (
        f"{tally.agreed} agreed, {sum(tally.unmodelled.values())} times a field not modelled, "
        f"{tally.refused} pods refused by the API server, {tally.late} answers taken back,"
        f" {tally.early} as only before a claim is bound to its volume,"
        f" {tally.given_up} given up by kube-scheduler, {tally.left_out} left out because an older"
        " minor ends at them,"
        f" {tally.older} as only an older minor answers"
    )
    return made
