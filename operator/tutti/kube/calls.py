"""Every kind of call that Tutti makes, and every list-and-watch: what the ClusterRole must grant.

Separate from the client so that a test, and a reader, can hold the two side by side.
"""

from enum import Enum
from typing import NamedTuple

VERSIONS = {"tutti.dev": "v1alpha1"}  # of the APIs that are not at v1
DEFAULT_SCHEDULER = "default-scheduler"  # Kubernetes' own: most pods of most clusters name it
METHODS = {
    "list": "GET",
    "watch": "GET",
    "get": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}


def api_version(group: str) -> str:
    """The ``apiVersion`` that objects of an API group are read and written in."""
    version = VERSIONS.get(group, "v1")
    return f"{group}/{version}" if group else version


def root(group: str) -> str:
    """The path below which an API group is served."""
    return f"/apis/{api_version(group)}" if group else f"/api/{api_version(group)}"


class Right(NamedTuple):
    """What a ClusterRole rule must grant for one call."""

    group: str
    resource: str
    verb: str


class Call(Enum):
    """Every kind of call that Tutti makes: each request is made from its entry here.

    kopf lists and watches PodGroups and waiting pods by the same paths.
    """

    LIST_NODES = Right("", "nodes", "list")
    WATCH_NODES = Right("", "nodes", "watch")
    LIST_NAMESPACES = Right("", "namespaces", "list")
    WATCH_NAMESPACES = Right("", "namespaces", "watch")
    LIST_PODS = Right("", "pods", "list")
    WATCH_PODS = Right("", "pods", "watch")
    GET_POD = Right("", "pods", "get")
    BIND = Right("", "pods/binding", "create")
    PATCH_POD_STATUS = Right("", "pods/status", "patch")
    EVICT = Right("", "pods/eviction", "create")
    CREATE_EVENT = Right("", "events", "create")
    GET_JOB = Right("batch", "jobs", "get")
    GET_CONFIG_MAP = Right("", "configmaps", "get")
    LIST_PRIORITY_CLASSES = Right("scheduling.k8s.io", "priorityclasses", "list")
    WATCH_PRIORITY_CLASSES = Right("scheduling.k8s.io", "priorityclasses", "watch")
    LIST_CLAIMS = Right("", "persistentvolumeclaims", "list")
    WATCH_CLAIMS = Right("", "persistentvolumeclaims", "watch")
    LIST_VOLUMES = Right("", "persistentvolumes", "list")
    WATCH_VOLUMES = Right("", "persistentvolumes", "watch")
    LIST_STORAGE_CLASSES = Right("storage.k8s.io", "storageclasses", "list")
    WATCH_STORAGE_CLASSES = Right("storage.k8s.io", "storageclasses", "watch")
    LIST_CSI_NODES = Right("storage.k8s.io", "csinodes", "list")
    WATCH_CSI_NODES = Right("storage.k8s.io", "csinodes", "watch")
    LIST_CSI_DRIVERS = Right("storage.k8s.io", "csidrivers", "list")
    WATCH_CSI_DRIVERS = Right("storage.k8s.io", "csidrivers", "watch")
    LIST_ATTACHMENTS = Right("storage.k8s.io", "volumeattachments", "list")
    WATCH_ATTACHMENTS = Right("storage.k8s.io", "volumeattachments", "watch")
    LIST_POD_GROUPS = Right("tutti.dev", "podgroups", "list")
    WATCH_POD_GROUPS = Right("tutti.dev", "podgroups", "watch")
    CREATE_POD_GROUP = Right("tutti.dev", "podgroups", "create")
    PATCH_POD_GROUP_STATUS = Right("tutti.dev", "podgroups/status", "patch")
    LIST_RESERVATIONS = Right("tutti.dev", "reservations", "list")
    WATCH_RESERVATIONS = Right("tutti.dev", "reservations", "watch")
    CREATE_RESERVATION = Right("tutti.dev", "reservations", "create")
    PATCH_RESERVATION = Right("tutti.dev", "reservations", "patch")
    DELETE_RESERVATION = Right("tutti.dev", "reservations", "delete")
    GET_LEASE = Right("coordination.k8s.io", "leases", "get")
    CREATE_LEASE = Right("coordination.k8s.io", "leases", "create")
    UPDATE_LEASE = Right("coordination.k8s.io", "leases", "update")

    @property
    def method(self) -> str:
        """The HTTP method."""
        return METHODS[self.value.verb]

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path on the server; without a namespace, of the objects of all of them."""
        resource, _, subresource = self.value.resource.partition("/")
        space = f"namespaces/{namespace}" if namespace else ""
        parts = (root(self.value.group), space, resource, name, subresource)
        return "/".join(part for part in parts if part)


# Made only where Spark's gangs are declared: whoever does not want that need not grant them.
FOR_SPARK = frozenset({Call.GET_CONFIG_MAP, Call.CREATE_POD_GROUP})


class Stream(NamedTuple):
    """One list-and-watch: where it is, and which objects of it are wanted."""

    name: str
    lists: Call
    watches: Call
    selector: str = ""

    @property
    def path(self) -> str:
        """The same for both calls."""
        return self.lists.path()


NODES = Stream("nodes", Call.LIST_NODES, Call.WATCH_NODES)
BOUND = Stream("bound pods", Call.LIST_PODS, Call.WATCH_PODS, "spec.nodeName!=")
GROUPS = Stream("PodGroups", Call.LIST_POD_GROUPS, Call.WATCH_POD_GROUPS)
CLASSES = Stream("PriorityClasses", Call.LIST_PRIORITY_CLASSES, Call.WATCH_PRIORITY_CLASSES)
NAMESPACES = Stream("namespaces", Call.LIST_NAMESPACES, Call.WATCH_NAMESPACES)
CLAIMS = Stream("PersistentVolumeClaims", Call.LIST_CLAIMS, Call.WATCH_CLAIMS)
VOLUMES = Stream("PersistentVolumes", Call.LIST_VOLUMES, Call.WATCH_VOLUMES)
STORAGE_CLASSES = Stream("StorageClasses", Call.LIST_STORAGE_CLASSES, Call.WATCH_STORAGE_CLASSES)
CSI_NODES = Stream("CSINodes", Call.LIST_CSI_NODES, Call.WATCH_CSI_NODES)
CSI_DRIVERS = Stream("CSIDrivers", Call.LIST_CSI_DRIVERS, Call.WATCH_CSI_DRIVERS)
ATTACHMENTS = Stream("VolumeAttachments", Call.LIST_ATTACHMENTS, Call.WATCH_ATTACHMENTS)
RESERVATIONS = Stream("Reservations", Call.LIST_RESERVATIONS, Call.WATCH_RESERVATIONS)


def pending(*scheduler_names: str) -> Stream:
    """The pods that wait for one of these schedulers; of several, also those that wait for others.

    A field selector knows no "or": whoever asks for several names has to leave out what is not
    theirs, and is at least spared the pods of the default scheduler.
    """
    ours = "spec.nodeName="
    if len(scheduler_names) == 1:
        ours += f",spec.schedulerName={scheduler_names[0]}"
    elif DEFAULT_SCHEDULER not in scheduler_names:
        ours += f",spec.schedulerName!={DEFAULT_SCHEDULER}"
    return Stream("pending pods", Call.LIST_PODS, Call.WATCH_PODS, ours)


def others_pending(scheduler_name: str) -> Stream:
    """The unbound pods of other schedulers, of which those pinned to a node use its room."""
    others = f"spec.nodeName=,spec.schedulerName!={scheduler_name}"
    return Stream("pinned pods", Call.LIST_PODS, Call.WATCH_PODS, others)
