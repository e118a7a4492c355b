"""How amounts read."""

import pytest

from tutti.gang.quantities import (
    count,
    cut,
    format_amount,
    format_name,
    format_resources,
    listed,
    quantity,
)
from tutti.model import ports
from tutti.model.devices.claims import counting, counting_sets
from tutti.model.ports import HostPort
from tutti.model.resources import Resources

from ...harness.builders import resources


@pytest.mark.parametrize(
    ("name", "n", "text"),
    [
        ("cpu", 4000, "4"),
        ("cpu", 500, "500m"),
        ("cpu", 1500, "1500m"),
        ("memory", 16 * 2**30, "16Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 0, "0"),
        ("memory", 1000, "1000"),
        ("memory", 65_837_156 * 2**10, "62.7Gi"),
        ("memory", 1_000_000_000, "953.6Mi"),
        ("memory", 2**34 + 1, "16Gi"),
        ("memory", 20_000 * 2**60, "20000Ei"),
        ("ephemeral-storage", 2**40, "1Ti"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi"),
        ("nvidia.com/gpu", 8, "8"),
        ("pods", 110, "110"),
    ],
)
def test_an_amount_reads_as_people_write_it(name: str, n: int, text: str) -> None:
    assert format_amount(name, n) == text


@pytest.mark.parametrize(
    ("name", "n", "text"),
    [
        ("cpu", 4000, "4"),
        ("cpu", 1500, "1500m"),
        ("memory", 0, "0"),
        ("memory", 65_837_156 * 2**10, "65837156Ki"),
        ("memory", 1_000_000_000, "1000000000"),
        ("memory", 2**34, "16Gi"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_programs_read_it_exactly(name: str, n: int, text: str) -> None:
    assert quantity(name, n) == text


def test_devices_come_first_then_cpu_and_memory_and_pods_go_without_saying() -> None:
    asked = resources(pods=1, cpu=4, memory=2, gpu=1, ephemeral_storage=1)
    assert format_resources(asked) == "1 nvidia.com/gpu, 4 cpu, 2Gi memory, 1Gi ephemeral-storage"


def test_host_ports_come_last_each_said_once() -> None:
    wanted = [HostPort(80), HostPort(53, "UDP", "10.0.0.1"), HostPort(53, "UDP", "::1")]
    asked = resources(pods=1, cpu=4) + Resources.of(ports.requested_amounts(wanted))
    names = ["host port 10.0.0.1:53/UDP", "host port [::1]:53/UDP", "host port 80/TCP"]
    assert format_resources(asked) == ", ".join(["4 cpu", *names])
    assert listed(asked) == {"cpu": "4", "pods": "1", **dict.fromkeys(names, "1")}


def test_a_pod_that_asks_for_nothing_is_said_to() -> None:
    assert format_resources(resources(pods=1)) == "no resources"


def test_devices_are_counted_by_what_selects_them() -> None:
    either = counting("gpu|gpu#1a2b3c")
    assert format_name(either) == "devices of gpu or gpu#1a2b3c"
    asked = Resources.of({counting("gpu"): 1, either: 2})
    assert format_resources(asked) == "1 device of gpu, 2 devices of gpu or gpu#1a2b3c"


def test_devices_with_a_common_attribute_are_counted_as_sets() -> None:
    pairs = counting_sets("2 gpu with one numa#1a2b3c|gpu")
    assert format_name(pairs) == "sets of 2 gpu with one numa#1a2b3c or gpu"
    asked = Resources.of({pairs: 2, counting_sets("a"): 1})
    assert format_resources(asked) == "2 sets of 2 gpu with one numa#1a2b3c or gpu, 1 set of a"


def test_nouns_agree_with_their_number() -> None:
    assert [count(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


def test_a_sentence_is_cut_to_so_many_bytes_and_shows_it() -> None:
    assert cut("room for 3", 10) == "room for 3"
    assert cut("room for 13", 10) == "room fo..."
    assert cut("é" * 10, 10) == "ééé..."
