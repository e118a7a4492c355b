"""Every kind of call that Tutti makes, and the right that the ClusterRole must grant for it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ..model.keys import POD_GROUP, ApiKind
from . import errors, wire

CORE_VERSION, TUTTI_VERSION = "v1", "v1alpha1"
RESOURCE = "resource.k8s.io"  # the API group of devices and claims for them
# Names that are one segment of a path; names of Kubernetes objects have no other characters.
NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._:-]+")
MOST_QUOTED = 253  # characters of a name
METHODS = {
    "list": "GET",
    "watch": "GET",
    "get": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
}

W = TypeVar("W", bound=wire.Object)
V = TypeVar("V")


def api_version(group: str, version: str) -> str:
    """The ``apiVersion`` of objects of this group and version."""
    return f"{group}/{version}" if group else version


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """The right that a ClusterRole must grant for one call, and the path of that call."""

    group: str
    resource: str  # with its subresource: ``pods/binding``
    verb: str
    version: str = field(default=CORE_VERSION, compare=False)  # of the API; roles do not name it

    @property
    def method(self) -> str:
        """The HTTP method."""
        return METHODS[self.verb]

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path on the server; without a namespace, the path of objects of all namespaces.

        Raises:
            errors.Gone: no object can have such a name. Users may write such a name into a
                reference, and the path would lead to something else.
        """
        for segment in (namespace, name):
            if segment and not NAME.fullmatch(segment):
                raise errors.Gone(f"no object has the name {segment[:MOST_QUOTED]!r}")
        resource, _, subresource = self.resource.partition("/")
        root = f"/api{'s' if self.group else ''}/{api_version(self.group, self.version)}"
        space = f"namespaces/{namespace}" if namespace else ""
        return "/".join(part for part in (root, space, resource, name, subresource) if part)


class Call:
    """Every kind of call that Tutti makes, except the lists and watches of each ``Kind``."""

    GET_POD = Right("", "pods", "get")
    BIND = Right("", "pods/binding", "create")
    PATCH_POD_STATUS = Right("", "pods/status", "patch")
    EVICT = Right("", "pods/eviction", "create")
    GET_VOLUME_CLAIM = Right("", "persistentvolumeclaims", "get")
    PATCH_VOLUME_CLAIM = Right("", "persistentvolumeclaims", "patch")
    GET_VOLUME = Right("", "persistentvolumes", "get")
    PATCH_VOLUME = Right("", "persistentvolumes", "patch")
    CREATE_EVENT = Right("", "events", "create")
    GET_JOB = Right("batch", "jobs", "get")
    GET_CONFIG_MAP = Right("", "configmaps", "get")
    CREATE_POD_GROUP = Right(POD_GROUP.group, "podgroups", "create", TUTTI_VERSION)
    CREATE_RESERVATION = Right(POD_GROUP.group, "reservations", "create", TUTTI_VERSION)
    PATCH_RESERVATION = Right(POD_GROUP.group, "reservations", "patch", TUTTI_VERSION)
    DELETE_RESERVATION = Right(POD_GROUP.group, "reservations", "delete", TUTTI_VERSION)
    PATCH_QUEUE = Right(POD_GROUP.group, "queues", "patch", TUTTI_VERSION)
    PATCH_QUEUE_STATUS = Right(POD_GROUP.group, "queues/status", "patch", TUTTI_VERSION)
    CREATE_CLAIM = Right(RESOURCE, "resourceclaims", "create")
    PATCH_CLAIM = Right(RESOURCE, "resourceclaims", "patch")
    PATCH_CLAIM_STATUS = Right(RESOURCE, "resourceclaims/status", "patch")
    # No call: the API server requires it of who changes the allocation or the consumers of a claim.
    BIND_CLAIM = Right(RESOURCE, "resourceclaims/binding", "patch")
    GET_LEASE = Right("coordination.k8s.io", "leases", "get")
    LIST_LEASES = Right("coordination.k8s.io", "leases", "list")
    CREATE_LEASE = Right("coordination.k8s.io", "leases", "create")
    UPDATE_LEASE = Right("coordination.k8s.io", "leases", "update")


# The chart grants it only if Tutti hands pods over to kube-scheduler.
HAND_OVER = Right("", "pods", "patch")


class Stream(NamedTuple):
    """One list-and-watch: its rights, and the field selector of the wanted objects."""

    name: str
    lists: Right
    watches: Right
    selector: str = ""

    @property
    def path(self) -> str:
        """The path of both calls."""
        return self.lists.path()


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[W, V]):
    """A kind of API objects that Tutti lists and watches: their path, and how they are decoded.

    Streams, stores, the check of the ClusterRole and the reading of files use it.
    """

    api: ApiKind
    plural: str  # in paths and in roles
    model: type[W]  # the fields that are read
    decode: Callable[[W], V]  # returns None for an object that Tutti ignores
    is_namespaced: bool = True
    version: str = CORE_VERSION  # the API version in which its objects are read and written
    # Whether its CRD may be missing, as after an upgrade by Helm, which adds no CRDs. Then there
    # are no objects.
    is_optional: bool = False

    @property
    def crd(self) -> str:
        """The name of the CustomResourceDefinition of a kind that has one."""
        return f"{self.plural}.{self.api.group}"

    @property
    def title(self) -> str:
        """The plural in words for users: PriorityClasses, Topologies."""
        stem = self.api.kind.removesuffix("y")
        return stem + self.plural[len(stem) :]

    def right(self, verb: str, subresource: str = "") -> Right:
        """The right that a call about objects of this kind needs."""
        resource = f"{self.plural}/{subresource}" if subresource else self.plural
        return Right(self.api.group, resource, verb, self.version)

    def stream(self, selector: str = "", name: str = "") -> Stream:
        """The list-and-watch of the objects of this kind that match a field selector."""
        return Stream(name or self.title, self.right("list"), self.right("watch"), selector)
