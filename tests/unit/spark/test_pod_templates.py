"""Pod templates of executors: what they add to what the properties say."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.kube import wire
from tutti.kube.codec.decode import decode_member
from tutti.kube.gang_sources.pod_group import PodGroup, decode_group
from tutti.spark import BadProperty, app
from tutti.spark.pod_templates import MergedTemplate, merged, plain

SMALL = app({"spark.kubernetes.node.selector.disk": "ssd"}).executor  # 1 core, 1408 MiB
LABELS = {"spark-role": "executor", "spark-exec-id": "0"}
TEMPLATE = """
apiVersion: v1
kind: Pod
metadata:
  labels: {app: etl, spark-role: driver}
spec:
  schedulerName: other
  nodeSelector: {pool: batch, disk: hdd}
  tolerations: [{key: spot, operator: Exists}]
  affinity: {nodeAffinity: {}}
  topologySpreadConstraints:
    - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
  initContainers:
    - {name: fetch, resources: {requests: {cpu: 3}}}
  volumes:
    - {name: a, persistentVolumeClaim: {claimName: shared}}
    - {name: b, emptyDir: {}}
  containers:
    - name: sidecar
      resources: {limits: {cpu: 500m, memory: 64Mi}}
    - name: spark
      ports: [{containerPort: 1}]
      resources:
        requests: {cpu: 9, memory: 9Gi, ephemeral-storage: 1Gi}
        limits: {example.com/disk: 2}
"""


def found(text: str, container: str = "") -> MergedTemplate:
    return merged(SMALL, text, container, LABELS)


def test_what_the_template_says_is_added_to_what_spark_says() -> None:
    """Spark replaces cpu and memory of its own container, and leaves the rest of the pod alone."""
    template, scheduler, claims = found(TEMPLATE, "spark")
    assert (scheduler, claims) == ("other", ("shared",))
    assert template == {
        "resources": {
            "cpu": "3000m",  # the init container's
            "memory": str((1408 + 64) * 2**20),
            "ephemeral-storage": str(2**30),
            "example.com/disk": "2",
        },
        "nodeSelector": {"pool": "batch", "disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        "labels": {"app": "etl", **LABELS},
    }


def test_without_a_name_the_first_container_is_sparks() -> None:
    for name in ("", "nobody"):
        template = found(TEMPLATE.replace("cpu: 3}", "cpu: 1}"), name).template
        assert template["resources"]["cpu"] == "10000m"  # 1 of Spark's, 9 of the other
        assert template["resources"]["memory"] == str((1408 + 9 * 1024) * 2**20)


def test_an_empty_template_says_what_none_says() -> None:
    for spec in ("{}", "{containers: []}", "{containers: [{resources: {requests: , limits: }}]}"):
        assert found(f"kind: Pod\nspec: {spec}") == MergedTemplate(
            {
                "resources": {"cpu": "1000m", "memory": str(1408 * 2**20)},
                "nodeSelector": {"disk": "ssd"},
                "labels": LABELS,
            },
            "",
            (),
        )
    amounts = {"cpu": "1", "memory": "1408Mi"}
    assert plain(SMALL, LABELS) == {
        "resources": amounts,
        "nodeSelector": {"disk": "ssd"},
        "labels": LABELS,
    }
    assert plain(app({}).executor, {}) == {"resources": amounts, "labels": {}}


RULES = """
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {spark-role: executor}}
          matchLabelKeys: [app, nobody]
        - topologyKey: zone
          labelSelector: {matchExpressions: [{key: spark-exec-id, operator: Exists}]}
          mismatchLabelKeys: [app]
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 3
          podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {a: b}}}
  topologySpreadConstraints:
    - maxSkew: 2
      minDomains: 3
      topologyKey: zone
      whenUnsatisfiable: DoNotSchedule
      nodeTaintsPolicy: Honor
      labelSelector: {matchLabels: {app: etl}}
      matchLabelKeys: [spark-role]
    - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
"""


def test_rules_of_the_template_are_those_of_the_pods_that_are_made_of_it() -> None:
    """The API server merges what terms match by labels into the pods, and not into PodGroups."""
    template = found(f"kind: Pod\nmetadata: {{labels: {{app: etl}}}}\nspec:{RULES}").template
    role = {"name": "executor", "minMember": 2, "template": template}
    raw = {"metadata": {"name": "g", "namespace": "ml", "uid": "u"}, "spec": {"roles": [role]}}
    (read,) = decode_group(wire.parse_one(raw, PodGroup)).roles
    spec: dict[str, Any] = {name: template[name] for name in ("affinity", "nodeSelector")}
    anti = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert anti[0]["labelSelector"]["matchExpressions"] == [
        {"key": "app", "operator": "In", "values": ["etl"]}
    ]
    assert anti[1]["labelSelector"]["matchExpressions"][1:] == [
        {"key": "app", "operator": "NotIn", "values": ["etl"]}
    ]
    spec["topologySpreadConstraints"] = template["topologySpreadConstraints"]
    spec["containers"] = [{"resources": {"requests": template["resources"]}}]
    metadata = {"name": "p", "namespace": "ml", "uid": "p", "labels": template["labels"]}
    pod = decode_member(wire.parse_one({"metadata": metadata, "spec": spec}, wire.Pod))
    assert read.template is not None
    assert read.template.shape == pod.shape
    assert len(pod.shape.rules.anti_affinity) == 2
    assert len(pod.shape.rules.spread) == 1
    assert len(pod.shape.preferences.spread) == 1


UNQUOTED = """
kind: Pod
metadata:
  labels: {year: 2026, beta: true, ratio: 1.10, code: 007, on: yes, day: 2026-01-01, none: , 8: x}
spec:
  nodeSelector: {rack: 7}
  tolerations: [{key: spot, operator: Equal, value: 1, effect: , tolerationSeconds: 60}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 5
          preference: {matchExpressions: [{key: rack, operator: In, values: [1, false]}]}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: zone
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: {matchLabels: {weight: 3}}
"""


def test_what_is_not_in_quotes_is_read_as_spark_reads_it() -> None:
    """Numbers and truth values are texts wherever the API has texts, and stay numbers elsewhere."""
    template = found(UNQUOTED).template
    own = {"year": "2026", "beta": "true", "ratio": "1.1", "code": "007", "on": "yes"}
    assert template["labels"] == {**own, "day": "2026-01-01", "none": "", "8": "x", **LABELS}
    assert template["nodeSelector"] == {"disk": "ssd", "rack": "7"}
    assert template["tolerations"] == [
        {"key": "spot", "operator": "Equal", "value": "1", "tolerationSeconds": 60}
    ]
    (wish,) = template["affinity"]["nodeAffinity"].popitem()[1]
    assert wish["weight"] == 5
    assert wish["preference"]["matchExpressions"][0]["values"] == ["1", "false"]
    (spread,) = template["topologySpreadConstraints"]
    assert (spread["maxSkew"], spread["labelSelector"]) == (1, {"matchLabels": {"weight": "3"}})


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(0.5, 1e6) | st.text()


@given(
    st.dictionaries(st.text(), SCALARS | st.lists(SCALARS) | st.dictionaries(st.text(), SCALARS))
)
def test_labels_are_texts_or_the_one_that_is_none_is_named(labels: dict[str, Any]) -> None:
    text = json.dumps({"kind": "Pod", "metadata": {"labels": labels}, "spec": {}})
    if any(isinstance(label, list | dict) for label in labels.values()):
        with pytest.raises(BadProperty, match="which is no text: put it in quotes"):
            found(text)
        return
    given = found(text).template["labels"]
    assert given.keys() == labels.keys() | LABELS.keys()
    assert all(isinstance(each, str) for each in given.values())


PORT = "containerPort: 1, hostPort: 1"
NEAR_ONE = (
    "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "[{topologyKey: zone, labelSelector: {matchLabels: {spark-exec-id: '1'}}}]}}"
)
BROKEN = (
    "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "[{topologyKey: zone, labelSelector: {matchLabels: {'-': x}}}]}}"
)


def test_a_template_that_names_no_kind_is_a_pod() -> None:
    """The Spark operator writes one for every application, with the container alone."""
    spec = "spec: {containers: [{name: spark-kubernetes-executor, resources: {}}]}"
    for text in (f"metadata: {{}}\n{spec}", f"metadata: {{}}\n{spec}\nstatus: {{}}"):
        assert found(text) == found(f"kind: Pod\n{spec}")


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (f"containers: [{{ports: [{{{PORT}}}]}}]", "spec.containers[].ports[].hostPort"),
        (f"containers: [{{}}, {{ports: [{{{PORT}}}]}}]", "spec.containers[].ports[].hostPort"),
        ("hostNetwork: true", "spec.hostNetwork"),
        ("resourceClaims: [{name: gpu}]", "spec.resourceClaims"),
        ("schedulingGroup: {podGroupName: a}", "spec.schedulingGroup"),
        ("volumes: [{name: a, ephemeral: {}}]", "spec.volumes[].ephemeral"),
        ("volumes: [{name: a, rbd: {}}]", "spec.volumes[].rbd"),
        ("nodeName: n1", "spec.nodeName"),
        ("runtimeClassName: kata", "spec.runtimeClassName"),
        ("resources: {limits: {cpu: 4}}", "spec.resources.limits"),
        ("nodeName: n1, hostNetwork: true", "spec.hostNetwork, spec.nodeName"),
        (NEAR_ONE, "a selector of spark-exec-id"),
        (BROKEN, "a malformed spec.affinity.podAffinity"),
    ],
)
def test_what_the_template_of_a_role_cannot_say_is_named(spec: str, fields: str) -> None:
    """Room would be held for something else than what then comes."""
    with pytest.raises(BadProperty) as refused:
        found(f"kind: Pod\nspec: {{{spec}}}")
    assert str(refused.value) == (
        f"spark.kubernetes.executor.podTemplateFile=: the template uses {fields}, which room "
        "cannot be held for yet: name a PodGroup for the executors"
    )


def test_what_the_pod_as_a_whole_requests_is_counted() -> None:
    template = found("kind: Pod\nspec: {resources: {requests: {cpu: 5}}}").template
    assert template["resources"]["cpu"] == "5000m"


LAUGHS = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not one Pod"),
        ("kind: Job", "not one Pod"),
        ("kind: Pod\n---\nkind: Pod", "not one Pod"),
        ("kind: Pod", "has no spec"),
        ("kind: Pod\nspec: [1]", "has no spec"),
        ("\tno: yaml", "cannot be read"),
        ("just text", "is no API object"),
        (f"kind: Pod\n{LAUGHS}", "aliases stand for more"),
        ("kind: Pod\nspec: {containers: 7}", "no list of containers"),
        ("kind: Pod\nspec: {containers: [7]}", "no list of containers"),
        ("kind: Pod\nspec: {initContainers: text}", "no list of containers"),
        ("kind: Pod\nspec: {containers: [{resources: [1]}]}", "are no map"),
        ("kind: Pod\nspec: {containers: [{resources: {limits: [1]}}]}", "are no map"),
        ("kind: Pod\nspec: {nodeSelector: [a]}", "cannot be read: spec.nodeSelector"),
        (
            "kind: Pod\nmetadata: {labels: {a: []}}\nspec: {}",
            "metadata.labels.a is [], which is no",
        ),
        ("kind: Pod\nmetadata: {labels: {a: 1e9}}\nspec: {}", "is 1000000000.0, which is no text:"),
        ("kind: Pod\nmetadata: {labels: {a: .nan}}\nspec: {}", "is nan, which is no text: put it"),
        ("kind: Pod\nmetadata: {labels: [a]}\nspec: {}", "cannot be read: metadata.labels"),
        ("kind: Pod\nspec: {affinity: {podAffinity: 1}}", "cannot be read"),
        (
            "kind: Pod\nspec: {containers: [{}, {resources: {requests: {cpu: many}}}]}",
            "requests cannot be read",
        ),
        ("kind: Pod\nspec: {tolerations: [{tolerationSeconds: .nan}]}", "no API object can"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(BadProperty, match="podTemplateFile=") as refused:
        found(text)
    assert why in str(refused.value)
