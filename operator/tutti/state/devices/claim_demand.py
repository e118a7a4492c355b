"""What the claims of a pod add to its shape and labels.

Of the waiting pods that share a claim, the first requests its devices and gets a label. The others
must be on the node of the pod with that label.
"""

from collections.abc import Collection
from dataclasses import replace

from ...kube.codec.devices import NODE_NAME
from ...kube.codec.shapes import node_term_order
from ...model.devices.claims import ClaimName, sharing
from ...model.inter_pod import HOSTNAME, AffinityTerm, Labels, PodSelector, Requirement
from ...model.keys import NodeName
from ...model.resources import Resources
from ...model.shapes import NodeTerm, Shape


def requesting(shape: Shape, counts: Resources) -> Shape:
    """The shape with these counts of devices."""
    return replace(shape, requests=shape.requests + counts) if counts.amounts else shape


def shared(labels: Labels, claim: ClaimName) -> Labels:
    """The labels of the pod that requests the devices of a shared claim."""
    return tuple(sorted((*labels, (sharing(claim), ""))))


def beside(shape: Shape, claim: ClaimName) -> Shape:
    """The shape, limited to the node of the pod that requests the devices of this claim."""
    carrier = PodSelector((Requirement(sharing(claim), "Exists"),), (claim.namespace,))
    affinity = {*shape.rules.affinity, AffinityTerm(HOSTNAME, carrier)}
    rules = replace(shape.rules, affinity=tuple(sorted(affinity, key=str)))
    return replace(shape, rules=rules)


def on_nodes(shape: Shape, nodes: Collection[NodeName] | None) -> Shape:
    """The shape, limited to these nodes; None allows all."""
    if nodes is None:
        return shape
    there = Requirement(NODE_NAME, "In", tuple(nodes))
    terms = {
        NodeTerm(term.labels, tuple(sorted({*term.fields, there}, key=str)))
        for term in ((NodeTerm(),) if shape.required is None else shape.required)
    }
    return replace(shape, required=tuple(sorted(terms, key=node_term_order)))
