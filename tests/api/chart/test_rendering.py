"""The chart as Helm renders it: defaults, what is off by default, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from demo import installing

from tutti import __version__
from tutti.operator.settings import Settings

from ...harness.controlplane import pins
from ...harness.rights import granted
from .rendering import (
    CHART,
    OPTIONS,
    POLICIES,
    RENDERED,
    ROOT,
    HelmError,
    added,
    helm,
    render,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


WIDE = "tutti-system.tutti"  # what is not in the release's namespace, or may be elsewhere


def _only(kind: str, *arguments: str) -> dict[str, Any]:
    named = (part for part in render(*arguments) if part["kind"] == kind)
    (found,) = (part for part in named if part["metadata"]["name"] in ("tutti", WIDE))
    return found


def _pod(*arguments: str) -> dict[str, Any]:
    spec: dict[str, Any] = _only("Deployment", *arguments)["spec"]["template"]["spec"]
    return spec


def test_helm_finds_nothing_to_criticise() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_by_default_nothing_optional_is_rendered() -> None:
    """Also where the API server could do it."""
    assert sorted(part["kind"] for part in render(POLICIES)) == [
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ]


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_adds_what_its_snapshot_says(option: str) -> None:
    """And changes nothing else: the snapshot holds every object that differs."""
    kept = (RENDERED / f"{option}.yaml").read_text()
    assert added(option) == kept, "on purpose? python -m tests.api.chart.rendering"


def test_the_demo_has_the_rights_of_the_chart() -> None:
    """The same rules bound in the same way, and Leases by name alone."""
    made = installing.manifests(installing.Found(frozenset()))
    assert granted(made) == granted(render())

    def named(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        rules = (rule for part in parts for rule in part.get("rules", ()))
        return [rule for rule in rules if "resourceNames" in rule]

    assert named(made) == named(render())


@pytest.mark.parametrize("is_enabled", [False, True])
def test_configmaps_are_read_only_where_spark_is_served_and_only_by_name(
    *, is_enabled: bool
) -> None:
    """Both rights and the setting that uses them, or neither."""
    option = f"--set=spark.enabled={str(is_enabled).lower()}"
    rules = _only("ClusterRole", option)["rules"]
    verbs = [rule["verbs"] for rule in rules if "configmaps" in rule["resources"]]
    assert verbs == [["get"]] * is_enabled
    made = [rule["resources"] for rule in rules if "create" in rule["verbs"]]
    assert (["podgroups"] in made) == is_enabled
    told = {each["name"]: each["value"] for each in _pod(option)["containers"][0]["env"]}
    assert told["TUTTI_SPARK_ENABLED"] == str(is_enabled).lower()


def test_devices_are_read_and_claims_are_written_only_where_that_is_turned_on() -> None:
    """The setting that uses the rights comes with them."""
    option = "--set=devices.enabled=false"
    kinds = ("resourceslices", "deviceclasses", "devicetaintrules", "resourceclaims")
    written = ("resourceclaims", "resourceclaims/status", "resourceclaims/binding")
    assert _rights() - _rights(option) == {
        *((kind, verb) for kind in kinds for verb in ("list", "watch")),
        *((resource, "patch") for resource in written),
        ("resourceclaims", "create"),
    }
    shadow = "--set=settings.mode=shadow"
    assert {verb for _, verb in _rights(shadow) - _rights(option, shadow)} == {"list", "watch"}
    told = {each["name"]: each["value"] for each in _pod(option)["containers"][0]["env"]}
    assert told["TUTTI_DEVICES_ENABLED"] == "false"


def test_volumes_are_written_only_where_that_is_turned_on() -> None:
    """The setting that uses the rights comes with them; listing and watching stay."""
    option = "--set=settings.bindVolumes=false"
    kinds = ("persistentvolumeclaims", "persistentvolumes")
    gone = {(kind, verb) for kind in kinds for verb in ("get", "patch")}
    assert _rights() - _rights(option) == gone
    told = {each["name"]: each["value"] for each in _pod(option)["containers"][0]["env"]}
    assert told["TUTTI_BIND_VOLUMES"] == "false"


def test_by_default_two_replicas_are_spread_and_go_one_at_a_time() -> None:
    """Softly: one node is enough for both."""
    deployment = _only("Deployment")
    pod = deployment["spec"]["template"]
    assert deployment["spec"]["replicas"] == 2
    assert "strategy" not in deployment["spec"]  # rolling, Kubernetes' default
    assert pod["spec"]["priorityClassName"] == "system-cluster-critical"
    assert _only("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    spread = pod["spec"]["topologySpreadConstraints"]
    assert [(each["topologyKey"], each["whenUnsatisfiable"]) for each in spread] == [
        ("kubernetes.io/hostname", "ScheduleAnyway"),
        ("topology.kubernetes.io/zone", "ScheduleAnyway"),
    ]
    for each in (*spread, _only("PodDisruptionBudget")["spec"]):
        chosen = (each.get("labelSelector") or each["selector"])["matchLabels"]
        assert chosen.items() <= pod["metadata"]["labels"].items()


def test_one_replica_has_no_budget_that_could_block_a_drain() -> None:
    assert not [part for part in render("--set=replicas=1") if "Disruption" in part["kind"]]


def test_every_setting_becomes_its_variable_in_a_persons_spelling() -> None:
    """Helm's own way to write a million is 1e+06."""
    chosen = ["--set=settings.ageSeconds=1000000", "--set-json=settings.budgetSeconds=0.5"]
    container = _pod(*chosen)["containers"][0]
    told = {each["name"]: each["value"] for each in container["env"]}
    assert told["TUTTI_AGE_SECONDS"] == "1000000"
    assert told["TUTTI_BUDGET_SECONDS"] == "0.5"
    assert told["TUTTI_BINDINGS_IN_FLIGHT"] == "64"


CHOSEN: Mapping[str, Any] = {
    "schedulerName": "mine",
    "namespaces": ["ml", "etl"],
    "gangSources": ["podgroups.scheduling.x-k8s.io"],
    "handOver": True,
    "strategy": "bestfit",
    "budgetSeconds": 0.5,
    "budgetNodes": 1_000_000,
    "objective": "gangs",
    "ageSeconds": 1000000,
    "starvationSeconds": 60,
    "usageHalfLifeSeconds": 86_400,
    "mode": "paused",
    "bindVolumes": False,
    "volumeSeconds": 90,
    "preemption": "Reclaim",
    "evictionsPerCycle": 7,
    "evictionsPerHour": 70,
    "bindingsPerCycle": 16,
    "dumpDirectory": "/dumps",
    "identity": "me",
    "leaseNamespace": "leases",
    "bindingsInFlight": 8,
    "probePort": 9000,
    "logFormat": "json",
    "logLevel": "debug",
}


def test_every_setting_reaches_the_operator_as_it_was_chosen() -> None:
    """Each of another value than its default: none is lost on the way, and none is another's."""
    chosen = {re.sub(r"(?=[A-Z])", "_", name).lower(): value for name, value in CHOSEN.items()}
    switches = {"spark_enabled": False, "devices_enabled": False}
    meant = Settings.model_validate({**chosen, **switches})
    usual = Settings()
    same = [name for name in Settings.model_fields if getattr(meant, name) == getattr(usual, name)]
    assert same == []
    off = "--set=spark.enabled=false,devices.enabled=false,replicas=1"
    options = [f"--set-json=settings={json.dumps(CHOSEN)}", off]
    container = _pod(*options)["containers"][0]
    told = {each["name"]: each["value"] for each in container["env"]}
    assert Settings.from_environment(told) == meant


def test_an_image_may_be_named_by_its_digest() -> None:
    """As values.yaml says, after the tag: who pins does so by that."""
    name = "--set=image.repository=registry.example.com/tutti,image.tag=0.1.0@sha256:abc"
    (container,) = _pod(name)["containers"]
    assert container["image"] == "registry.example.com/tutti:0.1.0@sha256:abc"


def test_the_probes_follow_the_setting() -> None:
    (container,) = _pod("--set=settings.probePort=9000")["containers"]
    assert container["ports"] == [{"name": "probes", "containerPort": 9000}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "probes"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "probes"}


MOUNTS: Mapping[str, Sequence[str]] = {
    "": ["/tmp"],  # the pod's own
    "/tmp": ["/tmp"],
    "/tmp/": ["/tmp"],
    "/var/dumps/": ["/tmp", "/var/dumps"],
}


@pytest.mark.parametrize("directory", MOUNTS)
def test_dumps_can_be_written_wherever_they_go(directory: str) -> None:
    """The root file system cannot be written to: every other place is a volume."""
    pod = _pod(f"--set=settings.dumpDirectory={directory}")
    mounts = pod["containers"][0]["volumeMounts"]
    assert [mount["mountPath"] for mount in mounts] == MOUNTS[directory]
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"] for mount in mounts]


def test_by_default_dumps_go_with_the_pod() -> None:
    pod = _pod("--set=settings.dumpDirectory=/dumps")
    assert pod["volumes"][1] == {"name": "dumps", "emptyDir": {"sizeLimit": "512Mi"}}


def test_dumps_can_outlive_the_pod() -> None:
    """By the option that docs/install.md names: another kind of volume replaces the usual one."""
    (option,) = re.findall(r"`(--set \S*dumpVolume\S*)`", (ROOT / "docs/install.md").read_text())
    pod = _pod(*option.split())
    kept = {"name": "dumps", "persistentVolumeClaim": {"claimName": "dumps"}}
    assert pod["volumes"][1] == kept
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"]


def test_a_replica_with_a_given_name_is_stopped_before_its_successor_starts() -> None:
    """Two of one name would both take themselves for the leader."""
    chosen = ["--set=settings.identity=me", "--set=replicas=1"]
    assert _only("Deployment", *chosen)["spec"]["strategy"] == {"type": "Recreate"}


def test_without_a_priority_class_none_is_named() -> None:
    assert "priorityClassName" not in _pod("--set=priorityClassName=")


def test_the_pods_may_be_told_where_to_run() -> None:
    """All three ways reach the pod as they are given."""
    pod = _pod(
        "--set=nodeSelector.pool=system",
        '--set-json=tolerations=[{"operator":"Exists"}]',
        '--set-json=affinity={"nodeAffinity":{}}',
    )
    assert pod["nodeSelector"] == {"pool": "system"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["affinity"] == {"nodeAffinity": {}}


def _rights(*arguments: str) -> set[tuple[str, str]]:
    return _granted(_only("ClusterRole", *arguments))


def _granted(role: Mapping[str, Any]) -> set[tuple[str, str]]:
    rules = role["rules"]
    return {(name, verb) for rule in rules for name in rule["resources"] for verb in rule["verbs"]}


def test_a_shadow_has_no_right_to_do_what_it_says() -> None:
    """It lacks what moves pods or makes PodGroups; it may write what it says of them and Queues."""
    shadow = _rights("--set=settings.mode=shadow")
    assert _rights() - shadow == {
        ("leases", "list"),
        ("pods", "get"),
        ("jobs", "get"),
        ("pods/binding", "create"),
        ("pods/eviction", "create"),
        ("pods/status", "patch"),
        *(("reservations", verb) for verb in ("create", "patch", "delete")),
        *(("configmaps", "get"), ("podgroups", "create"), ("queues", "patch")),
        *(("persistentvolumes", verb) for verb in ("get", "patch")),
        *(("persistentvolumeclaims", verb) for verb in ("get", "patch")),
        *(("resourceclaims", verb) for verb in ("create", "patch")),
        *((f"resourceclaims/{part}", "patch") for part in ("status", "binding")),
    }
    written = {right for right in shadow if right[1] not in ("get", "list", "watch")}
    assert written == {
        *(("podgroups/status", "patch"), ("queues/status", "patch"), ("events", "create"))
    }
    assert _rights("--set=settings.mode=paused") == _rights()


def test_where_namespaces_are_named_nothing_is_written_elsewhere() -> None:
    """What is granted for the whole cluster is to look; the rest is a Role in each of them.

    Queues and volumes have no namespace: what is written of them is granted for the whole cluster.
    The right to give a claim its devices has none either: it is asked for in all namespaces.
    """
    chosen = "--set=settings.namespaces={ml,etl}"
    wide = _rights(chosen)
    without_namespace = {("queues", "patch"), ("queues/status", "patch")}
    without_namespace |= {("persistentvolumes", verb) for verb in ("get", "patch")}
    without_namespace |= {("resourceclaims/binding", "patch")}
    assert {verb for _, verb in wide - without_namespace} == {"list", "watch"}
    served = [part for part in render(chosen) if part["metadata"]["name"] == f"{WIDE}-served"]
    roles = [part for part in served if part["kind"] == "Role"]
    assert [role["metadata"]["namespace"] for role in roles] == ["ml", "etl"]
    assert all(_granted(role) | wide == _rights() for role in roles)
    bindings = [part for part in served if part["kind"] == "RoleBinding"]
    assert [binding["metadata"]["namespace"] for binding in bindings] == ["ml", "etl"]
    told = {each["name"]: each["value"] for each in _pod(chosen)["containers"][0]["env"]}
    assert told["TUTTI_NAMESPACES"] == "ml,etl"


def test_where_namespaces_are_named_no_other_can_opt_in() -> None:
    """A pod that became Tutti's there would wait for ever."""
    chosen = ["--set=admission.enabled=true,settings.namespaces={ml,etl}", POLICIES]
    selector = _only("MutatingAdmissionPolicyBinding", *chosen)["spec"]["matchResources"]
    (of_name,) = selector["namespaceSelector"]["matchExpressions"]
    assert (of_name["key"], of_name["values"]) == ("kubernetes.io/metadata.name", ["ml", "etl"])
    assert selector["namespaceSelector"]["matchLabels"] == {"tutti.dev/scheduler": "tutti"}


def test_releases_of_one_name_in_two_namespaces_have_no_object_in_common() -> None:
    """Not even where they serve one namespace and have their Leases in one."""
    chosen = "settings.namespaces={ml},settings.leaseNamespace=leases,admission.enabled=true"
    first, second = (
        {
            (part["kind"], part["metadata"].get("namespace"), part["metadata"]["name"])
            for part in render(f"--set={chosen}", POLICIES, f"--namespace={namespace}")
        }
        for namespace in ("here", "there")
    )
    assert len(first) == len(second)
    assert not first & second


def test_the_lease_and_the_right_to_it_are_in_the_chosen_namespace() -> None:
    chosen = "--set=settings.leaseNamespace=leases,settings.schedulerName=mine"
    role = _only("Role", chosen)
    assert role["metadata"]["namespace"] == "leases"
    assert role["rules"][1]["resourceNames"] == ["mine"]
    assert _only("RoleBinding", chosen)["metadata"]["namespace"] == "leases"
    assert _only("RoleBinding", chosen)["subjects"][0]["namespace"] == "tutti-system"


def _notes(place: Path, *arguments: str) -> str:
    """The notes, which Helm prints for a cluster only: a copy of the chart has them as text."""
    shutil.copytree(CHART, place, dirs_exist_ok=True)
    shutil.copy(place / "templates" / "NOTES.txt", place / "notes")
    wrapped = '{kind: Notes, text: {{ tpl (.Files.Get "notes") . | toJson }}}'
    (place / "templates" / "wrapped.yaml").write_text(wrapped)
    chosen = ["--show-only=templates/wrapped.yaml", *arguments]
    return str(yaml.safe_load(helm("template", "tutti", str(place), *chosen))["text"])


def test_the_notes_say_when_an_option_does_nothing(tmp_path: Path) -> None:
    """Nobody has to wonder why nothing happens."""
    chosen = "--set=admission.enabled=true,replicas=0,settings.mode=paused"
    usual, more = _notes(tmp_path), _notes(tmp_path, chosen)
    assert "WARNING" not in usual
    assert "tutti.dev/scheduler=" not in usual
    assert "WARNING: admission.enabled has no effect" in more
    assert "WARNING: with replicas: 0, no gang starts" in more
    assert "WARNING: with settings.mode: paused, no gang starts" in more
    assert "tutti.dev/scheduler=tutti" in _notes(tmp_path, chosen, POLICIES)
    assert " -n ml get ptg hello" in _notes(tmp_path, "--set=settings.namespaces={ml,etl}")


def test_the_notes_say_that_the_image_has_to_be_made(tmp_path: Path) -> None:
    """Only while nobody has said where it is; where they send their reader, it is described."""
    usual = _notes(tmp_path)
    assert f"Its image, tutti:{__version__}, is not published: build it" in usual
    assert 'docs/install.md, "The image"' in usual
    assert "\n## The image\n" in (ROOT / "docs/install.md").read_text()
    named = _notes(tmp_path, "--set=image.repository=registry.example.com/tutti")
    assert "not published" not in named


@pytest.mark.parametrize("minor", sorted({"1.29", "1.34", "1.38", *pins.KNOWN_K8S}))
def test_no_kubernetes_is_refused_and_the_notes_warn_of_one_that_is_not_tested(
    tmp_path: Path, minor: str
) -> None:
    """What is rendered is the same: `helm template` alone takes a minor of Helm's own choice."""
    of_minor = f"--kube-version={minor}.1"
    assert render(of_minor) == render()
    warning = f"WARNING: this version of Tutti is not tested on Kubernetes v{minor}.1"
    assert (warning in _notes(tmp_path, of_minor)) == (minor not in pins.KNOWN_K8S)


REFUSED: Mapping[str, tuple[str, str]] = {
    "an unknown value": ("setings.strategy=ilp", "additional properties 'setings' not allowed"),
    "an unknown setting": ("settings.stratgy=ilp", "additional properties 'stratgy' not allowed"),
    "an unknown option": ("admission.enable=true", "additional properties 'enable' not allowed"),
    "words for a number": ("replicas=two", "at '/replicas': got string, want integer"),
    "too many at once": ("settings.bindingsInFlight=999", "want 256"),
    "a level that is none": ("settings.logLevel=loud", "must be one of 'debug', 'info'"),
    "a port that is none": ("settings.probePort=0", "at '/settings/probePort': minimum"),
    "a path that is relative": ("settings.dumpDirectory=dumps", "does not match pattern"),
    "a value that is missing": ("settings.schedulerName=null", "missing property 'schedulerName'"),
    "a namespace twice": ("settings.namespaces={ml,ml}", "items at 0 and 1 are equal"),
    "a namespace that is none": ("settings.namespaces={No}", "does not match pattern"),
    "two volumes in one": (
        "dumpVolume.hostPath.path=/,dumpVolume.emptyDir.medium=Memory",
        "at '/dumpVolume': maxProperties: got 2, want 1",
    ),
    "one name for two": ("settings.identity=me", "several replicas need names of their own"),
    "the name of kube-scheduler": (
        "settings.schedulerName=default-scheduler",
        "with settings.mode: active Tutti would bind them, too; set settings.mode: shadow",
    ),
    "the name of kube-scheduler in a pause": (
        "settings.schedulerName=default-scheduler,settings.mode=paused",
        "with settings.mode: paused Tutti would bind them, too",
    ),
    "a name too long for a label": (
        f"admission.enabled=true,settings.schedulerName={'s' * 64}",
        "has to be a label's value, which has at most 63 characters",
    ),
}


@pytest.mark.parametrize(("value", "sentence"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_value_is_refused_in_words(value: str, sentence: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(f"--set={value}")
    assert sentence in str(refused.value)


def test_a_shadow_may_have_the_name_of_kube_scheduler() -> None:
    parts = render("--set=settings.schedulerName=default-scheduler,settings.mode=shadow")
    (role,) = (part for part in parts if part["kind"] == "Role")
    assert role["rules"][1]["resourceNames"] == ["default-scheduler"]


def test_volcanos_source_also_grants_the_patch_of_its_groups_and_the_jobs() -> None:
    """In shadow mode it grants neither: Volcano's controller makes pods by the phase."""
    option = "--set=settings.gangSources={podgroups.scheduling.volcano.sh}"
    streams = {("scheduling.volcano.sh", "podgroups", verb) for verb in ("list", "watch")}
    writes = {("scheduling.volcano.sh", "podgroups", "patch"), ("batch.volcano.sh", "jobs", "get")}
    assert granted(render(option)) - granted(render()) == streams | writes
    shadow = "--set=settings.mode=shadow"
    assert granted(render(option, shadow)) - granted(render(shadow)) == streams


def test_task_groups_grant_the_creation_of_podgroups_and_nothing_else() -> None:
    """No object declares them; in shadow mode nothing is made."""
    off = "--set=spark.enabled=false"
    option = (
        "--set=settings.gangSources={podgroups.scheduling.k8s.io,yunikorn.apache.org/task-groups}"
    )
    assert granted(render(off, option)) - granted(render(off)) == {
        ("tutti.dev", "podgroups", "create")
    }
    shadow = "--set=settings.mode=shadow"
    assert granted(render(off, option, shadow)) == granted(render(off, shadow))


def test_gang_sources_grant_list_and_watch_of_the_crds_that_they_name() -> None:
    """The name of a CRD is its resource and its group."""
    none = granted(render("--set-json=settings.gangSources=[]"))
    option = "--set=settings.gangSources={jobs.batch.example.com,groups.example.com}"
    more = granted(render(option)) - none
    assert more == {
        ("batch.example.com", "jobs", "list"),
        ("batch.example.com", "jobs", "watch"),
        ("example.com", "groups", "list"),
        ("example.com", "groups", "watch"),
    }
    with pytest.raises(HelmError, match="gangSources"):
        render("--set=settings.gangSources={jobs}")


def test_kubernetes_own_groups_are_read_and_their_status_is_written_unless_turned_off() -> None:
    """One value takes the source and its rights back."""
    more = granted(render()) - granted(render("--set-json=settings.gangSources=[]"))
    assert more == {
        ("scheduling.k8s.io", "podgroups", "list"),
        ("scheduling.k8s.io", "podgroups", "watch"),
        ("scheduling.k8s.io", "podgroups/status", "patch"),
    }
    container = _pod("--set-json=settings.gangSources=[]")["containers"][0]
    told = {each["name"]: each.get("value", "") for each in container["env"]}
    assert told["TUTTI_GANG_SOURCES"] == ""
