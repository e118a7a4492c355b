"""How large a Spark application's gang is, by each of the contracts that say it."""

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.filters.node_index import NodeIndex
from tutti.kube import wire
from tutti.kube.gang_sources.pod_group import PodGroup, decode_group
from tutti.model.applications import ApplicationPod
from tutti.model.cluster import Member
from tutti.model.inter_pod import (
    AffinityTerm,
    InterPodRules,
    PodSelector,
    Requirement,
    TopologySpread,
)
from tutti.model.ports import HostPort, requested_amounts
from tutti.model.resources import Resources
from tutti.model.shapes import NodeTerm, Toleration
from tutti.spark import (
    ApplicationSize,
    BadProperties,
    BadProperty,
    by_properties,
    declared_size,
    group,
)

from ...harness.builders import labels, member, node, shape

PROPERTIES = {
    "spark.app.name": "etl",
    "spark.executor.instances": "3",
    "spark.executor.cores": "2",
    "spark.executor.memory": "4g",
    "spark.kubernetes.scheduler.name": "tutti",
}
DRIVER = ApplicationPod("spark-1", "driver")
OWN = {"spark-role": "executor", "spark-exec-id": "0", "spark-exec-resourceprofile-id": "0"}
TEMPLATE = {"resources": {"cpu": "2", "memory": "4505Mi"}, "labels": OWN}


def text(**changes: str) -> str:
    """The application's properties with some changed; ``__`` stands for a dot."""
    more = {f"spark.{name.replace('__', '.')}": value for name, value in changes.items()}
    return "\n".join(f"{name}={value}" for name, value in {**PROPERTIES, **more}.items())


def pod(name: str = "drv", **changes: Any) -> Member:
    return replace(member(name, shape(cpu=1)), application=DRIVER, **changes)


def computed(given: str, template: str | None = None, **changes: Any) -> ApplicationSize:
    return by_properties(given, template, pod(**changes), "tutti")


def test_properties_say_number_and_size() -> None:
    assert computed(text()) == ApplicationSize(3, None, TEMPLATE)


def test_dynamic_allocation_begins_with_its_least_and_ends_with_its_most() -> None:
    dynamic = {"dynamicAllocation__enabled": "true", "dynamicAllocation__minExecutors": "4"}
    assert computed(text(**dynamic)) == ApplicationSize(4, None, TEMPLATE)
    bounded = text(**dynamic, dynamicAllocation__maxExecutors="9")
    assert computed(bounded) == ApplicationSize(4, 9, TEMPLATE)


def test_devices_are_requests_of_the_template() -> None:
    devices = {"executor__resource__gpu__amount": "2", "executor__resource__gpu__vendor": "a.com"}
    application_size = computed(text(**devices, kubernetes__executor__limit__cores="3"))
    assert application_size.template["resources"] == {**TEMPLATE["resources"], "a.com/gpu": "2"}


@pytest.mark.parametrize(
    ("version", "mebibytes"), [(None, 4505), ("3.5.1", 4505), ("4.0.0-preview", 5120)]
)
def test_the_version_is_the_one_that_the_driver_carries(
    version: str | None, mebibytes: int
) -> None:
    """The least overhead is configurable from 4.0 on; drivers of before 3.3 carry no version."""
    known = () if version is None else (("spark-version", version),)
    application_size = computed(text(executor__minMemoryOverhead="1g"), labels=known)
    assert application_size.template["resources"]["memory"] == f"{mebibytes}Mi"


DRIVERS = {"spark-app-selector": "spark-1", "spark-app-name": "etl", "spark-version": "4.0.1"}


def carried(given: str, template: str | None = None) -> dict[str, str]:
    """The labels of a stand-in, without those that only say which kind of pod it is."""
    application_size = computed(given, template, labels=labels(**DRIVERS, team="x"))
    return {
        name: value
        for name, value in application_size.template["labels"].items()
        if name not in OWN
    }


def test_executors_carry_the_labels_that_spark_and_its_properties_give_them() -> None:
    """A property comes before the pod template, and Spark before both."""
    assert carried(text()) == DRIVERS
    given = {"kubernetes__executor__label__team": "a", "kubernetes__executor__label__tier": "b"}
    assert carried(text(**given)) == {**DRIVERS, "team": "a", "tier": "b"}
    file = {"kubernetes__executor__podTemplateFile": "/x.yml"}
    template = "kind: Pod\nmetadata: {labels: {team: c, app: d, spark-role: driver}}\nspec: {}"
    labels = {"team": "a", "tier": "b", "app": "d"}
    assert carried(text(**given, **file), template) == {**DRIVERS, **labels}


def test_what_is_quoted_moves_no_cursor() -> None:
    with pytest.raises(
        BadProperty, match=r"^spark\.executor\.memory=\[/x\]\\x1b\[2J: is not a size"
    ):
        computed(text(executor__memory="[/x]\x1b[2J"))


def test_placeholders_in_labels_are_filled_in_from_spark_4_on() -> None:
    named = {"kubernetes__executor__label__id": "{{APP_ID}}-{{EXECUTOR_ID}}"}
    assert carried(text(**named))["id"] == "spark-1-0"
    before = computed(text(**named), labels=labels(**{"spark-version": "3.5.1"}))
    with pytest.raises(BadProperty, match=r"^label id=\{\{APP_ID\}\}-\{\{EXECUTOR_ID\}\}: no pod"):
        made(before)


@pytest.mark.parametrize(
    ("name", "value"), [("-x", "a"), ("team", "a b"), ("team", "x" * 64), ("", "a")]
)
def test_a_label_that_no_pod_can_have_is_named(name: str, value: str) -> None:
    given = f"{text()}\nspark.kubernetes.executor.label.{name}={value}"
    with pytest.raises(BadProperty, match=f"^label {name}=.*no pod can have such a label"):
        made(computed(given))


def test_executors_of_another_role_would_never_take_the_room_that_is_held_for_them() -> None:
    given = f"{text()}\nspark.kubernetes.executor.label.tutti.dev/role="
    with pytest.raises(BadProperty, match=r"^label tutti\.dev/role=worker: executors have"):
        made(computed(f"{given}worker"))
    assert made(computed(f"{given}executor"))


def test_more_labels_than_a_template_has_are_counted() -> None:
    many = {f"kubernetes__executor__label__a{n}": "" for n in range(62)}
    with pytest.raises(BadProperty, match=r"^labels of executors=65: a template has"):
        made(computed(text(**many)))
    many.popitem()
    assert len(made(computed(text(**many)))["spec"]["roles"][1]["template"]["labels"]) == 64


def test_executors_that_name_a_podgroup_of_their_own_are_not_counted() -> None:
    named = "spark.kubernetes.executor.label.tutti.dev/pod-group=mine"
    assert computed(f"{text()}\n{named}").executors == 0


def test_claims_that_all_executors_share_are_said_and_not_held() -> None:
    """Where their volumes can be reached no template says; one for each executor is refused."""
    name = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data.options"
    given = text(kubernetes__executor__podTemplateFile="/x.yml")
    given += f"\n{name}.claimName=shared\n{name}.storageClass=fast"
    volumes = "volumes: [{name: a, persistentVolumeClaim: {claimName: other}}]"
    application_size = computed(given, f"kind: Pod\nspec: {{{volumes}}}")
    assert application_size.claims == ("other", "shared")
    assert made(application_size)["metadata"]["annotations"] == {
        "tutti.dev/not-held": "claims of executors: other, shared"
    }
    assert "annotations" not in made(computed(text()))["metadata"]


def test_executors_of_another_scheduler_are_not_counted() -> None:
    other = text(kubernetes__executor__scheduler__name="default-scheduler")
    assert computed(other).executors == 0
    unnamed = text().replace("spark.kubernetes.scheduler.name=tutti", "")
    assert computed(unnamed).executors == 0


def test_a_pod_that_the_spark_operator_made_names_the_scheduler_for_both() -> None:
    """Its webhook sets the scheduler, which no property says."""
    unnamed = text().replace("spark.kubernetes.scheduler.name=tutti", "")
    made: dict[str, Any] = {"labels": (("sparkoperator.k8s.io/app-name", "etl"),)}
    assert computed(unnamed, **made).executors == 3
    assert computed(text(kubernetes__executor__scheduler__name="x"), **made).executors == 0


def test_a_pod_template_is_counted() -> None:
    given = text(
        kubernetes__executor__podTemplateFile="/opt/spark/pod-template/pod-spec-template.yml",
        kubernetes__executor__podTemplateContainerName="b",
    ).replace("spark.kubernetes.scheduler.name=tutti", "")
    template = (
        "kind: Pod\nspec: {schedulerName: tutti, containers: [{resources: {requests: {cpu: 1}}},"
        " {name: b}]}"
    )
    application_size = computed(given, template)
    assert (application_size.executors, application_size.template["resources"]["cpu"]) == (
        3,
        "3000m",
    )
    assert computed(given, "kind: Pod\nspec: {}").executors == 0


@pytest.mark.parametrize(
    ("changes", "labels_", "said_"),
    [
        ({"executor__memory": "1.5g"}, (), "spark.executor.memory=1.5g: is not a size"),
        ({"executor__instances": "many"}, (), "spark.executor.instances=many: is not a whole"),
        ({"executor__cores": "9" * 9000}, (), "is longer than the 8,192 characters"),
        (
            {"kubernetes__executor__pod__featureSteps": "com.acme.Step"},
            (),
            "spark.kubernetes.executor.pod.featureSteps=com.acme.Step: what it adds",
        ),
        (
            {
                "kubernetes__executor__volumes__persistentVolumeClaim__data__options__claimName": (
                    "OnDemand"
                )
            },
            (),
            "claims that are made for each executor are not placed yet",
        ),
        (
            {"kubernetes__executor__podTemplateFile": "/x.yml"},
            (),
            "spark.kubernetes.executor.podTemplateFile=/x.yml: the driver mounts no such",
        ),
        ({}, (("spark-version", "next"),), "spark-version=next: is no version"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_value(
    changes: dict[str, str], labels_: tuple[tuple[str, str], ...], said_: str
) -> None:
    with pytest.raises(BadProperty) as refused:
        computed(text(**changes), labels=labels_)
    assert str(refused.value).startswith(said_) or said_ in str(refused.value)


def test_references_that_multiply_come_to_an_end() -> None:
    """Ten in each of fifteen would be a quadrillion."""
    bombs = "\n".join(f"spark.b{n}={f'${{spark.b{n + 1}}}' * 10}" for n in range(15))
    given = f"{text(executor__memoryOverhead='${spark.b0}')}\n{bombs}\nspark.b15=1"
    with pytest.raises(BadProperty, match="very many others"):
        computed(given)


def test_a_value_has_at_most_a_hundred_references() -> None:
    """Those to nothing at all are counted as well."""
    many = {n: text(executor__memoryOverhead="${spark.x}" * n + "512m", x="") for n in (100, 101)}
    assert computed(many[100]).template["resources"]["memory"] == "4608Mi"
    with pytest.raises(BadProperty, match="very many"):
        computed(many[101])


def test_what_is_too_long_is_not_read() -> None:
    with pytest.raises(BadProperties, match="has 262,145 characters, and 262,144 are read at most"):
        computed(text().ljust(262_145))
    assert computed(text().ljust(262_144)).executors == 3
    given = text(kubernetes__executor__podTemplateFile="/x.yml")
    template = "kind: Pod\nspec: {}\n"
    assert computed(given, template.ljust(65_536)).executors == 3
    with pytest.raises(BadProperty, match="has 65,537 characters, and 65,536 are read at most"):
        computed(given, template.ljust(65_537))


@pytest.mark.parametrize("template", ['{"a":' * 900 + "1" + "}" * 900, "[" * 65_000, "- " * 32_000])
def test_a_template_of_many_levels_is_refused(template: str) -> None:
    """What can just be read could not be written again, and more would end the process."""
    given = text(kubernetes__executor__podTemplateFile="/x.yml")
    with pytest.raises((BadProperty, BadProperties), match="nested"):
        computed(given, template=template)


def test_a_line_continued_without_end_is_read_at_once() -> None:
    """Each was once copied with all that came before it."""
    assert computed(text() + "\nx=" + "\\\n" * 100_000).executors == 3


@given(st.text(max_size=80))
def test_whatever_a_configmap_holds_it_is_read_or_refused(junk: str) -> None:
    with contextlib.suppress(BadProperty, BadProperties):
        assert group(pod(), DRIVER, computed(f"{text()}\n{junk}"))["kind"] == "PodGroup"


def client(marks: dict[str, str], **changes: Any) -> ApplicationSize | None:
    spark = ApplicationPod("app-1", "executor", annotations=tuple(sorted(marks.items())))
    return declared_size(pod("exec-1", **changes), spark, "tutti")


def test_in_client_mode_an_executor_says_how_many_there_will_be_like_itself() -> None:
    asks = replace(
        shape(cpu=2, memory=1, gpu=1),
        node_selector=(("pool", "a"),),
        required=(NodeTerm((Requirement("zone", "In", ("x",)),)),),
        tolerations=(Toleration("spot", "Exists"),),
    )
    found = client({"tutti.dev/executors": "8"}, shape=asks)
    assert found is not None
    assert (found.executors, found.most) == (8, None)
    assert found.template["resources"] == {
        "cpu": "2000m",
        "memory": str(2**30),
        "nvidia.com/gpu": "1",
    }
    assert found.template["nodeSelector"] == {"pool": "a"}
    assert found.template["tolerations"][0]["key"] == "spot"
    assert "nodeAffinity" in found.template["affinity"]
    most = client({"tutti.dev/executors": "8", "tutti.dev/max-executors": "20"})
    assert most is not None
    assert (most.executors, most.most) == (8, 20)


@pytest.mark.parametrize(
    ("marks", "sentence"),
    [
        ({"tutti.dev/executors": "eight"}, "tutti.dev/executors=eight: is not a whole number"),
        ({"tutti.dev/executors": "0"}, "tutti.dev/executors=0: a gang has one member"),
        ({"tutti.dev/max-executors": "9"}, "tutti.dev/executors=: is not set"),
        (
            {"tutti.dev/executors": "1", "tutti.dev/max-executors": "-1"},
            "tutti.dev/max-executors=-1: is negative",
        ),
    ],
)
def test_an_annotation_that_cannot_be_read_is_named(marks: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadProperty) as refused:
        client(marks)
    assert str(refused.value).startswith(sentence)


EVEN = InterPodRules(
    spread=(TopologySpread("zone", PodSelector((Requirement("app", "Exists"),), ("ml",)), 1, 1),)
)


def test_what_a_template_can_say_of_the_executor_is_said() -> None:
    found = client(
        {"tutti.dev/executors": "2"},
        shape=replace(shape(cpu=1), rules=EVEN),
        labels=(("spark-exec-id", "7"), ("team", "x")),
        claims=("shared",),
    )
    assert found is not None
    (spread,) = found.template["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["whenUnsatisfiable"]) == ("zone", "DoNotSchedule")
    assert found.template["labels"] == {"spark-exec-id": "0", "team": "x"}
    assert found.claims == ("shared",)


NUMBERED = PodSelector((Requirement("spark-exec-id", "In", ("7",)),), ("ml",))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"unsupported_fields": ("spec.resourceClaims",)}, "spec.resourceClaims"),
        (
            {"shape": replace(shape(), requests=Resources.of(requested_amounts([HostPort(80)])))},
            "spec.containers[].ports[].hostPort",
        ),
        (
            {
                "shape": replace(
                    shape(), rules=InterPodRules(anti_affinity=(AffinityTerm("zone", NUMBERED),))
                )
            },
            "a selector of spark-exec-id",
        ),
    ],
)
def test_what_no_template_can_say_of_the_executor_is_named(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadProperty) as refused:
        client({"tutti.dev/executors": "2"}, **changes)
    assert f"the executor uses {field}, which room cannot be held for" in str(refused.value)


PALANTIR = {
    "spark-driver-cpu": "1",
    "spark-driver-mem": "1Gi",
    "spark-executor-cpu": "1500m",
    "spark-executor-mem": "2Gi",
    "spark-executor-count": "5",
}


def annotated(**changes: str | None) -> ApplicationSize | None:
    """A driver with Palantir's annotations, some changed or, if None, missing."""
    more = {f"spark-{name.replace('_', '-')}": value for name, value in changes.items()}
    marks = {n: v for n, v in {**PALANTIR, **more}.items() if v is not None}
    counting = tuple(sorted((n, v) for n, v in marks.items() if "driver" not in n))
    return declared_size(pod(), replace(DRIVER, annotations=counting), "tutti")


def test_palantirs_annotations_say_number_and_size() -> None:
    sizes = {"resources": {"cpu": "1500m", "memory": "2Gi"}, "labels": OWN}
    assert annotated() == ApplicationSize(5, None, sizes)
    assert annotated(dynamic_allocation_enabled="False") == ApplicationSize(5, None, sizes)
    dynamic = annotated(
        executor_count=None,
        dynamic_allocation_enabled="T",
        dynamic_allocation_min_executor_count="2",
        dynamic_allocation_max_executor_count="9",
    )
    assert dynamic == ApplicationSize(2, 9, sizes)
    devices = {"spark-executor-nvidia.com/gpu": "1", "spark-executor-cpu": "1"}
    with_gpu = {**devices, "spark-executor-mem": "1Gi", "spark-executor-count": "1"}
    found = declared_size(
        pod(), replace(DRIVER, annotations=tuple(sorted(with_gpu.items()))), "tutti"
    )
    assert found is not None
    assert found.template["resources"]["nvidia.com/gpu"] == "1"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"executor_count": None}, "spark-executor-count=: is not set"),
        ({"executor_count": "2.5"}, "spark-executor-count=2.5: is not a whole number"),
        ({"executor_cpu": None}, "spark-executor-cpu=: is not set"),
        ({"executor_mem": "lots"}, "spark-executor-mem=lots: "),
        ({"dynamic_allocation_enabled": "so-so"}, "spark-dynamic-allocation-enabled=so-so: is nei"),
        (
            {"dynamic_allocation_enabled": "1"},
            "spark-dynamic-allocation-min-executor-count=: is not set",
        ),
    ],
)
def test_one_of_palantirs_that_cannot_be_read_is_named(
    changes: dict[str, str | None], sentence: str
) -> None:
    with pytest.raises(BadProperty) as refused:
        annotated(**changes)
    assert str(refused.value).startswith(sentence)


LABELLED = {"executors": "4", "exec-cpu": "2", "exec-mem": "3"}


def test_labels_of_an_older_gang_scheduler_say_cores_and_gigabytes() -> None:
    found = declared_size(pod(labels=labels(**LABELLED)), DRIVER, "tutti")
    assert found is not None
    assert (found.executors, found.most) == (4, None)
    assert found.template["resources"] == {"cpu": "2", "memory": "3Gi"}
    assert found.template["labels"] == OWN
    assert declared_size(pod(labels=labels(executors="4")), DRIVER, "tutti") is None
    with pytest.raises(BadProperty, match="executors=: is not set"):
        declared_size(pod(labels=(("exec-cpu", "2"),)), DRIVER, "tutti")
    with pytest.raises(BadProperty, match=r"exec-mem=1\.5: is not a whole number"):
        declared_size(pod(labels=labels(**{**LABELLED, "exec-mem": "1.5"})), DRIVER, "tutti")


@pytest.mark.parametrize(
    ("cost", "earned"), [(None, 100), *((n, 100 - n) for n in range(101)), (250, 0), ("low", 0)]
)
def test_with_such_labels_the_cheaper_of_two_nodes_is_preferred(
    cost: int | str | None, earned: int
) -> None:
    """By the label that the older scheduler looked at: a node earns 100 less its cost."""
    declared = declared_size(pod(labels=labels(**LABELLED)), DRIVER, "tutti")
    assert declared is not None
    raw = made(declared)
    raw["metadata"]["uid"] = "u"
    _, executor = decode_group(wire.parse_one(raw, PodGroup)).roles
    assert executor.template is not None
    has = {} if cost is None else {"cost": str(cost)}
    index = NodeIndex([node("n1").labelled(**has).made])
    assert index.preference(executor.template.shape).tolist() == [earned]


def made(declared: ApplicationSize, **changes: Any) -> dict[str, Any]:
    return group(pod(**changes), DRIVER, declared)


def test_a_podgroup_is_named_after_the_application_and_goes_with_its_driver() -> None:
    carried = (("spark-app-name", "etl"), ("team", "x"))
    found = made(ApplicationSize(3, 5, TEMPLATE), labels=carried)
    assert found["metadata"] == {
        "name": "spark-1",
        "namespace": "ml",
        "labels": {"spark-app-name": "etl"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "drv", "uid": "ml/drv-uid"}
        ],
    }
    assert found["spec"] == {
        "roles": [
            {"name": "driver", "minMember": 1},
            {"name": "executor", "minMember": 3, "maxMember": 5, "template": TEMPLATE},
        ]
    }
    json.dumps(found)


def test_limits_of_the_api_are_kept() -> None:
    """More than it can say is no bound; fewer than are needed is what is needed."""
    assert "maxMember" not in made(ApplicationSize(3, 5001, TEMPLATE))["spec"]["roles"][1]
    assert made(ApplicationSize(3, 2, TEMPLATE))["spec"]["roles"][1]["maxMember"] == 3
    assert made(ApplicationSize(0, 9, TEMPLATE))["spec"] == {"minMember": 1}
    assert made(ApplicationSize(4999, None, TEMPLATE))["spec"]["roles"][1]["minMember"] == 4999
    with pytest.raises(BadProperty, match="at most 5,000 members"):
        made(ApplicationSize(5000, None, TEMPLATE))


def test_a_gang_of_client_mode_has_no_driver() -> None:
    found = group(pod(), ApplicationPod("app-1", "executor"), ApplicationSize(5000, None, TEMPLATE))
    assert [role["name"] for role in found["spec"]["roles"]] == ["executor"]
