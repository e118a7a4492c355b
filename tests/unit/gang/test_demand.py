"""What a gang asks for, from what is observed of its members."""

from dataclasses import replace

from tutti.gang import demand
from tutti.gang.demand import MemberCounts, PlacementRequest
from tutti.model.cluster import Member, Phase, Role
from tutti.model.inter_pod import CLUSTER, InterPodRules
from tutti.model.volumes import one_of_those_with

from ...harness.builders import GangBuilder, gang, peers, term

AFFINITY = ("spec.affinity.podAffinity",)


def names(members: tuple[Member, ...]) -> list[str]:
    return [member.key.name for member in members]


def chosen(wants: tuple[PlacementRequest, ...]) -> list[str]:
    """Whom single-member demands are about."""
    assert all(want.need == len(want.members) == 1 for want in wants)
    return [want.members[0].key.name for want in wants]


def census(of: GangBuilder) -> MemberCounts:
    return demand.count_members(of.made)


def test_members_are_sorted_by_what_they_mean() -> None:
    made = gang("a").of(8, cpu=1).bound_on("n1").needing(7)
    changes: dict[str, dict[str, object]] = {
        "a-1": {"gates": ("hold",)},
        "a-2": {"unsupported_fields": AFFINITY},
        "a-3": {"terminating": True},
        "a-4": {"phase": Phase.FAILED},
        "a-5": {"phase": Phase.SUCCEEDED},
        "a-7": {"volume_problems": ("claim x does not exist",), "unsupported_fields": AFFINITY},
    }
    for name, change in changes.items():
        made = made.only(name, **change)
    member_counts = census(made)
    assert names(member_counts.bound) == ["a-0", "a-5"]
    assert names(member_counts.ready) == ["a-6"]
    assert names(member_counts.gated) == ["a-1"]
    assert names(member_counts.unsupported) == ["a-2"]
    assert names(member_counts.without_volumes) == ["a-7"]


def test_a_gated_member_that_leaves_or_is_over_means_nothing() -> None:
    leaving = gang("a").of(1).each(gates=("hold",), terminating=True)
    over = gang("b").of(1).each(gates=("hold",), phase=Phase.FAILED)
    assert not census(leaving).gated
    assert not census(over).gated


def test_a_gang_without_roles_ignores_role_labels() -> None:
    assert names(census(gang("a").of(1, role="driver")).ready) == ["a-0"]


def test_in_a_gang_with_roles_pods_of_no_known_role_do_not_count() -> None:
    made = gang("a").role("worker", 1).of(1).of(1, role="other")
    member_counts = census(made)
    assert names(member_counts.ready) == ["a-0"]
    assert names(member_counts.roleless) == ["a-1", "a-2"]


def test_a_member_held_by_another_gangs_reservation_is_left_alone() -> None:
    made = gang("a").of(2).made
    assert names(demand.count_members(made, {made.members[0].uid}).ready) == ["a-1"]


def test_a_bound_member_counts_whoever_reserved_its_node() -> None:
    made = gang("a").of(1).bound_on("n1").made
    assert names(demand.count_members(made, {made.members[0].uid}).bound) == ["a-0"]


def test_a_gang_with_nothing_bound_asks_for_all_it_needs_at_once() -> None:
    made = gang("a").role("driver", 1).role("worker", 2, 3).needing(4)
    want = demand.start_request(census(made))
    assert want is not None
    assert want.need == 4
    assert want.minimums == (("driver", 1), ("worker", 2))
    assert names(want.members) == ["a-0", "a-1", "a-2", "a-3"]


def test_a_gang_with_too_few_members_asks_for_nothing() -> None:
    assert demand.start_request(census(gang("a").of(2).needing(3))) is None


def test_a_gang_with_too_few_of_one_role_asks_for_nothing() -> None:
    made = gang("a").role("driver", 1, 3).role("worker", 1, 0).needing(2)
    assert demand.start_request(census(made)) is None


def test_a_gang_that_is_being_deleted_asks_for_nothing() -> None:
    waiting = census(gang("a").of(2).but(terminating=True))
    started = census(gang("a").of(2).bound_on("n1").but(terminating=True))
    assert demand.start_request(waiting) is None
    assert demand.repair_requests(started, (), ()) == ()
    assert demand.growth_requests(started, ()) == ()


def test_a_gang_needs_one_member_at_least_and_all_that_its_roles_demand() -> None:
    assert demand.min_members(gang("a").needing(0).made) == 1
    roles = (Role("driver", 1), Role("worker", 3))
    assert demand.min_members(gang("a").needing(2).but(roles=roles).made) == 4


def test_each_lost_member_of_a_started_gang_is_a_repair() -> None:
    member_counts = census(gang("a").of(5).bound_on("n1", "n1").needing(4))
    assert demand.start_request(member_counts) is None
    assert chosen(demand.repair_requests(member_counts, (), ())) == ["a-2", "a-3"]
    assert chosen(demand.growth_requests(member_counts, ())) == ["a-2", "a-3", "a-4"]


def test_a_gang_that_has_not_started_has_no_repairs_and_no_extras() -> None:
    member_counts = census(gang("a").of(5).needing(4))
    assert demand.repair_requests(member_counts, (), ()) == ()
    assert demand.growth_requests(member_counts, ()) == ()


def test_short_roles_are_repaired_before_any_other_member() -> None:
    made = gang("a").role("driver", 1, 2).role("worker", 2, 2).needing(4).bound_on("n1")
    member_counts = census(made)
    assert member_counts.missing_by_role == {"worker": 2}
    assert member_counts.missing == 3
    assert chosen(demand.repair_requests(member_counts, (), ())) == ["a-2", "a-3", "a-1"]


def test_a_role_that_nobody_can_fill_is_not_made_up_for_by_another() -> None:
    made = gang("a").role("driver", 1, 3).role("worker", 1, 0).needing(2).bound_on("n1")
    assert demand.repair_requests(census(made), (), ()) == ()


def test_repairs_stop_once_enough_are_replaced() -> None:
    member_counts = census(gang("a").role("worker", 2, 4).bound_on("n1"))
    placed = {member_counts.ready[0].uid}
    assert member_counts.missing == 3  # minMember is 4 here, two more than the role's own minimum
    assert chosen(demand.repair_requests(member_counts, placed, ())) == ["a-2", "a-3"]


def test_a_shape_without_room_is_passed_over() -> None:
    member_counts = census(gang("a").of(1).of(2, cpu=1).of(1, cpu=2).needing(2).bound_on("n1"))
    refused = {(member_counts.gang.uid, "", member_counts.ready[0].shape)}
    assert chosen(demand.repair_requests(member_counts, (), ())) == ["a-1"]
    assert chosen(demand.repair_requests(member_counts, (), refused)) == ["a-3"]


def test_members_beyond_the_needed_join_a_gang_that_starts_now() -> None:
    member_counts = census(gang("a").of(3).needing(2))
    placed = {member.uid for member in member_counts.ready[:2]}
    assert chosen(demand.growth_requests(member_counts, placed)) == ["a-2"]


def test_a_gang_is_settled_when_none_waits_and_none_is_missing() -> None:
    whole = gang("a").of(2, cpu=1).bound_on("n1", "n1").needing(2)
    assert demand.is_settled(whole.made)
    assert not demand.is_settled(whole.only("a-1", node=None).made)
    assert not demand.is_settled(whole.only("a-1", node=None, gates=("hold",)).made)
    lost = whole.only("a-1", phase=Phase.FAILED)
    assert not demand.is_settled(lost.made)
    assert demand.is_settled(replace(lost.made, terminating=True))


def test_of_more_members_than_a_role_may_have_all_may_be_chosen() -> None:
    made = gang("a").role("worker", 1, 4).at_most(2).of(1, role="other")
    member_counts = census(made.needing(1))
    assert names(member_counts.ready) == ["a-0", "a-1", "a-2", "a-3"]
    assert not member_counts.surplus
    assert names(member_counts.roleless) == ["a-4"]
    want = demand.start_request(member_counts)
    assert want is not None
    assert (want.need, want.maximums) == (1, (("worker", 2),))


def test_of_a_gang_of_which_none_is_chosen_the_oldest_count() -> None:
    member_counts = demand.within_maximums(census(gang("a").role("worker", 1, 4).at_most(2)))
    assert names(member_counts.ready) == ["a-0", "a-1"]
    assert names(member_counts.surplus) == ["a-2", "a-3"]
    few = census(gang("a").role("worker", 1, 2).at_most(2))
    assert demand.within_maximums(few) is few
    want = demand.start_request(few)
    assert want is not None
    assert not want.maximums


def test_members_that_have_a_node_fill_their_role_and_those_that_have_ended_do_not() -> None:
    made = gang("a").role("driver", 1, 2).role("worker", 2, 4).at_most(3)
    bound = made.bound_on("n1", "n1", "n1", "n1")
    assert names(census(bound).ready) == ["a-4", "a-5"]
    assert names(demand.within_maximums(census(bound)).surplus) == ["a-5"]
    full = made.bound_on("n1", "n1", "n1", "n1", "n1")
    assert names(census(full).ready) == []
    assert names(census(full).surplus) == ["a-5"]
    over = bound.only("a-2", phase=Phase.SUCCEEDED)
    assert names(census(over).ready) == ["a-4", "a-5"]
    assert not demand.within_maximums(census(over)).surplus


def test_further_members_share_the_places_of_their_role() -> None:
    made = gang("a").role("worker", 1, 4).at_most(3)
    member_counts = census(made.bound_on("n1"))
    assert [want.maximums for want in demand.growth_requests(member_counts, ())] == [
        (("worker", 2),)
    ] * 3
    placed = {member_counts.ready[1].uid}
    left = demand.growth_requests(member_counts, placed)
    assert chosen(left) == ["a-1", "a-3"]
    assert [want.maximums for want in left] == [(("worker", 1),)] * 2
    both = {member.uid for member in member_counts.ready[1:]}
    assert demand.growth_requests(member_counts, both) == ()
    roomy = census(made.at_most(4).bound_on("n1"))
    assert [want.maximums for want in demand.growth_requests(roomy, ())] == [()] * 3


def test_members_beyond_their_maximum_make_no_gang_whole() -> None:
    made = gang("a").role("x", 1, 3).at_most(2).role("y", 0, 1).needing(4)
    assert demand.start_request(census(made)) is None
    assert demand.start_request(census(made.needing(3))) is not None


def test_those_who_replace_lost_members_fill_no_role_beyond_its_maximum() -> None:
    made = gang("a").role("x", 1, 3).at_most(2).role("y", 0, 2).needing(4).bound_on("n1")
    member_counts = census(made)
    assert chosen(demand.repair_requests(member_counts, (), ())) == ["a-1", "a-3", "a-4"]


def sharing(made: GangBuilder, *pods: str, of: str = "data") -> GangBuilder:
    """The gang, in which these pods may only start one at a time, because of a claim."""
    own, rule = one_of_those_with(of), term(CLUSTER, peers(app="any"))
    return made.where(
        lambda m: (
            replace(
                m,
                labels=tuple(sorted((*m.labels, (own, "")))),
                shape=replace(m.shape, rules=InterPodRules(anti_affinity=(rule,))),
            )
            if m.key.name in pods
            else m
        )
    )


def test_of_members_with_one_claim_for_one_pod_one_counts_for_a_start() -> None:
    made = sharing(gang("a").of(3), "a-0", "a-2")
    assert demand.start_request(census(made)) is None
    assert demand.too_few_claims(made.made, census(made).ready) == ("data", 2, "", 3)
    assert demand.start_request(census(made.needing(2))) is not None
    apart = sharing(sharing(gang("a").of(3), "a-0"), "a-2", of="other")
    assert demand.start_request(census(apart)) is not None
    assert demand.start_request(census(gang("a").of(3).apart("zone"))) is not None


def test_of_two_claims_for_one_pod_the_one_is_named_that_more_members_name() -> None:
    made = sharing(sharing(gang("a").of(6), "a-0", "a-1"), "a-2", "a-3", "a-4", of="more")
    assert demand.too_few_claims(made.made, census(made).ready) == ("more", 3, "", 6)


def test_members_of_a_role_with_one_claim_for_one_pod_count_once_for_its_minimum() -> None:
    made = gang("a").role("x", 2, 2).role("y", 1, 3).needing(3)
    assert demand.start_request(census(sharing(made, "a-2", "a-3", "a-4"))) is not None
    held = sharing(made, "a-0", "a-1")
    assert demand.too_few_claims(held.made, census(held).ready) == ("data", 2, "x", 2)
    assert demand.start_request(census(held)) is None


def test_a_gang_may_grow_when_more_wait_than_it_needs() -> None:
    assert demand.may_grow(census(gang("a").of(3).needing(2)))
    assert demand.may_grow(census(gang("a").of(3).bound_on("n1").needing(1)))
    assert not demand.may_grow(census(gang("a").of(3)))
    assert not demand.may_grow(census(gang("a").of(1).bound_on("n1")))
    assert not demand.may_grow(census(gang("a").of(3).needing(2).but(terminating=True)))
    assert not demand.may_grow(census(gang("a").of(2).bound_on("n1").but(terminating=True)))
    assert not demand.may_grow(census(gang("a").role("x", 1, 0).role("y", 1, 4).needing(2)))
    assert not demand.may_grow(census(gang("a").role("worker", 2, 4).at_most(2).needing(2)))
