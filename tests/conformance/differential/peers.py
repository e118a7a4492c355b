"""What a pod may ask of other pods: affinity, anti-affinity and spread, hostile now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from .drawing import among
from .pools import GHOST, HOST, NAMESPACES, RACK, ZONE

if TYPE_CHECKING:
    from .drawing import Draw

    Manifest = dict[str, Any]

APPS, REVISIONS = ("a", "b"), ("1", "2")
TOPOLOGIES = (*(ZONE,) * 5, *(HOST,) * 3, RACK, GHOST)
TEAMS = st.sampled_from(
    (
        {"matchLabels": {"team": "red"}},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["blue"]}]},
        {"matchLabels": {"kubernetes.io/metadata.name": "plain"}},
        {"matchLabels": {"team": "green"}},
    )
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def labels(draw: Draw) -> dict[str, str]:
    """A pod's labels, by which others mean it."""
    found = {
        "app": draw(among(("a", "a", "a", "b", None))),
        "rev": draw(among(("1", "1", "2", None))),
    }
    return {key: value for key, value in found.items() if value is not None}


def selector(draw: Draw) -> Manifest | None:
    """A label selector: absent, empty, or of some requirements."""
    kind = draw(among(("labels",) * 6 + ("expressions",) * 3 + ("empty", "absent")))
    match kind:
        case "absent":
            return None
        case "empty":
            return {}
        case "labels":
            return {"matchLabels": {"app": draw(among(("a", "a", "a", "b")))}}
        case _:
            count = draw(among((1, 1, 2)))
            return {"matchExpressions": [_requirement(draw) for _ in range(count)]}


def _requirement(draw: Draw) -> Manifest:
    key = draw(among(("app", "app", "rev", "ghost")))
    operator = draw(among(("In", "NotIn", "Exists", "DoesNotExist")))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    pool = APPS if key == "app" else REVISIONS
    values = draw(st.lists(among(pool), min_size=1, max_size=2, unique=True))
    return {"key": key, "operator": operator, "values": values}


def near(draw: Draw, pod: Manifest) -> None:
    """Required affinity."""
    _between(draw, pod, "podAffinity")


def apart(draw: Draw, pod: Manifest) -> None:
    """Required anti-affinity."""
    _between(draw, pod, "podAntiAffinity")


def _between(draw: Draw, pod: Manifest, kind: str) -> None:
    terms = [_term(draw) for _ in range(draw(among((1, 1, 1, 2))))]
    pod["spec"].setdefault("affinity", {})[kind] = {REQUIRED: terms}


def _term(draw: Draw) -> Manifest:
    term: Manifest = {"topologyKey": draw(among(TOPOLOGIES))}
    if (found := selector(draw)) is not None:
        term["labelSelector"] = found
    match draw(among(("own",) * 6 + ("named", "labelled", "all", "both"))):
        case "named":
            term["namespaces"] = _namespaces(draw)
        case "labelled":
            term["namespaceSelector"] = _teams(draw)
        case "all":
            term["namespaceSelector"] = {}
        case "both":
            term |= {"namespaces": _namespaces(draw), "namespaceSelector": _teams(draw)}
    match draw(among(("",) * 4 + ("match", "mismatch"))):
        case "match":
            term["matchLabelKeys"] = [draw(among(("rev", "rev", "rev", "app", "ghost")))]
        case "mismatch":
            term["mismatchLabelKeys"] = [draw(among(("rev", "rev", "rev", "app", "ghost")))]
    return term


def _namespaces(draw: Draw) -> list[str]:
    known = among((*NAMESPACES, "no-such-namespace"))
    found: list[str] = draw(st.lists(known, min_size=1, max_size=2, unique=True))
    return found


def _teams(draw: Draw) -> Manifest:
    manifest: Manifest = draw(TEAMS)
    return manifest


def even(draw: Draw, pod: Manifest) -> None:
    """Topology spread, mostly of the kind that must hold."""
    count = draw(among((1, 1, 1, 2)))
    pod["spec"]["topologySpreadConstraints"] = [_constraint(draw) for _ in range(count)]
    if draw(among((False, False, True))):  # so that a policy has something to say
        pod["spec"]["nodeSelector"] = {RACK: "r1"}


def _constraint(draw: Draw) -> Manifest:
    must = draw(among((True,) * 7 + (False,)))
    manifest: Manifest = {
        "maxSkew": draw(among((1, 1, 1, 2, 5))),
        "topologyKey": draw(among(TOPOLOGIES)),
        "whenUnsatisfiable": "DoNotSchedule" if must else "ScheduleAnyway",
    }
    if (wanted := selector(draw)) is not None:
        manifest["labelSelector"] = wanted
    if must and (least := draw(among((None, None, 1, 2, 3, 4)))) is not None:
        manifest["minDomains"] = least
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if (said := draw(among((None, None, "Honor", "Ignore")))) is not None:
            manifest[policy] = said
    if draw(among((False,) * 2 + (True,))):
        manifest["matchLabelKeys"] = [draw(among(("rev", "rev", "rev", "app", "ghost")))]
    return manifest
