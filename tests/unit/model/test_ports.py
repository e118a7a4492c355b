"""Host ports as amounts: what fits by arithmetic is what kube-scheduler's NodePorts lets pass."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.model import ports
from tutti.model.cluster import Node
from tutti.model.keys import NodeName
from tutti.model.ports import ANY_IP, WHOLE, HostPort
from tutti.model.resources import NOTHING, Resources

HERE, THERE, SIX = "10.0.0.1", "10.0.0.2", "::1"
NODE = Node(NodeName("n1"), NOTHING)

wanted = st.lists(
    st.builds(
        HostPort,
        st.sampled_from([80, 81]),
        st.sampled_from(["TCP", "UDP"]),
        st.sampled_from([ANY_IP, HERE, THERE, SIX, "::"]),
    ),
    max_size=4,
)


def amounts(pod: Sequence[HostPort]) -> Resources:
    return Resources.of(ports.requested_amounts(pod))


def fits(pod: Sequence[HostPort], used: Resources) -> bool:
    """By arithmetic, on a node that offers nothing but its ports."""
    resources = amounts(pod)
    return resources.fits(
        Resources.of({name: NODE.offers(name) - used[name] for name in resources.names})
    )


def conflicts(host_port: HostPort, other: HostPort) -> bool:
    """As HostPortInfo says it."""
    is_same = (host_port.number, host_port.protocol) == (other.number, other.protocol)
    return is_same and (ANY_IP in (host_port.ip, other.ip) or host_port.ip == other.ip)


@given(wanted, st.lists(wanted, max_size=5))
def test_a_pod_fits_beside_others_if_no_two_of_their_ports_conflict(
    pod: Sequence[HostPort], others: Sequence[Sequence[HostPort]]
) -> None:
    """The others may be in each other's way already: somebody else may have put them there."""
    used = Resources.total(amounts(other) for other in others)
    want = not any(conflicts(a, b) for a in pod for other in others for b in other)
    assert fits(pod, used) is want


@given(wanted)
def test_a_pod_is_never_in_its_own_way(pod: Sequence[HostPort]) -> None:
    assert fits(pod, NOTHING)


@given(st.lists(wanted, min_size=1, max_size=5))
def test_what_is_used_is_dealt_out_to_as_many_pods(pods: Sequence[Sequence[HostPort]]) -> None:
    used = Resources.total(amounts(pod) for pod in pods)
    dealt = [Resources.of(ports.share(dict(used.amounts), i)) for i in range(len(pods))]
    assert Resources.total(dealt) == used


@given(wanted)
def test_a_pods_ports_are_read_back(pod: Sequence[HostPort]) -> None:
    found = ports.named(ports.requested_amounts(pod))
    assert set(found) <= set(pod)
    assert ports.requested_amounts(found) == ports.requested_amounts(pod)


@pytest.mark.parametrize(
    ("port", "text", "resource"),
    [
        (HostPort(80), "80/TCP", "port:80/TCP"),
        (HostPort(53, "UDP", HERE), "10.0.0.1:53/UDP", "port:53/UDP/10.0.0.1"),
        (HostPort(53, "UDP", SIX), "[::1]:53/UDP", "port:53/UDP/::1"),
    ],
)
def test_a_port_reads_as_people_write_it(port: HostPort, text: str, resource: str) -> None:
    assert (str(port), port.resource) == (text, resource)
    assert ports.read(resource) == port


def test_every_node_offers_every_port_and_nothing_else_by_itself() -> None:
    assert NODE.offers(HostPort(80).resource) == WHOLE
    assert NODE.offers(HostPort(80, ip=HERE).resource) == 1
    assert NODE.offers("cpu") == 0
    assert Node(NodeName("n1"), Resources.of({"cpu": 5})).offers("cpu") == 5
