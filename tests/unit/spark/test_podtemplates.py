"""Pod templates of executors: what they add to what the properties say."""

import pytest

from tutti.spark import BadProperty, app
from tutti.spark.podtemplates import merged, plain

SMALL = app({"spark.kubernetes.node.selector.disk": "ssd"}).executor  # 1 core, 1408 MiB
TEMPLATE = """
apiVersion: v1
kind: Pod
spec:
  schedulerName: other
  nodeSelector: {pool: batch, disk: hdd}
  tolerations: [{key: spot, operator: Exists}]
  affinity: {nodeAffinity: {}}
  initContainers:
    - {name: fetch, resources: {requests: {cpu: 3}}}
  containers:
    - name: sidecar
      resources: {limits: {cpu: 500m, memory: 64Mi}}
    - name: spark
      ports: [{containerPort: 1, hostPort: 1}]
      resources:
        requests: {cpu: 9, memory: 9Gi, ephemeral-storage: 1Gi}
        limits: {example.com/disk: 2}
"""


def test_what_the_template_says_is_added_to_what_spark_says() -> None:
    """Spark replaces cpu and memory of its own container, and leaves the rest of the pod alone."""
    template, scheduler = merged(SMALL, TEMPLATE, "spark")
    assert scheduler == "other"
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
    }


def test_without_a_name_the_first_container_is_sparks() -> None:
    for name in ("", "nobody"):
        template, _ = merged(SMALL, TEMPLATE.replace("cpu: 3}", "cpu: 1}"), name)
        assert template["resources"]["cpu"] == "10000m"  # 1 of Spark's, 9 of the other
        assert template["resources"]["memory"] == str((1408 + 9 * 1024) * 2**20)


def test_an_empty_template_says_what_none_says() -> None:
    for spec in ("{}", "{containers: []}", "{containers: [{resources: {requests: , limits: }}]}"):
        template, scheduler = merged(SMALL, f"kind: Pod\nspec: {spec}", "")
        assert scheduler == ""
        assert template == {
            "resources": {"cpu": "1000m", "memory": str(1408 * 2**20)},
            "nodeSelector": {"disk": "ssd"},
        }
    assert plain(SMALL) == {
        "resources": {"cpu": "1", "memory": "1408Mi"},
        "nodeSelector": {"disk": "ssd"},
    }
    assert plain(app({}).executor) == {"resources": {"cpu": "1", "memory": "1408Mi"}}


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
        ("kind: Pod\nspec: {nodeSelector: {a: 1}}", "cannot be read"),
        (
            "kind: Pod\nspec: {containers: [{}, {resources: {requests: {cpu: many}}}]}",
            "requests cannot be read",
        ),
        ("kind: Pod\nspec: {affinity: {x: 2026-01-01}}", "no API object can"),
        ("kind: Pod\nspec: {affinity: {x: .nan}}", "no API object can"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused_by_name(text: str, why: str) -> None:
    with pytest.raises(BadProperty, match="podTemplateFile=") as refused:
        merged(SMALL, text, "")
    assert why in str(refused.value)
