"""The gang that Tutti declares for a driver of the real spark-submit, and what Spark then asks for.

Separate from ``comparing``, which knows properties alone: here ConfigMaps, labels and a template of
pods go the way that they go in a cluster, and whole shapes are compared, tolerations included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tutti import spark
from tutti.kube import wire
from tutti.kube.codec import decode
from tutti.kube.gang_sources import pod_group

from .asked import NAMESPACE, Pods, submitted

if TYPE_CHECKING:
    from pathlib import Path

    from tutti.model.applications import ConfigMapKey
    from tutti.model.cluster import Member
    from tutti.model.inter_pod import Labels
    from tutti.model.shapes import Shape

    from .asked import Door, Driver
    from .pins import Pin

SCHEDULER = "tutti"
FILE = "spark.kubernetes.executor.podTemplateFile"
# Labels of one application, and of one executor: those that ask are of another than the driver.
OF_ONE = ("spark-app-selector", "spark-exec-id")
PROPERTIES = {
    "spark.executor.instances": "3",
    "spark.executor.memory": "2g",
    "spark.executor.resource.gpu.amount": "1",
    "spark.executor.resource.gpu.vendor": "nvidia.com",
    "spark.kubernetes.executor.label.team": "etl",
    "spark.kubernetes.node.selector.disk": "ssd",
    "spark.kubernetes.scheduler.name": SCHEDULER,
    "spark.kubernetes.executor.podTemplateContainerName": "worker",
}
TEMPLATE = """
apiVersion: v1
kind: Pod
metadata:
  labels: {team: other, tier: batch, year: 2026, beta: true, ratio: 1.10, code: 007, no: yes}
spec:
  schedulerName: other
  nodeSelector: {pool: batch, disk: hdd, rack: 7}
  tolerations:
    - {key: spot, operator: Exists, effect: NoSchedule}
    - {key: level, operator: Equal, value: 1, effect: NoSchedule}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: zone, operator: In, values: [a, b, 3]}]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {spark-role: executor}}
          matchLabelKeys: [team, tier]
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: zone
      whenUnsatisfiable: DoNotSchedule
      labelSelector: {matchLabels: {tier: batch}}
      matchLabelKeys: [spark-version]
  initContainers:
    - {name: fetch, image: fetch, resources: {requests: {cpu: 2500m}}}
  containers:
    - name: sidecar
      image: sidecar
      resources: {limits: {cpu: 500m, memory: 64Mi}}
    - name: worker
      image: worker
      resources:
        requests: {cpu: "9", memory: 9Gi, ephemeral-storage: 1Gi}
"""


def declared(pin: Pin, driver: Driver, door: Door, folder: Path, given: str) -> tuple[Pods, Pods]:
    """What the driver's PodGroup says of executors, and what Spark asks for.

    ``given`` is the text of the properties.
    """
    file = folder / "template.properties"
    file.write_text(given)
    submitted(pin, "local:///opt/app.jar", file, folder / f"submit-template-{pin.name}.log")
    (pod,) = door.awaited("spark-role=driver", 1)
    member = decode.decode_member(wire.parse_one(pod, wire.Pod))
    assert member.application is not None
    properties = _text(door, member.application.properties)
    template = _text(door, member.application.template)
    application_size = spark.by_properties(properties, template, member, SCHEDULER)
    role = _role(spark.group(member, member.application, application_size))
    local = folder / "mounted-template.yml"
    local.write_text(template)
    mine = {
        name: value
        for name, value in spark.read(properties).items()
        if not name.startswith(("spark.driver.", "spark.kubernetes.driver.", "spark.app.id"))
        and name not in ("spark.kubernetes.submitInDriver", "spark.jars")
    }
    with driver.context({**mine, FILE: str(local)}) as application:
        selector = f"spark-role=executor,spark-app-selector={application}"
        pods = door.awaited(selector, role.min_member)
    door.forget(pod)
    made = [decode.decode_member(wire.parse_one(each, wire.Pod)) for each in pods]
    assert role.template is not None
    return _pods(role.min_member, role.template.shape, role.template.labels), _seen(made)


def _text(door: Door, kept: ConfigMapKey | None) -> str:
    assert kept is not None
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{kept.config_map}"
    return str(door.read(path)["data"][kept.key])


def _role(body: dict[str, Any]) -> Any:
    metadata = {**body["metadata"], "uid": "declared"}
    body = {**body, "metadata": metadata}
    return pod_group.decode_group(wire.parse_one(body, pod_group.PodGroup)).roles[1]


def _seen(members: list[Member]) -> Pods:
    (shape,) = {member.shape for member in members}
    return _pods(len(members), shape, members[0].labels)


def _pods(count: int, shape: Shape, labels: Labels) -> Pods:
    """What equal members ask for and where they may run, as the other comparisons write it."""
    amounts = {n: a * 10**6 if n == "cpu" else a * 10**9 for n, a in shape.requests.amounts}
    # Admission lets every pod stay on a node that is lost for a while; Spark does not ask for it.
    own = [
        toleration
        for toleration in shape.tolerations
        if not toleration.key.startswith("node.kubernetes.io/")
    ]
    known = [(name, value) for name, value in labels if name not in OF_ONE]
    rules = {
        "tolerations": str(own),
        "affinity": str(shape.required),
        "between pods": str(shape.rules),
        "labels": str(known),
    }
    return Pods(count, amounts, {}, {**dict(shape.node_selector), **rules}, SCHEDULER)
