"""What the claim for extended resources of a pod requests, and which class backs a resource."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.extended import GPU, container
from tests.harness.fake_devices import device_class
from tutti.model.devices import extended
from tutti.model.devices.claims import ClaimName, DeviceClaim, DeviceRequest
from tutti.model.devices.extended import (
    ClaimPlan,
    ContainerRequests,
    RequestMapping,
    amounts,
    claim_name,
    claim_plan,
    classes_by_resource,
    covered,
    is_extended,
)
from tutti.model.keys import Uid
from tutti.model.resources import Resources

from ....harness.counting import calls_of

NIC = "nvidia.com/nic"


def plan_of(*containers: ContainerRequests) -> ClaimPlan:
    plan = claim_plan(containers, {GPU})
    assert plan is not None
    return plan


def claim_of(*requests: DeviceRequest, unsupported: tuple[str, ...] = ()) -> DeviceClaim:
    return DeviceClaim(ClaimName("ml", "c"), Uid("c"), requests, unsupported)


@pytest.mark.parametrize(
    ("resource", "is_one"),
    [
        (GPU, True),
        ("example.com/device", True),
        ("deviceclass.resource.kubernetes.io/gpu.example.com", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/device", False),
        ("gpu.kubernetes.io/device", False),
        ("requests.nvidia.com/gpu", False),
    ],
)
def test_a_class_may_back_resources_with_a_domain_of_their_own(resource: str, is_one: bool) -> None:  # noqa: FBT001
    assert is_extended(resource) is is_one


def test_each_container_has_a_request_of_its_own() -> None:
    plan = plan_of(container(0, "a", gpu=1), container(2, "b", gpu=3, beside=()))
    assert plan.counts == (("container-0-request-2", GPU, 1), ("container-2-request-0", GPU, 3))
    assert plan.devices == 4
    assert plan.mappings == (
        RequestMapping("a", GPU, "container-0-request-2"),
        RequestMapping("b", GPU, "container-2-request-0"),
    )
    assert plan.requests({GPU: "gpu"}) == (
        DeviceRequest("container-0-request-2", "gpu", 1),
        DeviceRequest("container-2-request-0", "gpu", 3),
    )


def test_each_resource_has_a_request_of_its_own() -> None:
    both = container(0, gpu=1, nic=2)
    plan = claim_plan((both,), {GPU, NIC})
    assert plan is not None
    assert [count for _, _, count in plan.counts] == [1, 2]
    assert [mapping.resource for mapping in plan.mappings] == [GPU, NIC]
    only = claim_plan((both,), {NIC})
    assert only is not None
    assert only.counts == (("container-0-request-3", NIC, 2),)


def test_an_init_container_uses_what_later_containers_request() -> None:
    first = container(0, "init", gpu=2, is_short_lived=True)
    plan = plan_of(first, container(1, "a", gpu=1), container(2, "b", gpu=4))
    assert [count for _, _, count in plan.counts] == [1, 4]
    assert [m.request for m in plan.mappings if m.container == "init"] == [
        "container-1-request-2",
        "container-2-request-2",
    ]


def test_init_containers_share_a_request_for_what_they_need_beyond_that() -> None:
    plan = plan_of(
        container(0, "small", gpu=2, is_short_lived=True),
        container(1, "large", gpu=5, is_short_lived=True),
        container(2, "main", gpu=1),
    )
    assert plan.counts == (("container-1-request-2", GPU, 4), ("container-2-request-2", GPU, 1))
    for name in ("small", "large"):
        own = [m.request for m in plan.mappings if m.container == name]
        assert own == ["container-2-request-2", "container-1-request-2"]


def test_of_two_init_containers_that_need_as_much_the_first_has_the_request() -> None:
    plan = plan_of(
        container(0, "a", gpu=2, is_short_lived=True), container(1, "b", gpu=2, is_short_lived=True)
    )
    assert plan.counts == (("container-0-request-2", GPU, 2),)


def test_an_init_container_uses_nothing_of_sidecars_before_it() -> None:
    plan = plan_of(container(0, "sidecar", gpu=3), container(1, "init", gpu=2, is_short_lived=True))
    assert [count for _, _, count in plan.counts] == [3, 2]


CONTAINERS = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6)


@given(CONTAINERS)
def test_a_claim_has_as_many_devices_as_a_node_would_count(
    drawn: list[tuple[int, bool]],
) -> None:
    """Init containers come first, among them sidecars; each is shown as many as it requests."""
    containers = [
        container(i, f"c{i}", gpu=count, is_short_lived=is_short)
        for i, (count, is_short) in enumerate(drawn)
        if count
    ]
    plan = plan_of(*containers)
    assert plan.devices == amounts(containers)[GPU]
    counts = {request: count for request, _, count in plan.counts}
    for of in containers:
        shown = [m.request for m in plan.mappings if m.container == of.container]
        assert len({*shown}) == len(shown)
        assert sum(counts[request] for request in shown) >= dict(of.counts)[GPU]


def test_amounts_are_as_kubernetes_counts_them() -> None:
    assert amounts(()) == Resources.of({})
    sidecar, init = container(0, gpu=2), container(1, gpu=3, is_short_lived=True)
    assert amounts((sidecar, init, container(2, gpu=1, nic=1))) == Resources.of({GPU: 5, NIC: 1})


def test_more_requests_than_a_claim_can_have_are_refused() -> None:
    most = extended.MOST_REQUESTS
    many = [container(i, f"c{i}", gpu=1) for i in range(most)]
    assert plan_of(*many).devices == most
    assert claim_plan([*many, container(most, gpu=1)], {GPU}) is None
    init = [container(i, f"c{i}", gpu=1) for i in range(1, most + 1)]
    assert claim_plan([container(0, gpu=99, is_short_lived=True), *init], {GPU}) is None


@pytest.mark.parametrize("is_short_lived", [False, True])
def test_the_work_grows_no_faster_than_the_number_of_containers(is_short_lived: bool) -> None:  # noqa: FBT001
    def work(number: int) -> int:
        many = [
            container(i, f"c{i}", gpu=i + 1, is_short_lived=is_short_lived and i < number - 10)
            for i in range(number)
        ]
        assert (claim_plan(many, {GPU}) is None) is not is_short_lived
        return calls_of(lambda: claim_plan(many, {GPU}))

    assert work(1_000) <= 11 * work(100)


def test_the_work_grows_no_faster_than_the_number_of_resources_of_a_container() -> None:
    def work(number: int) -> int:
        many = tuple(f"example.com/{i:05}" for i in range(number))
        asking = ContainerRequests(0, "main", many, tuple((name, 1) for name in many))
        request = DeviceRequest(f"container-0-request-{number - 1}", "gpu", 1)
        claim = DeviceClaim(ClaimName("ml", "c"), Uid("c"), (request,))
        assert covered([asking], claim) == {many[-1]}
        return calls_of(lambda: covered([asking], claim))

    assert work(20_000) <= 11 * work(2_000)


def test_of_several_classes_the_newest_backs_a_resource_then_the_first_by_name() -> None:
    old, new = device_class("z", backs=GPU, created=1.0), device_class("b", backs=GPU, created=2.0)
    same = device_class("a", backs=GPU, created=2.0)
    assert classes_by_resource([old, new])[GPU] == "b"
    backing = classes_by_resource([new, old, same, device_class("plain")])
    assert backing[GPU] == "a"
    assert backing["deviceclass.resource.kubernetes.io/plain"] == "plain"
    assert len(backing) == 5


def test_a_claim_is_named_by_its_pod() -> None:
    assert claim_name("train-0", Uid("u")) == "train-0-extended-resources-u"
    long = claim_name("a" * 200 + "." * 53, Uid("u" * 36))
    assert len(long) <= 253
    assert long.startswith("a" * 190)
    assert claim_name("a" * 300, Uid("u")) != claim_name("a" * 300, Uid("v"))


def test_a_claim_stands_for_the_resources_whose_requests_it_has() -> None:
    both = (container(0, gpu=1, nic=2),)
    gpu = DeviceRequest("container-0-request-2", "gpu")
    assert covered(both, claim_of(gpu)) == {GPU}
    assert covered(both, claim_of(DeviceRequest("x", "gpu"))) == set()
    plan = plan_of(*both)
    assert plan.is_of(claim_of(gpu))
    assert not plan.is_of(claim_of(gpu, unsupported=("devices.x",)))
    assert not plan.is_of(claim_of(DeviceRequest("container-0-request-2", "gpu", 9)))
