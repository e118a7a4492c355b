"""The checker catches members of a gang that are not in one domain."""

from dataclasses import replace

from tutti.model.cluster import Phase, SlotReservation
from tutti.model.decisions import Plan
from tutti.model.inter_pod import Topology
from tutti.model.keys import NodeName
from tutti.verify import plan_checks

from ...harness.builders import GangBuilder, gang, labels, node, reservation, snapshot_of, topology
from .test_plan_checks import placing

RACK = "rack"
NODES = (
    *(node(name, cpu=8).labelled(rack="r1") for name in ("n1", "n2")),
    node("n3", cpu=8).labelled(rack="r2"),
    node("n4", cpu=8),
)
A = gang("a").of(2, cpu=1).together(RACK)


def broken(
    of: GangBuilder, *where: tuple[str, str], levels: tuple[str, ...] = (RACK,)
) -> tuple[str, ...]:
    placement = placing(of, *where)
    return plan_checks.violations(snapshot_of(*NODES, topology(*levels), of), Plan((placement,)))


def test_members_in_one_domain_break_nothing() -> None:
    assert broken(A, ("a-0", "n1"), ("a-1", "n2")) == ()


def test_members_in_two_domains_are_caught() -> None:
    (fault,) = broken(A, ("a-0", "n1"), ("a-1", "n3"))
    assert fault == f"gang ml/a: it would be in these domains of {RACK}: r1, r2"


def test_a_node_without_the_label_is_in_no_domain() -> None:
    (fault,) = broken(A, ("a-0", "n4"), ("a-1", "n4"))
    assert fault == f"gang ml/a: it would be in these domains of {RACK}: none"


def test_a_level_that_no_topology_has_is_caught() -> None:
    (fault,) = broken(A, ("a-0", "n1"), ("a-1", "n2"), levels=("zone",))
    assert fault == f"gang ml/a: no topology has the level {RACK}"


def of_network(level: str, where: tuple[str, str], *topologies: Topology) -> tuple[str, ...]:
    made = gang("a").of(2, cpu=1).together(level)
    names = ("a-0", where[0]), ("a-1", where[1])
    nodes = [
        node(f"{row}{rack}{n}", cpu=8).labelled(row=row, rack=rack, hostname=f"{row}{rack}{n}")
        for row in "xy"
        for rack in "ab"
        for n in "12"
    ]
    snapshot = snapshot_of(*nodes, *topologies, made)
    return plan_checks.violations(snapshot, Plan((placing(made, *names),)))


WIDE = topology("row", "rack", name="wide")
FLAT = topology("rack", name="flat")


def test_the_first_topology_that_has_a_level_says_what_its_domains_are() -> None:
    """By name, and one of Tutti before those of other projects. Racks have names within a row."""
    assert len(of_network("rack", ("xa1", "ya1"), WIDE)) == 1
    assert of_network("rack", ("xa1", "ya1"), WIDE, FLAT) == ()
    kai = replace(FLAT, group="kai.scheduler")
    assert len(of_network("rack", ("xa1", "ya1"), WIDE, kai)) == 1
    kueue = replace(WIDE, name="a", group="kueue.x-k8s.io")
    assert of_network("rack", ("xa1", "ya1"), kueue, kai) == ()
    assert len(of_network("row", ("xa1", "ya1"), FLAT, WIDE)) == 1


def test_tiers_are_counted_from_the_narrowest_level_without_the_nodes() -> None:
    for network in (WIDE, topology("row", "rack", "hostname", name="wide")):
        assert of_network("tier 1", ("xa1", "xa2"), network) == ()
        assert len(of_network("tier 1", ("xa1", "xb1"), network)) == 1
        assert of_network("tier 2", ("xa1", "xb1"), network) == ()
        assert len(of_network("tier 2", ("xa1", "ya1"), network)) == 1
        (fault,) = of_network("tier 3", ("xa1", "xa1"), network)
        assert "no topology has the level tier 3" in fault
    assert len(of_network("hostname", ("xa1", "xa2"), topology("row", "hostname"))) == 1
    odd = topology("row", "hostname", "rack")
    assert of_network("tier 3", ("xa1", "xb1"), odd) == (), "nodes are not its narrowest level"


def test_new_members_join_the_domain_of_those_that_are_bound() -> None:
    grown = gang("a").of(3, cpu=1).needing(2).together(RACK).bound_on("n1", "n2")
    assert broken(grown, ("a-2", "n2")) == ()
    assert len(broken(grown, ("a-2", "n3"))) == 1


LARGE = tuple(node(f"r{n}", cpu=40).labelled(rack=f"r{n}") for n in range(4))
SEGMENTS = gang("a").of(8, cpu=1).in_segments(4, RACK)
BY_INDEX = gang("a").of(8, cpu=1).in_segments(4, RACK, index="index")


def judged(of: GangBuilder, *racks: str, bare: bool = False) -> tuple[str, ...]:
    """The members without a node go to these racks, in their order."""
    waiting = [m.key.name for m in of.made.members if m.node is None]
    placement = placing(of, *zip(waiting, racks, strict=False))
    nodes = (*LARGE, node("bare", cpu=40)) if bare else LARGE
    return plan_checks.violations(snapshot_of(*nodes, topology(RACK), of), Plan((placement,)))


def numbered(of: GangBuilder, *indexes: int) -> GangBuilder:
    for number, index in enumerate(indexes):
        of = of.only(f"a-{number}", labels=labels(index=str(index)))
    return of


def test_whole_segments_and_a_short_one_break_nothing() -> None:
    assert judged(SEGMENTS, *["r0"] * 4, *["r1"] * 4) == ()
    assert judged(SEGMENTS, *["r0"] * 8) == ()
    six = gang("a").of(6, cpu=1).in_segments(4, RACK)
    assert judged(six, *["r0"] * 4, *["r1"] * 2) == ()
    assert judged(six, *["r0"] * 6) == ()


def test_two_short_segments_are_caught() -> None:
    (fault,) = judged(SEGMENTS, *["r0"] * 5, *["r1"] * 3)
    assert fault == "gang ml/a: more than one segment of rack would be short"


def test_a_segment_outside_of_all_domains_is_caught() -> None:
    (fault,) = judged(SEGMENTS, *["r0"] * 4, *["bare"] * 4, bare=True)
    assert fault == "gang ml/a: segments would be outside of all domains of rack"


def test_an_unknown_level_of_segments_is_caught() -> None:
    placement = placing(SEGMENTS, *((f"a-{i}", "r0") for i in range(8)))
    made = snapshot_of(*LARGE, topology("zone"), SEGMENTS)
    (fault,) = plan_checks.violations(made, Plan((placement,)))
    assert fault == "gang ml/a: no topology has the level rack"


def test_members_of_other_roles_are_in_no_segment() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 4, cpu=1)
    made = made.in_segments(2, RACK, "worker")
    assert judged(made, "r3", "r0", "r0", "r1", "r1") == ()
    assert len(judged(made, "r0", "r0", "r0", "r0", "r1")) == 1


def test_a_gang_that_runs_begins_no_segment_beside_one_that_lacks_a_member() -> None:
    running = SEGMENTS.bound_on(*["r0"] * 4, *["r1"] * 3)
    assert judged(running, "r1") == ()
    (fault,) = judged(running, "r2")
    assert fault == "gang ml/a: it would be in more than 2 segments of rack"


def test_a_segment_that_was_lost_whole_may_begin_while_others_wait() -> None:
    running = SEGMENTS.bound_on(*["r0"] * 3)
    assert judged(running, "r2") == ()
    assert judged(running, "r2", "r3") != ()
    alone = gang("a").role("driver", 1, cpu=1).role("worker", 8, cpu=1)
    alone = alone.in_segments(4, RACK, "worker").bound_on("r3")
    assert judged(alone, "r0", "r1") == ()
    assert judged(alone, "r0", "r1", "r2") != ()


def test_segments_that_were_too_many_before_may_be_filled() -> None:
    assert judged(SEGMENTS.bound_on("r0", "r1", "r2"), "r0") == ()
    assert judged(SEGMENTS.bound_on("r0", "r1", "r2"), "r3") != ()


def test_promised_members_and_absent_ones_are_counted_once() -> None:
    """Six members fill two segments: those on r0, the slot on r1, and one promised on r1."""
    made = gang("a").role("worker", 6, 5, cpu=1).declaring(cpu=1).in_segments(3, RACK)
    made = made.bound_on("r0", "r0")
    slots = [SlotReservation(NodeName("r1"), "worker", 1)]
    held = reservation(made, ("a-2", "r1"), slots=slots)
    for rack, most in (("r1", 0), ("r2", 1)):
        placement = replace(placing(made, ("a-3", rack)), slots=tuple(slots))
        snapshot = snapshot_of(*LARGE, topology(RACK), made, held)
        faults = plan_checks.violations(snapshot, Plan((placement,)))
        assert sum("more than 2 segments" in fault for fault in faults) == most


def test_by_index_a_segment_is_in_one_domain() -> None:
    shuffled = numbered(BY_INDEX, 0, 4, 1, 5, 2, 6, 3, 7)
    assert judged(shuffled, *["r0", "r1"] * 4) == ()
    (fault,) = judged(shuffled, *["r0"] * 4, *["r1"] * 4)
    assert fault == "gang ml/a: a segment would be in several domains of rack"


def test_by_index_a_replacement_joins_its_own_segment() -> None:
    made = numbered(BY_INDEX, 0, 1, 2, 4, 5, 6, 7, 3)
    running = made.bound_on(*["r0"] * 3, *["r1"] * 3)
    assert judged(running, "r1", "r0") == ()
    assert judged(running, "r0", "r1") != ()
    assert judged(running, "r1", "r2") != ()


def test_by_index_a_promised_member_fixes_the_domain_of_its_segment() -> None:
    made = gang("a").role("worker", 8, 8, cpu=1).declaring(cpu=1)
    made = numbered(made.in_segments(4, RACK, index="index"), *range(8)).bound_on(*["r0"] * 4)
    slots = [SlotReservation(NodeName("r1"), "worker", 1)]
    held = reservation(made, ("a-4", "r1"), slots=slots)
    for rack, count in (("r1", 0), ("r2", 1)):
        placement = replace(placing(made, ("a-5", rack)), slots=tuple(slots))
        snapshot = snapshot_of(*LARGE, topology(RACK), made, held)
        faults = plan_checks.violations(snapshot, Plan((placement,)))
        assert sum("a segment would be in several" in fault for fault in faults) == count


def test_each_absent_member_counts_in_segments() -> None:
    """Room for several of them on a node is one slot."""
    made = gang("a").role("x", 1, cpu=1).role("y", 6, 2, cpu=1).declaring(cpu=1)
    made = made.in_segments(2, RACK, "y")
    for first, second, is_lawful in ((2, 2, False), (1, 3, True), (3, 2, True)):
        held = [("r0", first), ("r1", second)]
        slots = tuple(SlotReservation(NodeName(name), "y", n) for name, n in held)
        placement = placing(made, ("a-0", "r2"), ("a-1", "r0"), ("a-2", "r1"))
        snapshot = snapshot_of(*LARGE, topology(RACK), made)
        faults = plan_checks.violations(snapshot, Plan((replace(placement, slots=slots),)))
        assert any("more than one segment" in fault for fault in faults) is not is_lawful


def test_a_member_without_an_index_is_in_a_segment_of_its_own() -> None:
    made = numbered(gang("a").of(3, cpu=1).in_segments(2, RACK, index="index"), 0, 1)
    assert judged(made, "r0", "r0", "r1") == ()


def test_members_that_ended_fix_no_segment() -> None:
    made = numbered(BY_INDEX, *range(8)).bound_on("r0", "r1", "r1")
    made = made.only("a-0", phase=Phase.SUCCEEDED)
    assert judged(made, "r1") == ()
    assert judged(made, "r0") != ()


def test_by_index_there_may_be_more_segments_than_members_fill() -> None:
    made = numbered(gang("a").of(2, cpu=1).in_segments(4, RACK, index="index"), 0, 4)
    assert judged(made.bound_on("r0"), "r1") == ()


def test_waiting_members_of_other_roles_fill_no_segment() -> None:
    made = (
        gang("a").role("worker", 4, cpu=1).role("driver", 1, cpu=1).in_segments(4, RACK, "worker")
    )
    assert judged(made.bound_on("r0", "r0", "r0"), "r1") != ()


def test_indexes_of_other_roles_do_not_matter() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1)
    made = numbered(made.in_segments(4, RACK, "worker", index="index"), 0, 1, 2, 3)
    assert judged(made.bound_on("r1"), "r0", "r0", "r0") == ()
    assert judged(made, "r1", "r0", "r0", "r0") == ()


def test_an_index_is_read_from_its_own_label() -> None:
    made = numbered(gang("a").of(2, cpu=1).in_segments(1, RACK, index="index"), 0, 1)
    made = made.where(lambda m: replace(m, labels=(("first", "7"), *m.labels)))
    assert judged(made, "r0", "r1") == ()


def test_entries_of_pods_that_are_gone_fix_nothing() -> None:
    for made in (
        gang("a").role("w", 3, 3, cpu=1).together(RACK),
        numbered(gang("a").role("w", 3, 3, cpu=1).in_segments(2, RACK, index="index"), 0, 1, 2),
    ):
        running = made.declaring(cpu=1).bound_on("r0")
        slots = [SlotReservation(NodeName("r0"), "w", 1)]
        held = reservation(running, ("ghost", "r1"), slots=slots)
        placement = replace(placing(running, ("a-1", "r0")), slots=tuple(slots))
        snapshot = snapshot_of(*LARGE, topology(RACK), running, held)
        faults = plan_checks.violations(snapshot, Plan((placement,)))
        assert not any("domains" in fault for fault in faults)


def test_members_of_other_roles_or_that_ended_fix_no_domain() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 3, cpu=1).together(RACK, "worker")
    running = made.bound_on("r2", "r0")
    assert judged(running, "r0") == ()
    assert len(judged(running, "r2")) == 1
    over = made.bound_on("r3", "r2", "r0").only("a-1", phase=Phase.SUCCEEDED)
    assert len(judged(over, "r2")) == 1


def test_new_members_of_other_roles_need_no_domain() -> None:
    made = gang("a").role("worker", 2, cpu=1).role("driver", 1, cpu=1).together(RACK, "worker")
    assert judged(made.bound_on("r0", "r0"), "r1") == ()


def test_slots_of_other_roles_fix_no_domain() -> None:
    made = gang("a").role("worker", 2, cpu=1).role("store", 1, 1, cpu=1).declaring(cpu=1)
    made = made.together(RACK, "worker").bound_on("r0")
    slots = [SlotReservation(NodeName("r1"), "store", 1)]
    for rack, count in (("r0", 0), ("r1", 1)):
        placement = replace(placing(made, ("a-1", rack)), slots=tuple(slots))
        snapshot = snapshot_of(*LARGE, topology(RACK), made, reservation(made, slots=slots))
        faults = plan_checks.violations(snapshot, Plan((placement,)))
        assert sum("it would be in these domains" in fault for fault in faults) == count
