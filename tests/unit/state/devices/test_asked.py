"""Tenants whose claims are too much to count: theirs wait for it, and not those of others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.builders import NAMESPACE, gang, node
from tests.harness.fake_devices import DRIVER, claim, device_class, request
from tests.harness.fakes import Clock, FakeCluster, Life
from tests.unit.state.devices.test_constraints import PORT, ports
from tutti.filters.devices import rows, selectors
from tutti.model.devices.claims import PodClaim
from tutti.model.devices.inventory import Counter
from tutti.state.devices import admin_rows, asked, bundle_rows

GREEDY, MODEST = "greedy", "modest"
OVERLAP = "too many selectors whose devices overlap"


class Tenants:
    """A cluster of one node, and what is said of the pods that name claims."""

    def __init__(self, *devices: int) -> None:
        self.cluster = FakeCluster()
        self.cluster.add(node("n1", cpu=8))
        self.cluster.put_devices(ports(*(devices or range(4))), device_class())
        self.life = Life(self.cluster, Clock())

    def wait(self, space: str, own: dict[str, Any], created: float, **fields: Any) -> None:
        """Add a pod with a claim."""
        name = own["metadata"]["name"]
        key = {**own["metadata"], "namespace": space, "uid": f"{space}-{name}"}
        self.cluster.put_devices({**own, "metadata": key})
        pod = gang(name, space).of(1, cpu=1)
        wanted = (PodClaim("gpu", name),)
        self.cluster.add(pod.each(device_claims=wanted, created=created, **fields))

    def floods(self, count: int, **fields: Any) -> None:
        """Add so many old pods of one tenant, each with another selector."""
        for i in range(count):
            self.wait(GREEDY, one_of(f"c{i:03}", f"{i} >= 0"), float(i), **fields)

    def said(self) -> Mapping[str, str]:
        """What is not modelled of each pod."""
        self.life.watch.catch_up()
        gangs = self.life.state.snapshot(0.0).gangs
        return {f"{of.key}": " ".join(of.members[0].unsupported_fields) for of in gangs}

    def waiting(self) -> list[str]:
        """The gangs that are not modelled."""
        return [key for key, fields in self.said().items() if fields]


def one_of(name: str, *selectors: str) -> dict[str, Any]:
    return claim(name, request("gpu", "gpu", 1, *selectors))


def has_port(*values: int) -> str:
    return f'device.attributes["{DRIVER}"].port in {[*values]}'


def pairs(name: str, count: int = 2) -> dict[str, Any]:
    return claim(name, request(count=count), constraints=[{"matchAttribute": PORT}])


def test_a_tenant_with_too_many_selectors_stops_nobody_else() -> None:
    tenants = Tenants()
    tenants.floods(300)
    tenants.wait(MODEST, one_of("late", "7 >= 0 && true"), 1e6)
    said = tenants.said()
    assert said["modest/late"] == ""
    waiting = [key for key, fields in said.items() if fields]
    # 254 are rows of their own, beside that of the other tenant and that of all; the youngest wait.
    assert waiting == [f"greedy/c{i:03}" for i in range(254, 300)]
    assert {said[key] for key in waiting} == {f"spec.resourceClaims ({OVERLAP})"}


@pytest.mark.parametrize("is_admin", [False, True])
def test_a_tenant_whose_selectors_have_too_many_answers_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch, *, is_admin: bool
) -> None:
    monkeypatch.setattr(selectors, "MOST_ANSWERS", 4 * selectors.LEAST_ANSWERS)
    tenants = Tenants()
    access = {"adminAccess": True} if is_admin else {}
    for i in range(4):
        own = request("gpu", "gpu", 1, f"{i} >= 0", **access)
        tenants.wait(NAMESPACE, claim(f"c{i}", own), float(i))
    tenants.wait(MODEST, claim("late", request("gpu", "gpu", 1, "7 >= 0", **access)), 1e6)
    assert tenants.said() == {
        "ml/c0": "",
        "ml/c1": "",
        "ml/c2": f"spec.resourceClaims ({selectors.TOO_MANY})",
        "ml/c3": f"spec.resourceClaims ({selectors.TOO_MANY})",
        "modest/late": "",
    }
    tenants.cluster.change_pod("c0-0", terminating=True)
    tenants.cluster.change_pod("c1-0", terminating=True)
    assert tenants.waiting() == []


def test_a_tenant_with_selectors_that_take_long_stops_nobody_else() -> None:
    tenants = Tenants()
    hostile = (
        f"cel.bind(x0, [1], {''.join(f'cel.bind(x{i + 1}, [x{i}, x{i}], ' for i in range(24))}"
    )
    hostile += "x24 == x24" + 25 * ")"
    for i in range(3):
        tenants.wait(GREEDY, one_of(f"c{i}", f"{hostile} || {i} >= 0"), float(i))
    tenants.wait(MODEST, one_of("late", "7 >= 0"), 1e6)
    said = {**tenants.said()}
    assert said.pop("modest/late") == ""
    assert {*said.values()} == {f"spec.resourceClaims ({selectors.TOO_SLOW})"}


def test_what_two_tenants_want_alike_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 1)
    tenants = Tenants()
    tenants.wait(GREEDY, one_of("early"), 0.0)
    tenants.wait(GREEDY, one_of("other", "true"), 1.0)
    tenants.wait(MODEST, one_of("late"), 1e6)
    assert tenants.waiting() == ["greedy/other"]


def test_a_tenant_with_old_claims_of_many_requests_stops_nobody_else() -> None:
    tenants = Tenants()
    for i in range(9):
        requests = [request(f"r{j}", "gpu", 1, f"{32 * i + j} >= 0") for j in range(32)]
        tenants.wait(GREEDY, claim(f"c{i}", *requests), float(i))
    for i in range(20):
        tenants.wait(MODEST, one_of(f"late{i}", f"{i} >= 0 && true"), 1e6)
    assert tenants.waiting() == ["greedy/c7", "greedy/c8"]


def test_claims_that_other_controllers_hold_back_take_no_row_from_others() -> None:
    tenants = Tenants()
    tenants.floods(300, gates=("x/y",))
    for i in range(200):
        tenants.wait(GREEDY, one_of(f"d{i:03}", f"{i} >= 0 && true"), 1e6)
    assert tenants.waiting() == [f"greedy/c{i:03}" for i in range(55, 300)]


def test_a_tenant_with_selectors_that_overlap_stops_nobody_else() -> None:
    tenants = Tenants(*range(16))
    for i in range(12):
        tenants.wait(GREEDY, one_of(f"c{i:02}", has_port(0, i + 1)), float(i))
    for i in range(3):
        tenants.wait(MODEST, one_of(f"late{i}", has_port(13 + i)), 1e6)
    said = tenants.said()
    assert [said[f"modest/late{i}"] for i in range(3)] == ["", "", ""]
    assert tenants.waiting() == [f"greedy/c{i:02}" for i in range(7, 12)]
    tenants.wait("third", one_of("later", has_port(14, 15)), 2e6)
    assert tenants.said()["third/later"] == ""


def test_what_is_left_out_is_counted_once_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 1)
    tenants = Tenants()
    for i in range(2):
        tenants.wait(NAMESPACE, one_of(f"c{i}", f"{i} >= 0"), float(i))
    assert tenants.waiting() == ["ml/c1"]
    tenants.cluster.change_pod("c0-0", terminating=True)
    assert tenants.waiting() == []


def test_who_is_left_out_follows_the_turns() -> None:
    tenants = Tenants(*range(16))
    for i in range(9):
        tenants.wait(NAMESPACE, one_of(f"c{i}", has_port(0, i + 1)), float(i))
    assert tenants.waiting() == ["ml/c8"]
    tenants.cluster.change_pod("c0-0", gates=("x/y",))
    assert tenants.waiting() == ["ml/c0"]
    tenants.cluster.change_pod("c0-0", gates=())
    assert tenants.waiting() == ["ml/c8"]


def either(name: str, *options: tuple[int, str]) -> dict[str, Any]:
    """A claim for one of these: so many devices that meet a selector."""
    parts = [
        {"name": f"o{i}", **request("gpu", "gpu", count, selector)["exactly"]}
        for i, (count, selector) in enumerate(options)
    ]
    return claim(name, {"name": "gpu", "firstAvailable": parts})


@pytest.mark.parametrize("constraints", [[], [{"matchAttribute": PORT}]])
def test_a_claim_that_is_left_out_waits_though_its_selector_is_an_option_of_another(
    monkeypatch: pytest.MonkeyPatch, constraints: list[dict[str, str]]
) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 1)
    tenants = Tenants()
    tenants.wait(GREEDY, one_of("c0", "0 >= 0"), 0.0)
    tenants.wait(GREEDY, either("either", (2, "1 >= 0"), (1, "2 >= 0")), 1.0)
    single = claim("single", request("gpu", "gpu", 1, "1 >= 0"), constraints=constraints)
    tenants.wait(GREEDY, single, 2.0)
    assert tenants.said() == {
        "greedy/c0": "",
        "greedy/either": "",
        "greedy/single": f"spec.resourceClaims ({OVERLAP})",
    }


def test_selections_that_are_no_rows_are_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "MOST_SELECTIONS", 2)
    tenants = Tenants()
    tenants.floods(3)
    assert tenants.waiting() == ["greedy/c002"]


def test_a_tenant_with_too_many_constraints_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle_rows, "MOST_ROWS", 3)
    tenants = Tenants(0, 0, 0, 1, 1, 1)
    for i in range(5):
        tenants.wait(GREEDY, pairs(f"c{i}", 2 + i), float(i))
    tenants.wait(MODEST, pairs("late", 1), 1e6)
    said = tenants.said()
    assert said["modest/late"] == said["greedy/c0"] == ""
    fields = "spec.resourceClaims (devices.constraints[]: more than 3 limits on constraints)"
    assert said["greedy/c4"] == fields


def test_a_tenant_whose_partitions_compete_stops_nobody_else() -> None:
    tenants = Tenants()
    piece = ports(*range(8))
    uses = (Counter("set", "cores", "3"),)
    shared = tuple(replace(of, counters=uses) for of in piece.devices)
    counters = (Counter("set", "cores", "7"),)
    tenants.cluster.put_devices(replace(piece, devices=shared, counters=counters))
    for i in range(9):
        tenants.wait(NAMESPACE, one_of(f"c{i}", f"{i} >= 0"), float(i))
        if i < 3:
            tenants.wait(MODEST, one_of(f"late{i}", f"{i} >= 0 && true"), 1e6)
            tenants.wait("third", pairs(f"pair{i}", 1 + i), 1e6)
    turns = tenants.waiting()
    assert "ml/c8" in turns
    assert not {"ml/c0", "modest/late0", "modest/late1", "third/pair0"} & {*turns}
    for i in range(9):
        tenants.cluster.change_pod(f"c{i}-0", gates=("x/y",))
    assert not {"modest/late0", "modest/late1", "modest/late2"} & {*tenants.waiting()}


def test_a_tenant_with_too_many_claims_for_admin_access_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin_rows, "MOST_ROWS", 2)
    tenants = Tenants()
    for i in range(3):
        own = claim(f"c{i}", request("gpu", "gpu", 1, f"{i} >= 0", adminAccess=True))
        tenants.wait(GREEDY, own, float(i))
    tenants.wait(MODEST, claim("late", request(adminAccess=True)), 1e6)
    assert tenants.waiting() == ["greedy/c1", "greedy/c2"]


def test_claims_beside_constraints_are_left_out_only_where_they_make_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenants = Tenants(0, 0, 0, 1)
    tenants.wait(MODEST, pairs("pairs"), 0.0)
    tenants.wait(MODEST, one_of("crossing", has_port(0)), 1.0)
    tenants.wait("third", one_of("all"), 2.0)
    assert tenants.waiting() == []
    monkeypatch.setattr(bundle_rows, "MOST_ROWS", 1)
    tenants.life = Life(tenants.cluster, Clock())
    assert tenants.said() == {
        "modest/crossing": f"spec.resourceClaims ({OVERLAP})",
        "modest/pairs": "",
        "third/all": "",
    }
    tenants.cluster.put_devices(ports(0, 0, 0, 1, 1, 1))
    assert tenants.waiting() == ["modest/crossing"]


def test_claims_for_admin_access_are_counted_once_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admin_rows, "MOST_ROWS", 1)
    tenants = Tenants()
    for i in range(2):
        own = claim(f"c{i}", request("gpu", "gpu", 1, f"{i} >= 0", adminAccess=True))
        tenants.wait(NAMESPACE, own, float(i))
    assert tenants.waiting() == ["ml/c1"]
    tenants.cluster.change_pod("c0-0", gates=("x/y",))
    assert tenants.waiting() == ["ml/c0"]
    tenants.cluster.change_pod("c0-0", gates=())
    assert tenants.waiting() == ["ml/c1"]


def beside_pairs(monkeypatch: pytest.MonkeyPatch, *values: int) -> Tenants:
    """A claim for a pair, and a younger one that shares only some of its devices."""
    monkeypatch.setattr(bundle_rows, "MOST_ROWS", 1)
    tenants = Tenants(*values)
    tenants.wait(NAMESPACE, pairs("pairs"), 0.0)
    tenants.wait(NAMESPACE, one_of("crossing", has_port(0)), 1.0)
    return tenants


def test_a_claim_beside_constraints_is_counted_once_the_devices_allow_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenants = beside_pairs(monkeypatch, 0, 0, 0, 1)
    assert tenants.waiting() == ["ml/crossing"]
    tenants.cluster.put_devices(ports(0, 0, 0, 0))
    assert tenants.waiting() == []
    tenants.cluster.put_devices(ports(0, 0, 0, 1))
    assert tenants.waiting() == ["ml/crossing"]


def test_the_turns_count_that_are_when_the_limits_become_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenants = beside_pairs(monkeypatch, 0, 0, 0, 0)
    assert tenants.waiting() == []
    tenants.cluster.change_pod("pairs-0", gates=("x/y",))
    assert tenants.waiting() == []
    tenants.cluster.put_devices(ports(0, 0, 0, 1))
    assert tenants.waiting() == ["ml/pairs"]


def test_few_numbers_of_constraints_are_tried_until_their_limits_are_few_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle_rows, "MOST_ROWS", 24)
    tenants = Tenants(0, 0, 0, 0, 1, 1, 1, 1)
    for i in range(24):
        own = claim(f"c{i:02}", request("gpu", "gpu", 2 + i % 3, f"{i} >= 0"))
        own["spec"]["devices"]["constraints"] = [{"matchAttribute": PORT}]
        tenants.wait(NAMESPACE, own, float(i))
    tried = []
    find = bundle_rows.BundleRows._find_limits

    def counted(self: bundle_rows.BundleRows) -> None:
        tried.append(self)
        find(self)

    monkeypatch.setattr(bundle_rows.BundleRows, "_find_limits", counted)
    before = tenants.waiting()
    assert before
    assert len(tried) <= 4
    tried.clear()
    tenants.cluster.put_devices(ports(0, 0, 0, 0, 1, 1, 1, 1, 2))
    assert tenants.waiting() == before
    assert len(tried) <= 4
