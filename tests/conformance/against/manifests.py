"""A case as objects, for one scheduler: nodes, pods that are there already, and the gang.

Every place has nodes of its own, which the members select, and zones of its own, so that many
cases may be played side by side and none counts the pods or the domains of another.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from ...bench.load import gangs
from ...bench.load.gangs import Form, Load
from ...harness.controlplane.nodes import node_manifest
from .cases import GANG, HOST, ZONE, Ask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .cases import Case, Rule

    Manifest = dict[str, Any]

POOL, MEMBER = "tests/pool", "tests/member"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
MEMORY = "64Mi"


def nodes(case: Case, place: str) -> Iterator[Manifest]:
    """The nodes of the case at this place."""
    for ground in case.nodes:
        name = f"{place}-{ground.name}"
        yield node_manifest(
            name,
            cpu=ground.cpu,
            memory="64Gi",
            gpus=ground.gpus,
            labels={POOL: place, ZONE: f"{place}-{ground.zone}"},
        )


def others(case: Case, place: str) -> Iterator[Manifest]:
    """Who is there already, each on a node."""
    for number, one in enumerate(case.others):
        spec = _spec(one.cpu, 0, one.port, one.rules)
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"other-{number}",
                "namespace": place,
                "labels": {"app": one.app},
            },
            "spec": {**spec, "schedulerName": "nobody", "nodeName": f"{place}-{one.on}"},
        }


def gang(case: Case, place: str, form: Form) -> Iterator[Manifest]:
    """The group, and then its members role by role."""
    load = Load(form, place, gangs.Member(), {"app": GANG, MEMBER: "yes"})
    group = load.group(GANG, case.size)
    if group is not None:
        yield group
    for role in case.roles:
        for number, pod in enumerate(load.pods(GANG, role.count)):
            metadata = pod["metadata"]
            labels = {**metadata["labels"], "role": role.name}
            selector = {"nodeSelector": {POOL: place}}
            own = _spec(role.cpu, role.gpus, role.port, role.rules)
            yield {
                **pod,
                "metadata": {**metadata, "name": f"{role.name}-{number}", "labels": labels},
                "spec": {**pod["spec"], **own, **selector},
            }


def _spec(cpu: int, gpus: int, port: int, rules: Iterable[Rule]) -> Manifest:
    devices = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container: Manifest = {
        "name": "main",
        "image": gangs.IMAGE,
        "resources": {
            "requests": {"cpu": str(cpu), "memory": MEMORY, **devices},
            "limits": devices,
        },
    }
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    affinity: defaultdict[str, Manifest] = defaultdict(lambda: {REQUIRED: []})
    spreads = []
    for rule in rules:
        assert rule.topology in (HOST, ZONE)
        selector = {"labelSelector": {"matchLabels": {rule.key: rule.value}}}
        if rule.ask is Ask.EVEN:
            least = {"minDomains": rule.min_domains} if rule.min_domains else {}
            about = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **least}
            spreads.append({"topologyKey": rule.topology, **about, **selector})
        else:
            affinity[rule.ask][REQUIRED].append({"topologyKey": rule.topology, **selector})
    return {
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        **({"affinity": dict(affinity)} if affinity else {}),
        **({"topologySpreadConstraints": spreads} if spreads else {}),
    }
