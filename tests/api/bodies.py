"""Bodies that the API server is sent: builders, and tables of what it accepts and refuses.

The words of a refusal are all that a user sees of a mistake, so they are spelt out here.
"""

from __future__ import annotations

import random
import string
import uuid
from typing import Any

from tutti.spark.legacy_contracts import cheapest

MEMBERS_LIMIT = 5000
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
UID_LENGTH = 36
LONGEST_NAME = 253  # of pods and of nodes
NAME_LETTERS = string.ascii_lowercase + string.digits


def group(spec: object, name: str = "train") -> dict[str, Any]:
    """A PodGroup."""
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def queue(spec: object, name: str = "vision") -> dict[str, Any]:
    """A Queue."""
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def topology(*labels: str, api: str = "tutti.dev/v1alpha1") -> dict[str, Any]:
    """A Topology of these levels."""
    return {
        "apiVersion": api,
        "kind": "Topology",
        "metadata": {"name": "network"},
        "spec": {"levels": [{"nodeLabel": label} for label in labels]},
    }


def crd_of(name: str, kind: str, version: str, scope: str = "Namespaced") -> dict[str, Any]:
    """A CRD that accepts any spec; the whole CRDs are those of `make conformance`."""
    plural, group = name.split(".", 1)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": name,
            # the API server asks for it below the groups of Kubernetes' projects
            "annotations": {"api-approved.kubernetes.io": "unapproved, of a test"},
        },
        "spec": {
            "group": group,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "scope": scope,
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def held(placement: object = (), *, name: str | None = None, **changed: object) -> dict[str, Any]:
    """A Reservation, named after its gang's uid unless told otherwise."""
    uid = str(uuid.uuid4())
    spec: dict[str, object] = {
        "schedulerName": "tutti",
        "podGroup": {"name": "train", "uid": uid, "generation": 1},
        "term": "tutti-0 2026-01-01T00:00:00Z",
        "reservedAt": "2026-01-01T00:00:00Z",
        "placement": placement,
    }
    return {
        "apiVersion": "tutti.dev/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name or uid},
        "spec": spec | changed,
    }


def entries(members: int, *, per_node: int, pod_name: int, node_name: int) -> list[object]:
    """A placement whose names have the given lengths."""
    return [
        {
            "node": f"n{first}-".ljust(node_name, "x"),
            "pods": [
                {"name": f"p{i}-".ljust(pod_name, "x"), "uid": f"{i}-".ljust(UID_LENGTH, "0")}
                for i in range(first, min(first + per_node, members))
            ],
        }
        for first in range(0, members, per_node)
    ]


def nameless(members: int, seed: int = 0) -> list[object]:
    """A node of the longest name for each pod, and no pod's name; what is random stays as long."""
    chance = random.Random(seed)
    return [
        {
            "node": "".join(chance.choices(NAME_LETTERS, k=LONGEST_NAME)),
            "uids": [str(uuid.UUID(int=chance.getrandbits(128)))],
        }
        for _ in range(members)
    ]


def roles(*sizes: tuple[str, int]) -> list[dict[str, object]]:
    """The roles of a PodGroup: each a name and its minMember."""
    return [{"name": name, "minMember": members} for name, members in sizes]


def templated(template: object) -> dict[str, object]:
    """A driver, and executors that do not exist yet."""
    absent = {"name": "executor", "minMember": 3, "template": template}
    return {"roles": [*roles(("driver", 1)), absent]}


QUANTITIES = "each of the template's resources is a quantity of at least 0, such as 500m, 2 or 4Gi"

SEGMENTS = {"size": 2, "level": "rack"}
REFUSED_GROUPS = {
    "a rack for a role that there is not": (
        {
            "roles": [{"name": "driver", "minMember": 1}],
            "topology": {"roleGroups": [{"roles": ["worker"], "required": "rack"}]},
        },
        "topology.roleGroups names a role that the gang does not have: add it to roles",
    ),
    "a rack for roles of a gang without roles": (
        {"minMember": 1, "topology": {"roleGroups": [{"roles": ["worker"], "required": "rack"}]}},
        "topology.roleGroups names a role that the gang does not have: add it to roles",
    ),
    "segments of the gang and of a role": (
        {
            "roles": [{"name": "worker", "minMember": 4, "topology": {"segments": SEGMENTS}}],
            "topology": {"segments": SEGMENTS},
        },
        "a member is in one kind of segments: set topology.segments of the gang, or segments of",
    ),
    "segments of the gang and of a group": (
        {
            "roles": [{"name": "worker", "minMember": 4}],
            "topology": {
                "segments": SEGMENTS,
                "roleGroups": [{"roles": ["worker"], "segments": SEGMENTS}],
            },
        },
        "a member is in one kind of segments: set topology.segments of the gang, or segments of",
    ),
    "segments of a role and of a group of it": (
        {
            "roles": [{"name": "worker", "minMember": 4, "topology": {"segments": SEGMENTS}}],
            "topology": {"roleGroups": [{"roles": ["worker"], "segments": SEGMENTS}]},
        },
        "a member is in one kind of segments: name a role in segments once",
    ),
    "two groups with segments of one role": (
        {
            "roles": [{"name": "worker", "minMember": 4}],
            "topology": {
                "roleGroups": [
                    {"roles": ["worker"], "segments": SEGMENTS},
                    {"roles": ["worker"], "segments": SEGMENTS | {"size": 3}},
                ]
            },
        },
        "a member is in one kind of segments: name a role in segments once",
    ),
    "segments without a size": (
        {"minMember": 4, "topology": {"segments": {"level": "rack"}}},
        "topology.segments.size: Required value",
    ),
    "a role in a domain of no level": (
        {"roles": [{"name": "driver", "minMember": 1, "topology": {}}]},
        "topology names no level: set required, preferred or segments",
    ),
    "roles in a domain of no level": (
        {
            "roles": [{"name": "driver", "minMember": 1}],
            "topology": {"roleGroups": [{"roles": ["driver"]}]},
        },
        "the group names no level: set required, preferred or segments",
    ),
    "a template of nothing": (templated({}), "template.resources: Required value"),
    "a template without an amount": (
        templated({"resources": {}}),
        "template.resources in body should have at least 1 properties",
    ),
    "a template with a word for an amount": (templated({"resources": {"cpu": "two"}}), QUANTITIES),
    "a template with less than nothing": (templated({"resources": {"cpu": "-1"}}), QUANTITIES),
    "a template with minus one": (templated({"resources": {"cpu": -1}}), QUANTITIES),
    "a template with a resource of no name": (
        templated({"resources": {"": "1"}}),
        "the name of a resource has 1 to 317 characters",
    ),
    "a template with a label of no name": (
        templated({"resources": {"cpu": 1}, "labels": {"": "x"}}),
        "the name of a label has 1 to 317 characters",
    ),
    "a template with a label that no pod can have": (
        templated({"resources": {"cpu": 1}, "labels": {"team": "a b"}}),
        "template.labels.team in body should match",
    ),
    "a template that is spread by nothing": (
        templated({"resources": {"cpu": 1}, "topologySpreadConstraints": [{"maxSkew": 1}]}),
        "topologyKey: Required value",
    ),
    "a template near nothing": (
        templated({"resources": {"cpu": 1}, "affinity": {"podAffinity": {REQUIRED: [{}]}}}),
        "topologyKey: Required value",
    ),
    "no time for absent members": (
        {"minMember": 2, "absentMemberTimeoutSeconds": 0},
        "spec.absentMemberTimeoutSeconds in body should be greater than or equal to 1",
    ),
    "no members": ({"minMember": 0}, "spec.minMember in body should be greater than or equal to 1"),
    "negative": ({"minMember": -1}, "spec.minMember in body should be greater than or equal to 1"),
    "too many": (
        {"minMember": 5001},
        "spec.minMember in body should be less than or equal to 5000",
    ),
    "text": ({"minMember": "8"}, 'spec.minMember in body must be of type integer: "string"'),
    "fraction": ({"minMember": 1.5}, 'spec.minMember in body must be of type integer: "number"'),
    "no size": ({}, "the gang has no size: set minMember, or roles that each set theirs"),
    "null size": ({"minMember": None}, "the gang has no size"),
    "no spec": (None, "spec: Required value"),
    "no roles in the list": ({"roles": []}, "spec.roles in body should have at least 1 items"),
    "roles are no list": ({"roles": 3}, 'spec.roles in body must be of type array: "integer"'),
    "too many roles": (
        {"roles": roles(*((f"r{i}", 1) for i in range(33)))},
        "spec.roles: Too many: 33: must have at most 32 items",
    ),
    "roles above minMember": (
        {"minMember": 8, "roles": roles(("driver", 1), ("worker", 8))},
        (
            "the roles need 9 members together, but minMember is 8: raise minMember, or lower the "
            "minMember of a role"
        ),
    ),
    "roles above the limit": (
        {"roles": roles(("driver", 1), ("worker", 5000))},
        "the roles need 5001 members together, but a gang has at most 5000",
    ),
    "twins": (
        {"roles": roles(("worker", 1), ("worker", 2))},
        "two roles have the same name: give each role a name of its own",
    ),
    "a role's name": (
        {"roles": roles(("Driver_1", 1))},
        (
            "a role's name is made of lower-case letters, digits and dashes, and begins and ends "
            "with a letter or a digit"
        ),
    ),
    "a long role's name": (
        {"roles": roles(("a" * 64, 1))},
        "spec.roles[0].name: Too long: may not be more than 63 bytes",
    ),
    "a role without a name": ({"roles": [{"minMember": 1}]}, "spec.roles[0].name: Required value"),
    "a role without a size": (
        {"roles": [{"name": "a"}]},
        "spec.roles[0].minMember: Required value",
    ),
    "another way out": (
        {"minMember": 2, "onPartial": "Restart"},
        'spec.onPartial: Unsupported value: "Restart": supported values: "Complete", "Release"',
    ),
    "a role that may have less than it needs": (
        {"roles": [{"name": "a", "minMember": 4, "maxMember": 3}]},
        (
            "role a has room for 3 members at most, but needs 4: raise its maxMember, or lower "
            "its minMember"
        ),
    ),
    "a role that may have nobody": (
        {"roles": [{"name": "a", "minMember": 1, "maxMember": 0}]},
        "spec.roles[0].maxMember in body should be greater than or equal to 1",
    ),
    "roles that may not fill minMember": (
        {"minMember": 9, "roles": [{"name": "a", "minMember": 4, "maxMember": 8}]},
        (
            "the roles have room for 8 members together, but minMember is 9: raise the maxMember "
            "of a role, or lower minMember"
        ),
    ),
    "no time at all": (
        {"minMember": 2, "scheduleTimeoutSeconds": 0},
        "spec.scheduleTimeoutSeconds in body should be greater than or equal to 1",
    ),
    "a timeout without a time": (
        {"minMember": 2, "onTimeout": "Fail"},
        "onTimeout says what happens after scheduleTimeoutSeconds: set that too",
    ),
    "another end of patience": (
        {"minMember": 2, "scheduleTimeoutSeconds": 9, "onTimeout": "Delete"},
        'spec.onTimeout: Unsupported value: "Delete": supported values: "KeepWaiting", "Fail"',
    ),
    "a class without a name": (
        {"minMember": 2, "priorityClassName": ""},
        "spec.priorityClassName in body should be at least 1 chars long",
    ),
    "an empty role": (
        {"roles": roles(("driver", 0))},
        "spec.roles[0].minMember in body should be greater than or equal to 1",
    ),
    "a huge role": (
        {"roles": roles(("driver", 5001))},
        "spec.roles[0].minMember in body should be less than or equal to 5000",
    ),
}


SPREAD = {
    "maxSkew": 1,
    "minDomains": 3,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
    "matchLabelKeys": ["example.com/team"],
    "nodeAffinityPolicy": "Ignore",
    "nodeTaintsPolicy": "Honor",
}
TERM = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}

ACCEPTED_GROUPS: dict[str, dict[str, object]] = {
    "segments by index in a block": {
        "minMember": 64,
        "topology": {"required": "block", "segments": SEGMENTS | {"indexLabel": "index"}},
    },
    "all three for the gang": {
        "minMember": 4,
        "topology": {"required": "zone", "preferred": "block", "segments": SEGMENTS},
    },
    "all three for a role and for roles together": {
        "roles": [
            {
                "name": "a",
                "minMember": 4,
                "topology": {"required": "zone", "preferred": "block", "segments": SEGMENTS},
            },
            {"name": "b", "minMember": 4},
        ],
        "topology": {
            "roleGroups": [
                {
                    "roles": ["b"],
                    "required": "zone",
                    "preferred": "block",
                    "segments": SEGMENTS,
                }
            ]
        },
    },
    "segments of two roles": {
        "roles": [
            {"name": "a", "minMember": 4, "topology": {"segments": SEGMENTS}},
            {"name": "b", "minMember": 4},
        ],
        "topology": {"roleGroups": [{"roles": ["b"], "segments": SEGMENTS}]},
    },
    "a queue": {"minMember": 1, "queue": "vision"},
    "a rack for all": {"minMember": 2, "topology": {"required": "example.com/rack"}},
    "preferably one rack in one block, and each role in a rack of its own": {
        "roles": [{"name": "worker", "minMember": 2, "topology": {"preferred": "rack"}}],
        "topology": {
            "required": "block",
            "preferred": "rack",
            "roleGroups": [{"roles": ["worker"], "preferred": "rack"}],
        },
    },
    "a rack for a role, and a block for two": {
        "roles": [
            {"name": "driver", "minMember": 1},
            {"name": "worker", "minMember": 2, "topology": {"required": "example.com/rack"}},
        ],
        "topology": {
            "roleGroups": [{"roles": ["driver", "worker"], "required": "example.com/block"}]
        },
    },
    "absent members": templated({"resources": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": 1}}),
    "absent members that are thrifty": templated(
        {"resources": {"cpu": "2"}, "affinity": cheapest()}
    ),
    "absent members that are choosy": {
        **templated(
            {
                "resources": {"cpu": "500m"},
                "nodeSelector": {"pool": "spark"},
                "tolerations": [{"key": "spark", "operator": "Exists", "effect": "NoSchedule"}],
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                            ]
                        }
                    },
                    "podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]},
                    "podAntiAffinity": {REQUIRED: [TERM]},
                },
                "topologySpreadConstraints": [SPREAD],
                "labels": {"app": "a", "example.com/team": "", "spark-exec-id": "0"},
            }
        ),
        "absentMemberTimeoutSeconds": 5,
    },
    "one member": {"minMember": 1},
    "the most members": {"minMember": 5000},
    "a gang with a time": {"minMember": 8, "scheduleTimeoutSeconds": 600, "onTimeout": "Fail"},
    "a gang of a class": {"minMember": 8, "priorityClassName": "high"},
    "a gang to be released": {"minMember": 8, "onPartial": "Release"},
    "roles alone": {"roles": roles(("driver", 1), ("executor", 8))},
    "roles that fill minMember": {"minMember": 9, "roles": roles(("a", 1), ("b", 8))},
    "members of no role besides": {"minMember": 12, "roles": roles(("a", 1), ("b", 8))},
    "an elastic role": {"roles": [{"name": "a", "minMember": 8, "maxMember": 16}]},
    "a role as large as it may be": {"roles": [{"name": "a", "minMember": 8, "maxMember": 8}]},
    "one role that may grow": {
        "minMember": 12,
        "roles": [*roles(("a", 1)), {"name": "b", "minMember": 1, "maxMember": 2}],
    },
    "the most roles": {"roles": roles(*((f"r{i}", 1) for i in range(32)))},
}


ROOM: list[object] = [{"node": "node-a", "pods": [{"name": "train-0", "uid": "u-0"}]}]
REFUSED_QUEUES: dict[str, tuple[dict[str, Any], str]] = {
    "its own parent": ({"parent": "vision"}, "the queue is its own parent: name another queue"),
    "a default for those who may not use it": (
        {"defaultFor": {}},
        "defaultFor chooses among the namespaces that may use the queue: set namespaces too",
    ),
    "a negative quota": (
        {"resources": [{"name": "cpu", "limit": "-1"}]},
        "a quota is a quantity of at least 0, such as 500m, 2 or 4Gi",
    ),
    "a negative number": (
        {"resources": [{"name": "cpu", "guaranteed": -1}]},
        "a quota is a quantity of at least 0, such as 500m, 2 or 4Gi",
    ),
    "a quota of words": (
        {"resources": [{"name": "cpu", "limit": "many"}]},
        "a quota is a quantity of at least 0, such as 500m, 2 or 4Gi",
    ),
    "a resource twice": ({"resources": [{"name": "cpu"}, {"name": "cpu"}]}, "Duplicate value"),
    "a port": ({"resources": [{"name": "port:80/TCP"}]}, "the name of a resource has no colon"),
    "no weight": ({"weight": 0}, "should be greater than or equal to 1"),
    "a stop that does not exist": ({"stop": "Freeze"}, 'supported values: "None", "Hold", "Drain"'),
    "a mode that does not exist": ({"mode": "Dry"}, 'supported values: "Active", "Shadow"'),
    "an operator that does not exist": (
        {"namespaces": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}},
        'supported values: "In", "NotIn", "Exists", "DoesNotExist"',
    ),
    "an operator without values": (
        {"namespaces": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "In and NotIn need values; Exists and DoesNotExist have none",
    ),
}
ACCEPTED_QUEUES: dict[str, dict[str, object]] = {
    "nothing": {},
    "everything": {
        "parent": "ml",
        "resources": [
            {"name": "nvidia.com/gpu", "guaranteed": 16, "limit": "48"},
            {"name": "memory", "limit": "1.5Ti"},
        ],
        "weight": 2,
        "namespaces": {"matchLabels": {"team": "vision"}},
        "defaultFor": {"matchExpressions": [{"key": "kind", "operator": "Exists"}]},
        "stop": "None",
        "mode": "Shadow",
    },
}

REFUSED_RESERVATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "an entry of nothing": (
        held([{"node": "node-a"}]),
        "an entry of a placement holds room for pods, for slots, or for both",
    ),
    "an entry without pods": (
        held([{"node": "node-a", "pods": []}]),
        "spec.placement[0].pods in body should have at least 1 items",
    ),
    "an entry without a node": (
        held([{"slots": {"executor": 3}}]),
        "spec.placement[0].node: Required value",
    ),
    "a pod without a uid": (
        held([{"node": "node-a", "pods": [{"name": "train-0"}]}]),
        "spec.placement[0].pods[0].uid: Required value",
    ),
    "no uids in the list": (
        held([{"node": "node-a", "uids": []}]),
        "spec.placement[0].uids in body should have at least 1 items",
    ),
    "nobody's": (
        held(ROOM, schedulerName=""),
        "spec.schedulerName in body should be at least 1 chars long",
    ),
    "slots for nobody": (
        held([{"node": "node-a", "slots": {"executor": 0}}]),
        "spec.placement[0].slots.executor in body should be greater than or equal to 1",
    ),
    "another name": (
        held(ROOM, name="train"),
        "a Reservation is named after the uid of its gang, so that a gang never has two",
    ),
    "no term": (held(ROOM, term=""), "spec.term in body should be at least 1 chars long"),
    "no such time": (
        held(ROOM, reservedAt="yesterday"),
        'spec.reservedAt in body must be of type date-time: "yesterday"',
    ),
    "too many nodes": (
        held(entries(MEMBERS_LIMIT + 1, per_node=1, pod_name=20, node_name=20)),
        "spec.placement: Too many: 5001: must have at most 5000 items",
    ),
    "too many pods": (
        held(entries(MEMBERS_LIMIT + 1, per_node=2, pod_name=20, node_name=20)),
        "the placement names too many pods: a Reservation holds at most 5000",
    ),
    "too many pods, some without a name": (
        held([{"node": "a", "uids": [f"u-{i}" for i in range(MEMBERS_LIMIT)]}, *ROOM]),
        "the placement names too many pods: a Reservation holds at most 5000",
    ),
    "more bytes than etcd takes": (
        # 1,578,175 bytes of the 1,572,864 that etcd takes.
        held(entries(MEMBERS_LIMIT, per_node=50, pod_name=253, node_name=253)),
        "request is too large",
    ),
    "more bytes than are even sent to etcd": (
        # One pod to each node and the longest names Kubernetes has: 2.8 MB.
        held(entries(MEMBERS_LIMIT, per_node=1, pod_name=253, node_name=253)),
        "trying to send message larger than max",
    ),
}
