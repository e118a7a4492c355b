"""Which devices a node has: of complete pools, of the newest generation."""

from dataclasses import replace

from tests.harness.fake_devices import DRIVER, gpus
from tutti.filters.devices.pools import devices, pool_of, unusable_on
from tutti.model.keys import NodeName

FIRST, SECOND = (replace(gpus("n1", 1, first=i), name=f"slice-{i}", slices=2) for i in range(2))
N1 = NodeName("n1")


def test_a_pool_is_used_once_all_of_its_slices_are_known() -> None:
    assert pool_of(FIRST) == (DRIVER, "n1")
    assert devices([FIRST]) == {}
    assert [device.id.name for device in devices([SECOND, FIRST])[N1]] == ["gpu-0", "gpu-1"]
    assert devices([]) == {}
    assert unusable_on([FIRST]) == {N1}
    assert not unusable_on([SECOND, FIRST])


def test_only_the_newest_generation_counts() -> None:
    newer = replace(gpus("n1", 3), generation=2, slices=1)
    assert len(devices([FIRST, SECOND, newer])[N1]) == 3
    assert devices([FIRST, SECOND, replace(newer, slices=2)]) == {}


def test_a_pool_with_two_devices_of_one_name_gives_its_node_none() -> None:
    twin = replace(FIRST, name="twin")
    elsewhere = replace(gpus("n2", 1), pool="n1")
    found = devices(
        [replace(FIRST, slices=3), replace(twin, slices=3), replace(elsewhere, slices=3)]
    )
    assert list(found) == [NodeName("n2")]
