"""Every kind of call that Tutti makes: what the ClusterRole must grant.

Separate from the client so that a test, and a reader, can hold the two side by side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ..model.keys import POD_GROUP, ApiKind
from . import wire

VERSIONS = {POD_GROUP.group: "v1alpha1"}  # of the API groups that are not at v1
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


def version_of(group: str) -> str:
    """The version that objects of an API group are read and written in."""
    return VERSIONS.get(group, "v1")


def api_version(group: str) -> str:
    """The same as objects carry it."""
    return f"{group}/{version_of(group)}" if group else version_of(group)


class Right(NamedTuple):
    """What a ClusterRole rule must grant for one call, and where that call goes."""

    group: str
    resource: str  # with its subresource: ``pods/binding``
    verb: str

    @property
    def method(self) -> str:
        """The HTTP method."""
        return METHODS[self.verb]

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path on the server; without a namespace, of the objects of all of them."""
        resource, _, subresource = self.resource.partition("/")
        root = f"/api{'s' if self.group else ''}/{api_version(self.group)}"
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
    CREATE_POD_GROUP = Right(POD_GROUP.group, "podgroups", "create")
    CREATE_RESERVATION = Right(POD_GROUP.group, "reservations", "create")
    PATCH_RESERVATION = Right(POD_GROUP.group, "reservations", "patch")
    DELETE_RESERVATION = Right(POD_GROUP.group, "reservations", "delete")
    GET_LEASE = Right("coordination.k8s.io", "leases", "get")
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

    @property
    def title(self) -> str:
        """The plural as people write it: PriorityClasses."""
        return self.api.kind + self.plural[len(self.api.kind) :]

    def right(self, verb: str, subresource: str = "") -> Right:
        """What a call about objects of this kind needs."""
        resource = f"{self.plural}/{subresource}" if subresource else self.plural
        return Right(self.api.group, resource, verb)

    def stream(self, selector: str = "", name: str = "") -> Stream:
        """The list-and-watch of the objects of this kind that a field selector meets."""
        return Stream(name or self.title, self.right("list"), self.right("watch"), selector)
