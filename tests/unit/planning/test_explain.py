"""The sentences that tell people why a gang waits."""

from dataclasses import replace

import pytest

from tutti.gang import demand, finding_text
from tutti.model.cluster import Role
from tutti.model.decisions import Reason
from tutti.model.inter_pod import Requirement
from tutti.model.owners import Owner
from tutti.model.ports import HostPort
from tutti.model.shapes import NodeTerm
from tutti.planning import missing_members
from tutti.planning.plan import plan
from tutti.strategies.best_fit import BestFit
from tutti.strategies.problem import Budget, Outcome, Strategy

from ...harness.builders import (
    Canned,
    GangBuilder,
    Overlooking,
    Part,
    gang,
    node,
    single,
    snapshot_of,
)

AFFINITY = ("spec.affinity.podAffinity",)
FITS_NOWHERE = "no node of the kinds present fits member "


def said(name: str, *parts: Part, by: Strategy | None = None) -> tuple[Reason, str]:
    """What the gang of that name is told."""
    made = plan(snapshot_of(*parts), by or BestFit(), BestFit(), Budget())
    return next(
        (r.reason, finding_text.sentence(r)) for r in made.rejections if r.gang.name == name
    )


def waits(of: GangBuilder) -> str:
    """What the gang is told while it waits for members."""
    reason, sentence = said(of.key.name, node("n1", cpu=64), of)
    assert reason is Reason.WAITING_FOR_MEMBERS
    return sentence


def no_room(name: str, *parts: Part, by: Strategy | None = None) -> str:
    """What the gang is told while it waits for room."""
    reason, sentence = said(name, *parts, by=by)
    assert reason is Reason.NOT_ENOUGH_ROOM
    return sentence


def nowhere(*parts: Part) -> str:
    """What the gang called ``a`` is told if no node could hold one of its members."""
    reason, sentence = said("a", *parts)
    assert reason is Reason.NO_NODE_FITS
    return sentence


def test_too_few_members_are_counted() -> None:
    assert waits(gang("a").of(5).needing(8)) == "5 of 8 members exist"
    assert waits(gang("a").needing(1)) == "0 of 1 member exist"


def test_a_gang_with_enough_members_is_not_said_to_wait_for_any() -> None:
    assert missing_members.absence(demand.count_members(gang("a").of(2).made)) is None


def test_the_short_role_is_named() -> None:
    made = gang("a").role("driver", 1).role("worker", 4, 3).needing(5)
    assert waits(made) == "role worker: 3 of 4 exist"
    both = gang("a").role("driver", 1, 0).role("worker", 4, 3).needing(5)
    assert waits(both) == "role driver: 0 of 1 exist; role worker: 3 of 4 exist"


def test_pods_of_no_known_role_are_mentioned() -> None:
    made = gang("a").role("worker", 2, 1).of(1, role="wroker").needing(2)
    assert waits(made) == "role worker: 1 of 2 exist; 1 pod names no role of the gang"
    assert waits(made.but(other_stages=("wroker",))) == "role worker: 1 of 2 exist"


def test_gated_members_are_mentioned() -> None:
    made = gang("a").of(4).needing(4)
    assert waits(made.last(1, gates=("hold",))) == (
        "4 of 4 members exist; 1 of them has scheduling gates (hold)"
    )
    few = gang("a").of(4).needing(5).last(2, gates=("hold",))
    assert waits(few) == "4 of 5 members exist; 2 of them have scheduling gates (hold)"


def test_of_many_gates_a_few_are_named_each_once() -> None:
    names = tuple(f"example.com/{n}" for n in range(5))
    both = gang("a").of(2).last(1, gates=names[:2]).only("a-0", gates=names[1:])
    assert waits(both).endswith(
        "scheduling gates (example.com/0, example.com/1, example.com/2, 2 more)"
    )


def test_members_that_leave_do_not_exist() -> None:
    assert waits(gang("a").of(4).last(1, terminating=True)) == "3 of 4 members exist"


def test_an_ordered_stateful_set_is_told_to_create_pods_in_parallel() -> None:
    made = gang("a").of(1).needing(3).each(owner=Owner("StatefulSet", "web"))
    assert waits(made) == (
        "1 of 3 members exist; StatefulSet web, if OrderedReady, creates one pod at a time: "
        "set podManagementPolicy: Parallel"
    )


def test_a_job_of_too_little_parallelism_is_told_how_much_it_needs() -> None:
    made = gang("a").of(2).needing(4).each(owner=Owner("Job", "train"))
    assert waits(made) == (
        "2 of 4 members exist; Job train: spec.parallelism must be at least minMember (4)"
    )


def test_no_advice_is_given_for_other_owners_or_where_enough_exist() -> None:
    few = gang("a").of(2).needing(4).each(owner=Owner("ReplicaSet", "web"))
    assert waits(few) == "2 of 4 members exist"
    gated = gang("a").of(2).each(owner=Owner("Job", "train"), gates=("hold",))
    assert waits(gated) == "2 of 2 members exist; 2 of them have scheduling gates (hold)"


def test_a_gang_that_is_being_deleted_is_told_so_while_pods_wait() -> None:
    assert waits(gang("a").of(2).but(terminating=True)) == "the PodGroup is being deleted"
    idle = snapshot_of(gang("a").of(1).bound_on("n1").but(terminating=True))
    assert plan(idle, BestFit(), BestFit(), Budget()).rejections == ()


def test_a_gated_pod_without_a_group_is_told_so() -> None:
    assert waits(single("p").each(gates=("hold",))) == "the pod has scheduling gates (hold)"


def test_a_started_gang_that_lost_members_is_told_how_many() -> None:
    lost = gang("a").of(3, cpu=1).needing(4).bound_on("n1", "n1", "n1")
    assert waits(lost) == "3 of 4 members are bound; 1 lost, and no pod waits to replace it"
    gated = gang("a").of(3).needing(4).bound_on("n1", "n1").last(1, gates=("hold",))
    assert waits(gated) == (
        "2 of 4 members are bound; 2 lost, and no pod waits to replace them; "
        "1 more has scheduling gates (hold)"
    )


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            gang("a").of(3).each(unsupported_fields=AFFINITY),
            "3 members use spec.affinity.podAffinity, which Tutti does not place yet",
        ),
        (
            gang("a").of(3).last(1, unsupported_fields=("spec.b", "spec.a")),
            "1 member uses spec.a, spec.b, which Tutti does not place yet",
        ),
        (
            single("a").each(unsupported_fields=AFFINITY),
            "the pod uses spec.affinity.podAffinity, which Tutti does not place yet",
        ),
        (
            gang("a").of(2).needing(1).bound_on("n1").last(1, unsupported_fields=AFFINITY),
            "1 member uses spec.affinity.podAffinity, which Tutti does not place yet",
        ),
    ],
)
def test_rules_that_are_not_modelled_are_named(made: GangBuilder, sentence: str) -> None:
    assert said("a", node("n1", cpu=8), made) == (Reason.NOT_MODELLED, sentence)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            single("a").each(volume_problems=("claim x does not exist",)),
            "1 pod waits for volumes: claim x does not exist",
        ),
        (
            gang("a")
            .of(3)
            .last(2, volume_problems=("claim x is not bound yet", "claim y is lost")),
            "2 pods wait for volumes: claim x is not bound yet, claim y is lost",
        ),
        (
            gang("a")
            .of(2)
            .only("a-0", volume_problems=tuple("abcde"))
            .only("a-1", unsupported_fields=AFFINITY),
            "1 pod waits for volumes: a, b, c, 2 more",
        ),
        (
            gang("a").of(2).needing(1).bound_on("n1").last(1, volume_problems=("x",)),
            "1 pod waits for volumes: x",
        ),
    ],
)
def test_who_waits_for_volumes_says_for_which(made: GangBuilder, sentence: str) -> None:
    assert said("a", node("n1", cpu=8), made) == (Reason.WAITING_FOR_VOLUMES, sentence)


def test_pods_that_wait_for_volumes_are_among_those_that_exist() -> None:
    few = gang("a").of(2).needing(3).last(1, volume_problems=("x",))
    reason, sentence = said("a", node("n1", cpu=8), few)
    assert (reason, sentence) == (Reason.WAITING_FOR_MEMBERS, "2 of 3 members exist")


def test_a_volume_that_no_node_reaches_is_named_and_one_that_some_do_decides() -> None:
    reach = ((Requirement("zone", "In", ("z1",)), Requirement("ssd", "Exists")),)
    made = gang("a").of(2, cpu=1).shaped(volume_reach=(reach,))
    nodes = [node("n1", cpu=8).labelled(zone="z1"), node("n2", cpu=8).labelled(ssd="")]
    reason, sentence = said("a", *nodes, made)
    assert reason is Reason.NO_NODE_FITS
    assert "2 out of reach of a volume" in sentence
    snapshot = snapshot_of(*nodes, node("n3", cpu=8).labelled(zone="z1", ssd=""), made)
    there = plan(snapshot, BestFit(), BestFit(), Budget())
    assert {
        assignment.node for placement in there.placements for assignment in placement.assignments
    } == {"n3"}


def test_what_is_asked_what_was_found_and_what_is_short() -> None:
    nodes = [node(f"n{i}", cpu=8, gpu=2) for i in range(4)]
    other = gang("b").of(1, gpu=2)
    made = gang("a").of(8, cpu=4, gpu=1).but(created=9.0)
    assert no_room("a", *nodes, other, made) == (
        "8 members need 1 nvidia.com/gpu, 4 cpu each; room for 6 on 3 nodes; short 2"
    )


def test_no_room_at_all_is_said_in_a_word() -> None:
    other, made = gang("b").of(1, cpu=1).priority(1), single("a", cpu=4)
    assert no_room("a", node("n1", cpu=4), other, made) == (
        "the pod needs 4 cpu; room for none; short 1"
    )


def test_even_the_empty_cluster_may_be_too_small() -> None:
    made = gang("a").of(8, gpu=1)
    assert no_room("a", node("n1", gpu=6), made) == (
        "8 members need 1 nvidia.com/gpu each; even the empty cluster has room for only 6; short 2"
    )


def test_of_several_shapes_the_shortest_is_named_by_its_role() -> None:
    made = gang("a").role("driver", 1, cpu=1).role("worker", 4, gpu=1)
    assert no_room("a", node("n1", cpu=4, gpu=3), made) == (
        "role worker: 4 members need 1 nvidia.com/gpu each; "
        "even the empty cluster has room for only 3; short 1"
    )


def test_one_member_needs_and_many_need() -> None:
    other = gang("b").of(1, cpu=2).priority(1)
    made = gang("a").of(1, cpu=3).of(1, gpu=1)
    assert no_room("a", node("n1", cpu=4, gpu=1), other, made) == (
        "1 member needs 3 cpu; room for none; short 1"
    )


def test_shapes_that_fit_apart_but_not_together_are_listed() -> None:
    made = gang("a").of(2, cpu=2).of(1, cpu=3)
    assert no_room("a", node("n1", cpu=6), made) == (
        "3 members needed of 2 with 2 cpu each (room for 3 on 1 node), "
        "1 with 3 cpu each (room for 2 on 1 node); no way was found to place them together"
    )


def test_a_long_list_of_shapes_is_cut() -> None:
    made = gang("a").of(1, cpu=2).of(1, cpu=3).of(1, cpu=4).of(1, cpu=5).of(1, cpu=6)
    assert ", 2 more kinds; no way" in no_room("a", node("n1", cpu=6), made)


def test_room_that_an_unproved_plan_left_is_not_denied() -> None:
    snapshot = snapshot_of(node("n1", cpu=8), gang("a").of(2, cpu=1))
    made = plan(snapshot, Overlooking(), Overlooking(), Budget())
    sentence = "2 members need 1 cpu each; room for 8 on 1 node, left unused by this plan"
    assert [finding_text.sentence(r) for r in made.rejections] == [sentence]


def test_a_missing_proof_is_said_of_gangs_that_might_fit() -> None:
    cluster = (node("n1", cpu=4), gang("a").of(3, cpu=1), gang("b").of(3, cpu=1))
    spent = Canned(Outcome.BUDGET_EXHAUSTED, "the budget is spent")
    reason, sentence = said("b", *cluster, by=spent)
    assert reason is Reason.BUDGET_EXHAUSTED
    assert sentence == (
        "3 members need 1 cpu each; room for 1 on 1 node; short 2; "
        "not proved to be the best choice: the budget is spent"
    )


def test_a_lost_member_without_room_says_that_it_is_one() -> None:
    made = gang("a").of(2, cpu=3).bound_on("n1")
    assert no_room("a", node("n1", cpu=4), made) == (
        "1 member to replace lost ones needs 3 cpu; room for none"
    )


def test_members_beyond_the_needed_say_that_they_are() -> None:
    made = gang("a").of(3, cpu=3).needing(1).bound_on("n1")
    assert no_room("a", node("n1", cpu=4), made) == (
        "2 members beyond the 1 needed need 3 cpu each; room for none"
    )


def test_a_later_member_that_no_node_could_hold_is_named() -> None:
    made = gang("a").of(1, cpu=1).of(1, cpu=9).bound_on("n1")
    assert nowhere(node("n1", cpu=4), made).startswith(f"{FITS_NOWHERE}ml/a-1: asks 9 cpu")


def test_the_resource_and_the_largest_node_are_named() -> None:
    nodes = [node("node-b", gpu=8), node("node-a", gpu=8), node("node-c", gpu=4)]
    assert nowhere(*nodes, gang("a").of(2, gpu=16)) == (
        f"{FITS_NOWHERE}ml/a-0: asks 16 nvidia.com/gpu; the largest node has 8 (node-a)"
    )


def test_a_resource_that_no_node_has_is_named() -> None:
    assert nowhere(node("n1", cpu=8), gang("a").of(1, gpu=1)) == (
        f"{FITS_NOWHERE}ml/a-0: asks 1 nvidia.com/gpu; no node has any"
    )


def test_amounts_that_no_one_node_has_together_are_all_named() -> None:
    made = gang("a").of(1, cpu=8, gpu=1)
    assert nowhere(node("n1", cpu=8), node("n2", gpu=1), made) == (
        f"{FITS_NOWHERE}ml/a-0: asks 1 nvidia.com/gpu, 8 cpu; no node has all of it"
    )


def test_a_cluster_without_nodes_is_said_to_have_none() -> None:
    assert nowhere(gang("a").of(1)) == f"{FITS_NOWHERE}ml/a-0: there are no nodes"


def test_rules_that_keep_a_member_off_are_counted_the_most_frequent_first() -> None:
    tainted = [node(f"t{i}", cpu=8).tainted("gpu", "true") for i in range(2)]
    others = [node(f"n{i}", cpu=8) for i in range(3)]
    made = gang("a").of(1, cpu=1).shaped(node_selector=(("pool", "x"),))
    assert nowhere(*tainted, *others, made) == (
        f"{FITS_NOWHERE}ml/a-0: 5 nodes: 3 nodeSelector pool=x, 2 taint gpu=true:NoSchedule"
    )


def test_a_long_list_of_rules_is_cut() -> None:
    pinned = NodeTerm(fields=(Requirement("metadata.name", "In", ("gone",)),))
    nodes = [
        node("n1", cpu=1).cordoned(),
        node("n2", cpu=1).but(ready=False),
        node("n3", cpu=1).tainted("gpu"),
        node("n4", cpu=1),
    ]
    assert nowhere(*nodes, gang("a").of(1, cpu=1).shaped(required=(pinned,))) == (
        f"{FITS_NOWHERE}ml/a-0: 4 nodes: 1 cordoned, 1 not ready, 1 node affinity, "
        "1 for other reasons"
    )


def test_nodes_left_out_are_mentioned_beside_the_largest() -> None:
    made = gang("a").of(1, gpu=4)
    assert nowhere(node("n1", gpu=2), node("n2", gpu=8).cordoned(), made) == (
        f"{FITS_NOWHERE}ml/a-0: asks 4 nvidia.com/gpu; the largest node has 2 (n1) "
        "(1 node left out: 1 cordoned)"
    )


def test_a_member_of_the_role_that_lacks_a_node_is_named() -> None:
    made = gang("a").role("worker", 1, 2, cpu=9).role("driver", 1, 2, gpu=9).needing(2)
    made = made.of(1, role="worker", cpu=1)
    assert f"{FITS_NOWHERE}ml/a-2" in nowhere(node("n1", cpu=4, gpu=1), made)


def test_a_gang_that_can_do_without_its_largest_member_is_not_told_of_it() -> None:
    made = gang("a").of(1, cpu=99).of(2, cpu=3).needing(2)
    assert no_room("a", node("n1", cpu=5), made) == (
        "2 members need 3 cpu each; even the empty cluster has room for only 1; short 1"
    )


def test_members_beyond_what_their_role_may_have_are_told_so() -> None:
    full = gang("a").role("worker", 1, 3, cpu=1).at_most(2).needing(1).bound_on("n1", "n1")
    assert waits(full) == "role worker has its maxMember; 1 more waits until a member has ended"
    roles = gang("a").role("x", 1, 3).at_most(1).role("y", 1, 2).at_most(1).needing(1)
    both = roles.bound_on("n1").only("a-3", node="n1")
    assert waits(both) == "roles x, y have their maxMember; 3 more wait until a member has ended"
    few = gang("a").role("x", 1, 3).at_most(2).role("y", 2, 1).needing(4)
    assert waits(few) == "role y: 1 of 2 exist; 1 more is beyond the maxMember of their role"


def test_a_role_that_may_have_no_more_does_not_make_up_for_another() -> None:
    roles = gang("a").role("x", 1, 3, cpu=1).at_most(1).role("y", 1, 3, gpu=1).needing(3)
    assert no_room("a", node("n1", cpu=9, gpu=1), node("n2", gpu=2).using(gpu=2), roles) == (
        "role y: 2 members need 1 nvidia.com/gpu each; room for 1 on 1 node; short 1"
    )


def test_the_younger_of_a_role_may_fit_where_the_older_fits_nowhere() -> None:
    mixed = gang("a").role("w", 1, 1, cpu=99).of(1, role="w", cpu=3).at_most(1).needing(1)
    assert no_room("a", node("n1", cpu=4).using(cpu=2), mixed).endswith("short 1")
    both = mixed.role("x", 1, 1, cpu=1).needing(2)
    assert no_room("a", node("n1", cpu=4).using(cpu=2), both)
    wide = gang("a").role("x", 0, 3, cpu=1).at_most(1).role("y", 0, 2, cpu=99).needing(3)
    assert f"{FITS_NOWHERE}ml/a-3" in nowhere(node("n1", cpu=4), wide)


def test_a_template_that_cannot_be_read_is_said() -> None:
    unread = Role("worker", 2, unreadable=("a malformed spec.affinity.podAffinity",))
    made = gang("a").role("driver", 1, cpu=1).needing(3)
    assert waits(replace(made, roles=(*made.roles, unread))) == (
        "role worker: 0 of 2 exist; no room is held for absent members of role worker, since its "
        "template has a malformed spec.affinity.podAffinity"
    )


def test_a_gang_of_a_class_that_does_not_exist_is_told_so_beside_why_it_waits() -> None:
    made = gang("a").of(2, cpu=3).priority(4).of_class("hihg", None)
    assert no_room("a", node("n1", cpu=4), made) == (
        "2 members need 3 cpu each; even the empty cluster has room for only 1; short 1; "
        "PriorityClass hihg does not exist, so its pods' highest priority, 4, counts"
    )
    known = gang("a").of(2).needing(3).of_class("high", 9)
    assert waits(known) == "2 of 3 members exist"


WEB, HERE = HostPort(8080), HostPort(8080, ip="10.0.0.1")


def test_a_host_port_that_is_taken_is_named() -> None:
    nodes = [node("n1", cpu=8).listening(WEB), node("n2", cpu=8).listening(HERE), node("n3", cpu=8)]
    made = gang("a").of(2, cpu=1).listening(WEB)
    assert no_room("a", *nodes, made) == (
        "2 members need 1 cpu, host port 8080/TCP each; room for 1 on 1 node"
        "; host port 8080/TCP is taken on 2 nodes; short 1"
    )
    at_one = gang("a").of(3, cpu=1).listening(HERE)
    assert no_room("a", *nodes, node("n4", cpu=8), at_one) == (
        "3 members need 1 cpu, host port 10.0.0.1:8080/TCP each; room for 2 on 2 nodes"
        "; host port 10.0.0.1:8080/TCP is taken on 2 nodes; short 1"
    )


def test_more_members_with_a_host_port_than_nodes_are_too_many() -> None:
    made = gang("a").of(3, cpu=1).listening(WEB)
    assert no_room("a", node("n1", cpu=8), node("n2", cpu=8), made) == (
        "3 members need 1 cpu, host port 8080/TCP each; even the empty cluster has room for only 2"
        "; short 1"
    )


def test_of_many_host_ports_that_are_taken_a_few_are_named() -> None:
    many = [HostPort(80 + n) for n in range(5)]
    said = no_room("a", node("n1", cpu=8).listening(*many), single("a", cpu=1).listening(*many))
    assert "host port 82/TCP is taken on 1 node; 2 more host ports are taken; short 1" in said


def test_a_lost_members_host_port_that_is_taken_is_named() -> None:
    lost = gang("a").of(2, cpu=1).listening(WEB).bound_on("n1")
    assert no_room("a", node("n1", cpu=8).listening(WEB), lost) == (
        "1 member to replace lost ones needs 1 cpu, host port 8080/TCP; room for none"
        "; host port 8080/TCP is taken on 1 node"
    )
