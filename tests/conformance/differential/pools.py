"""The few values that everything is drawn from, so that rules meet, and what outlives a cluster.

Namespaces, classes and volumes are made once and serve all clusters: the API server would take
longer to forget them than to ask a hundred questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ZONE, RACK, TIER = "topology.kubernetes.io/zone", "rack", "tier"
HOST = "kubernetes.io/hostname"
GHOST = "no-node-has-this"
ZONES, RACKS = ("z1", "z2", "z3"), ("r1", "r2")
TIERS = ("1", "5", "10", "007", "9e1", "high", "")

ADMIN = {"resource.kubernetes.io/admin-access": "true"}  # claims for admin access may be there
NAMESPACES = {"red": {"team": "red", **ADMIN}, "blue": {"team": "blue"}, "plain": {}}
SENTINELS = "sentinels"  # the namespace of what is asked only to know that all was heard

DRIVERS = ("one.csi", "two.csi", "needed.csi")
NEEDED = DRIVERS[2]  # nodes without it are left out
CLAIMS = 12  # bound ones, in every namespace
PHANTOMS = ("no-such-claim", "lost", "unbound-now", "unbound-later", "leaving", "half-bound")
ANYWHERE = 15  # the number of a volume of a directory that every node reaches
CAPPED = "capped.csi"  # its driver publishes capacities
OPEN = (  # claims that wait for their pod, by name: class, size and access mode
    ("small", "local", "1Gi", "ReadWriteOnce"),
    ("middle", "local", "5Gi", "ReadWriteOnce"),
    ("large", "local", "15Gi", "ReadWriteOnce"),
    ("many", "local", "1Gi", "ReadWriteMany"),
    ("block", "local", "1Gi", "ReadWriteOnce"),
    ("gold", "local", "1Gi", "ReadWriteOnce"),
    ("zoned", "zoned", "1Gi", "ReadWriteOnce"),
    ("low", "capped", "4Gi", "ReadWriteOnce"),
    ("high", "capped", "12Gi", "ReadWriteOnce"),
    ("selected", "later", "1Gi", "ReadWriteOnce"),
    ("selected-zoned", "zoned", "1Gi", "ReadWriteOnce"),
    ("anywhere", "later", "1Gi", "ReadWriteOnce"),
)
# Available volumes of one node: host, class, size, labels, access modes.
LOCAL: tuple[tuple[str, str, str, dict[str, str], tuple[str, ...]], ...] = (
    ("n0", "local", "2Gi", {}, ("ReadWriteOnce",)),
    ("n0", "local", "6Gi", {TIER: "gold"}, ("ReadWriteOnce",)),
    ("n1", "local", "6Gi", {}, ("ReadWriteOnce",)),
    ("n2", "local", "20Gi", {}, ("ReadWriteOnce",)),
    ("n3", "local", "9Gi", {}, ("ReadWriteMany",)),
    ("n4", "zoned", "1Gi", {}, ("ReadWriteOnce",)),
    ("n0", "capped", "20Gi", {}, ("ReadWriteOnce",)),
)
OVERHEAD, SPECIAL = "heavy", "special"  # runtime classes

HUGE, DEVICE = "hugepages-2Mi", "example.com/device"


def runtime_classes() -> Iterator[dict[str, Any]]:
    """One with an overhead, and one that also says where its pods may run."""
    base = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "runc"}
    overhead = {"podFixed": {"cpu": "250m", "memory": "1Gi"}}
    yield {**base, "metadata": {"name": OVERHEAD}, "overhead": overhead}
    scheduling = {
        "nodeSelector": {RACK: "r1"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    }
    yield {
        **base,
        "metadata": {"name": SPECIAL},
        "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": scheduling,
    }


def storage_classes() -> Iterator[dict[str, Any]]:
    """One that binds at once and one that waits for a pod."""
    for name, mode in (("now", "Immediate"), ("later", "WaitForFirstConsumer")):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": DRIVERS[0],
            "volumeBindingMode": mode,
        }


def classes_of_open_claims() -> Iterator[dict[str, Any]]:
    """One of local volumes, one for some zones, and one whose driver publishes capacities."""
    zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
    for name, provisioner, more in (
        ("local", "kubernetes.io/no-provisioner", {}),
        ("zoned", DRIVERS[0], {"allowedTopologies": zones}),
        ("capped", CAPPED, {}),
    ):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
            **more,
        }
    yield {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": CAPPED},
        "spec": {"storageCapacity": True},
    }
    for name, labels, limits in (
        ("zone-1", {ZONE: "z1"}, {"capacity": "5Gi"}),
        ("zone-2", {ZONE: "z2"}, {"capacity": "20Gi", "maximumVolumeSize": "10Gi"}),
        ("rack-1", {RACK: "r1"}, {"capacity": "15Gi"}),
    ):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": name, "namespace": SENTINELS},
            "storageClassName": "capped",
            "nodeTopology": {"matchLabels": labels},
            **limits,
        }


def open_claims(namespace: str) -> Iterator[dict[str, Any]]:
    """Claims that wait for their pod; some are being provisioned for a node."""
    for name, storage_class, size, mode in OPEN:
        made = _claim(namespace, name, bound=False, modes=(mode,), storageClassName=storage_class)
        made["spec"]["resources"] = {"requests": {"storage": size}}
        if name.startswith("selected"):
            made["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n1"
        if name == "block":
            made["spec"]["volumeMode"] = "Block"
        if name == "gold":
            made["spec"]["selector"] = {"matchLabels": {TIER: "gold"}}
        yield made


def local_volumes() -> Iterator[dict[str, Any]]:
    """Volumes that no claim has; the API server calls them Pending until their status is set."""
    for i, (host, storage_class, size, labels, modes) in enumerate(LOCAL):
        where = {"key": HOST, "operator": "In", "values": [host]}
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"local-{i}", "labels": labels},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": list(modes),
                "storageClassName": storage_class,
                "local": {"path": f"/mnt/{i}"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}
                },
            },
        }


def csi_driver() -> dict[str, Any]:
    """The one that keeps pods off nodes where it is not."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": NEEDED},
        "spec": {"preventPodSchedulingIfMissing": True},
    }


def claims(namespace: str) -> Iterator[dict[str, Any]]:
    """The claims of a namespace that are bound."""
    for i in range(CLAIMS):
        yield _claim(namespace, f"claim-{i}", volumeName=f"{namespace}-{i}", modes=_modes(i))


def sentinel_claim(name: str) -> dict[str, Any]:
    """A claim that is bound to the volume of its name."""
    return _claim(SENTINELS, name, volumeName=name)


def phantoms(namespace: str) -> Iterator[dict[str, Any]]:
    """Claims with which something is wrong, or open."""
    yield _claim(namespace, "lost", volumeName="no-such-volume")
    yield _claim(namespace, "unbound-now", bound=False, storageClassName="now")
    yield _claim(namespace, "unbound-later", bound=False, storageClassName="later")
    yield _claim(namespace, "leaving", volumeName=f"{namespace}-0")
    yield _claim(namespace, "half-bound", bound=False, volumeName=f"{namespace}-1")


def driver(i: int) -> str:
    """Whose the volume of a bound claim is, unless it is a directory of a node."""
    return NEEDED if i in (0, 9) else DRIVERS[i % 3 == 2]


def volume(claim: dict[str, Any], i: int) -> dict[str, Any]:
    """The volume of a bound claim: where it can be reached, and by which driver."""
    metadata = claim["metadata"]
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": claim["spec"]["accessModes"],
        "storageClassName": "",
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        },
    }
    if i % 4 == 3:
        spec["hostPath"] = {"path": "/somewhere"}
    else:
        # Two volumes of one handle are one volume to a driver.
        handle = "shared" if i in (4, 5) else claim["spec"]["volumeName"]
        spec["csi"] = {"driver": driver(i), "volumeHandle": handle}
    if (where := _reach(i)) is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": where}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": claim["spec"]["volumeName"], "labels": _zones(i)},
        "spec": spec,
    }


def _claim(
    namespace: str,
    name: str,
    *,
    bound: bool = True,
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    **spec: Any,
) -> dict[str, Any]:
    marks = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "annotations": marks},
        "spec": {
            "accessModes": list(modes),
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
            **spec,
        },
    }


def _modes(i: int) -> tuple[str, ...]:
    return ("ReadWriteOncePod",) if i in (6, 7, 8) else ("ReadWriteOnce",)


def _reach(i: int) -> list[dict[str, Any]] | None:
    def within(key: str, operator: str, *values: str) -> dict[str, Any]:
        wanted: dict[str, Any] = {"key": key, "operator": operator}
        return {"matchExpressions": [wanted | ({"values": list(values)} if values else {})]}

    return {
        1: [within(ZONE, "In", "z1")],
        3: [within(HOST, "In", "n0", "n1")],
        7: [within(ZONE, "NotIn", "z1")],
        9: [within(RACK, "Exists"), within(ZONE, "In", "z3")],
        10: [within(GHOST, "Exists")],
    }.get(i)


def _zones(i: int) -> dict[str, str]:
    beta = "failure-domain.beta.kubernetes.io/zone"
    labels = {2: {ZONE: "z2"}, 8: {ZONE: "z1__z3"}, 11: {beta: "z1"}}
    return labels.get(i, {})
