"""Every kind of call that Tutti makes: what the ClusterRole must grant.

Separate from the client so that a test, and a reader, can hold the two side by side.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ..model.keys import POD_GROUP, ApiKind
from . import errors, wire

CORE_VERSION, TUTTI_VERSION = "v1", "v1alpha1"
# What is a segment of a path and no more; the names of Kubernetes' objects are of fewer characters.
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
    """The version of an API as objects carry it."""
    return f"{group}/{version}" if group else version


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What a ClusterRole rule must grant for one call, and where that call goes."""

    group: str
    resource: str  # with its subresource: ``pods/binding``
    verb: str
    version: str = field(default=CORE_VERSION, compare=False)  # of the API; rules name none

    @property
    def method(self) -> str:
        """The HTTP method."""
        return METHODS[self.verb]

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path on the server; without a namespace, of the objects of all of them.

        Raises:
            errors.Gone: no object can have such a name, which may be what a user wrote into a
                reference: it would be a path to something else.
        """
        for segment in (namespace, name):
            if segment and not NAME.fullmatch(segment):
                raise errors.Gone(f"no object has the name {segment[:MOST_QUOTED]!r}")
        resource, _, subresource = self.resource.partition("/")
        root = f"/api{'s' if self.group else ''}/{api_version(self.group, self.version)}"
        space = f"namespaces/{namespace}" if namespace else ""
        return "/".join(part for part in (root, space, resource, name, subresource) if part)


class Call:
    """Every kind of call that Tutti makes but lists and watches, which each ``Kind`` has."""

    GET_POD = Right("", "pods", "get")
    BIND = Right("", "pods/binding", "create")
    PATCH_POD_STATUS = Right("", "pods/status", "patch")
    EVICT = Right("", "pods/eviction", "create")
    CREATE_EVENT = Right("", "events", "create")
    GET_JOB = Right("batch", "jobs", "get")
    GET_CONFIG_MAP = Right("", "configmaps", "get")
    CREATE_POD_GROUP = Right(POD_GROUP.group, "podgroups", "create", TUTTI_VERSION)
    CREATE_RESERVATION = Right(POD_GROUP.group, "reservations", "create", TUTTI_VERSION)
    PATCH_RESERVATION = Right(POD_GROUP.group, "reservations", "patch", TUTTI_VERSION)
    DELETE_RESERVATION = Right(POD_GROUP.group, "reservations", "delete", TUTTI_VERSION)
    PATCH_QUEUE = Right(POD_GROUP.group, "queues", "patch", TUTTI_VERSION)
    PATCH_QUEUE_STATUS = Right(POD_GROUP.group, "queues/status", "patch", TUTTI_VERSION)
    GET_LEASE = Right("coordination.k8s.io", "leases", "get")
    LIST_LEASES = Right("coordination.k8s.io", "leases", "list")
    CREATE_LEASE = Right("coordination.k8s.io", "leases", "create")
    UPDATE_LEASE = Right("coordination.k8s.io", "leases", "update")


class Stream(NamedTuple):
    """One list-and-watch: where it is, and which objects of it are wanted."""

    name: str
    lists: Right
    watches: Right
    selector: str = ""

    @property
    def path(self) -> str:
        """The same for both calls."""
        return self.lists.path()


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[W, V]):
    """A kind of API objects that Tutti lists and watches: where they are, and how they are read.

    Streams, stores, the check of the ClusterRole and the reading of files follow from it.
    """

    api: ApiKind
    plural: str  # in paths and in roles
    model: type[W]  # the fields that are read
    decode: Callable[[W], V]  # to None where an object is of no interest
    is_namespaced: bool = True
    version: str = CORE_VERSION  # of the API in which its objects are read and written
    # Its CRD may be missing, as after an upgrade by Helm, which adds none: then there are none.
    is_optional: bool = False

    @property
    def crd(self) -> str:
        """The name of the CustomResourceDefinition of a kind that has one."""
        return f"{self.plural}.{self.api.group}"

    @property
    def title(self) -> str:
        """The plural as people write it: PriorityClasses."""
        return self.api.kind + self.plural[len(self.api.kind) :]

    def right(self, verb: str, subresource: str = "") -> Right:
        """What a call about objects of this kind needs."""
        resource = f"{self.plural}/{subresource}" if subresource else self.plural
        return Right(self.api.group, resource, verb, self.version)

    def stream(self, selector: str = "", name: str = "") -> Stream:
        """The list-and-watch of the objects of this kind that a field selector meets."""
        return Stream(name or self.title, self.right("list"), self.right("watch"), selector)
