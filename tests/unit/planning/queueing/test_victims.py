"""The victims that cost least, with numbers in the place of rooms."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.model.cluster import Member
from tutti.model.keys import GangKey, PodKey, Uid
from tutti.model.resources import Resources
from tutti.model.shapes import Shape
from tutti.planning.queueing import victims
from tutti.planning.queueing.victims import (
    FREE,
    Candidate,
    Cost,
    Domain,
    Missing,
    Together,
    cheapest,
)

SHAPE = Shape(Resources.of({"cpu": 1}))


def member(name: str) -> Member:
    return Member(PodKey("ml", name), Uid(name), "1", SHAPE, 0.0)


def whole(name: str, members: int, work: int) -> Candidate:
    pods = tuple(member(f"{name}-{i}") for i in range(members))
    return Candidate(GangKey("ml", name), pods, Cost(Fraction(work), members, 1))


def extra(name: str, pod: str, work: int) -> Candidate:
    key = GangKey("ml", name)
    return Candidate(key, (member(pod),), Cost(Fraction(work), 1, 0), is_whole=False)


def freed(some: Sequence[Candidate]) -> int:
    return len({m.uid for one in some for m in one.members})


def enough(wanted: int) -> Callable[[Sequence[Candidate]], int | None]:
    """Whether so many members suffice; the answer is how many end."""
    return lambda some: freed(some) if freed(some) >= wanted else None


def names(some: Sequence[Candidate]) -> list[str]:
    return [one.name[1] or one.gang.name for one in some]


def test_nobody_ends_where_there_is_room_already() -> None:
    found = cheapest([whole("a", 1, 1)], enough(0))
    assert found is not None
    assert (found.candidates, found.cost, found.bound) == ((), FREE, FREE)


def test_nobody_ends_where_not_even_all_suffice() -> None:
    assert cheapest([whole("a", 2, 1)], enough(3)) is None
    assert cheapest([], enough(1)) is None


def test_two_cheap_gangs_end_rather_than_a_dear_one() -> None:
    gangs = [whole("a", 4, 9), whole("b", 2, 3), whole("c", 2, 4)]
    found = cheapest(gangs, enough(4))
    assert found is not None
    assert names(found.candidates) == ["b", "c"]
    assert found.bound == found.cost == Cost(Fraction(7), 4, 2)


def test_of_equal_work_fewer_members_end_then_fewer_gangs_then_the_first_name() -> None:
    found = cheapest([whole("a", 3, 4), whole("b", 2, 4)], enough(2))
    assert found is not None
    assert names(found.candidates) == ["b"]
    found = cheapest([whole("a", 1, 2), whole("b", 1, 2), whole("c", 2, 4)], enough(2))
    assert found is not None
    assert names(found.candidates) == ["c"]
    found = cheapest([whole("b", 1, 2), whole("a", 1, 2)], enough(1))
    assert found is not None
    assert names(found.candidates) == ["a"]


def test_an_extra_ends_rather_than_its_gang_and_never_beside_it() -> None:
    own = Candidate(GangKey("ml", "a"), (member("a-0"), member("x0")), Cost(Fraction(2), 2, 1))
    found = cheapest([own, extra("a", "x0", 1)], enough(1))
    assert found is not None
    assert names(found.candidates) == ["x0"]
    for most_sets in (100, 0):
        found = cheapest([own, extra("a", "x0", 1)], enough(2), most_sets=most_sets)
        assert found is not None
        assert names(found.candidates) == ["a"]


def test_sets_with_a_gang_beside_its_extras_are_not_tried() -> None:
    own = Candidate(GangKey("ml", "a"), (member("a-0"), member("x0")), Cost(Fraction(2), 2, 1))
    tried = list[list[str]]()

    def suffice(some: Sequence[Candidate]) -> int | None:
        tried.append(names(some))
        return enough(4)(some)

    found = cheapest([own, extra("a", "x0", 1), whole("c", 4, 9)], suffice)
    assert found is not None
    assert names(found.candidates) == ["c"]
    assert tried == [["a", "c"], [], ["x0"], ["a"], ["c"]]


def test_beyond_so_many_sets_the_answer_has_a_bound_and_spares_whom_it_can() -> None:
    gangs = [whole("a", 4, 9), whole("b", 2, 3), whole("c", 2, 4), whole("d", 1, 1)]
    found = cheapest(gangs, enough(5), most_sets=4)
    assert found is not None
    assert names(found.candidates) == ["d", "b", "c"]
    assert found.bound == Cost(Fraction(4), 2, 1)
    assert found.answer == 5


def test_nobody_ends_by_a_search_that_contradicts_itself() -> None:
    answers = iter([1, None, None, None, None])
    gangs = [whole("a", 1, 1), whole("b", 1, 1)]
    assert cheapest(gangs, lambda _: next(answers)) is None


def at_most(limit: int, *named: str) -> Together:
    """Of these candidates, so many may end together."""

    def together(some: Sequence[Candidate]) -> Sequence[Candidate]:
        left, allowed = limit, list[Candidate]()
        for one in some:
            is_named = one.gang.name in named
            if not is_named or left:
                allowed.append(one)
                left -= is_named
        return allowed

    return together


def holds(*wanted: str) -> Callable[[Sequence[Candidate]], str | None]:
    """Whether all of these end."""
    return lambda some: "yes" if {*wanted} <= {*names(some)} else None


def test_the_cheapest_do_not_use_up_what_others_need_to_end() -> None:
    gangs = [whole("a", 1, 1), whole("b", 1, 2), whole("c", 1, 3)]
    for most_sets in (1_000, 1, 0):
        found = cheapest(gangs, holds("c"), (), most_sets, together=at_most(1, "a", "b", "c"))
        assert found is not None
        assert (names(found.candidates), found.answer) == (["c"], "yes")
    assert cheapest(gangs, holds("a", "c"), (), 1_000, together=at_most(1, "a", "c")) is None
    assert cheapest(gangs, holds("a", "c"), (), 0, together=at_most(1, "a", "c")) is None


def test_a_dear_victim_ends_if_cheap_ones_that_make_room_may_not_end_together() -> None:
    gangs = [whole("a", 1, 1), whole("b", 1, 2), whole("c", 1, 3)]

    def suffices(some: Sequence[Candidate]) -> str | None:
        return holds("c")(some) or holds("a", "b")(some)

    found = cheapest(gangs, suffices, (), 0, together=at_most(1, "a", "b", "c"))
    assert found is not None
    assert names(found.candidates) == ["c"]


def test_where_too_many_sets_may_not_end_the_cheapest_that_may_are_tried_first() -> None:
    gangs = [whole(f"g{i:02}", 1, 1 + i) for i in range(40)]
    few = at_most(3, *(gang.gang.name for gang in gangs))
    for wanted in (3, 2):
        found = cheapest(gangs, enough(wanted), [missing(wanted, gangs)], 5, together=few)
        assert found is not None
        assert sorted(names(found.candidates)) == ["g00", "g01", "g02"][:wanted]
        assert found.bound == found.cost
    late = cheapest(gangs, holds("g07", "g39"), [missing(2, gangs)], 5, together=few)
    assert late is not None
    assert names(late.candidates) == ["g07", "g39"]
    assert late.bound < late.cost
    none = cheapest(gangs, enough(4), [missing(4, gangs)], 5, together=few)
    assert none is None


@pytest.mark.parametrize("others", [[], [whole("z", 1, 0)]], ids=["cheapest", "those that help"])
def test_where_what_suffices_may_not_end_others_that_may_are_left_to_choose_from(
    others: list[Candidate],
) -> None:
    """Of ``a``, ``b`` and ``z`` one may end; ``d`` is dear, and does what ``b`` does."""
    gangs = [whole("a", 1, 1), whole("b", 1, 2), whole("d", 1, 31), *others]

    def suffices(some: Sequence[Candidate]) -> str | None:
        return "yes" if "a" in names(some) and {"b", "d"} & {*names(some)} else None

    found = cheapest(gangs, suffices, (), 0, together=at_most(1, "a", "b", "z"))
    assert found is not None
    assert sorted(names(found.candidates)) == ["a", "d"]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5), st.booleans()), max_size=6),
    st.integers(0, 12),
    st.integers(0, 3),
)
def test_of_sets_that_may_end_together_the_cheapest_is_found(
    sizes: list[tuple[int, int, bool]], wanted: int, limit: int
) -> None:
    gangs = [whole(f"g{i}", members, work) for i, (members, work, _) in enumerate(sizes)]
    together = at_most(limit, *(f"g{i}" for i, (*_, is_named) in enumerate(sizes) if is_named))
    found = cheapest(gangs, enough(wanted), together=together)
    sets = [some for n in range(len(gangs) + 1) for some in combinations(gangs, n)]
    costs = [
        sum(one.cost.work for one in some)
        for some in sets
        if freed(some) >= wanted and len(together(some)) == len(some)
    ]
    assert (None if found is None else found.cost.work) == min(costs, default=None)


GANGS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), max_size=6)


@given(GANGS, st.integers(0, 12), st.sampled_from([0, 3, 1_000]))
def test_no_victim_can_be_spared_and_a_proof_holds(
    sizes: list[tuple[int, int]], wanted: int, most_sets: int
) -> None:
    gangs = [whole(f"g{i}", members, work) for i, (members, work) in enumerate(sizes)]
    found = cheapest(gangs, enough(wanted), most_sets=most_sets)
    sets = [some for n in range(len(gangs) + 1) for some in combinations(gangs, n)]
    costs = [
        (
            sum(one.cost.work for one in some),
            sum(one.cost.members for one in some),
            len(some),
        )
        for some in sets
        if freed(some) >= wanted
    ]
    if not costs:
        assert found is None
        return
    assert found is not None
    assert found.bound <= min(costs) <= found.cost
    assert most_sets < 1_000 or found.cost == min(costs)
    for candidate in found.candidates:
        assert freed([other for other in found.candidates if other is not candidate]) < wanted


def missing(wanted: int, candidates: Sequence[Candidate], scale: int = 1) -> Domain:
    """A domain in which these candidates have all of their pods."""
    freed = {one.name: len(one.members) * scale for one in candidates}
    return Domain(freed.keys(), (Missing(wanted * scale, freed),))


def test_where_too_many_sets_cost_less_counting_proves_the_cheapest_set() -> None:
    gangs = [whole(f"g{i:02}", 1 + i % 3, 5 + i % 7) for i in range(40)]
    plain = cheapest(gangs, enough(30), most_sets=50)
    found = cheapest(gangs, enough(30), [missing(30, gangs)], most_sets=50)
    assert plain is not None
    assert found is not None
    assert freed(found.candidates) >= 30
    assert found.cost == found.bound <= plain.cost
    assert plain.bound < found.bound


def test_what_counting_finds_is_a_bound_where_nodes_refuse_it() -> None:
    """Nothing suffices without the dear gang."""
    gangs = [whole(f"g{i:02}", 1, 2) for i in range(20)] + [whole("dear", 1, 50)]

    def suffice(some: Sequence[Candidate]) -> int | None:
        return enough(10)(some) if "dear" in names(some) else None

    found = cheapest(gangs, suffice, [missing(10, gangs)], most_sets=50)
    assert found is not None
    assert (found.cost.work, found.bound.work) == (Fraction(68), Fraction(20))


def test_counting_tries_no_gang_together_with_its_extras() -> None:
    """The extras are counted with the gang and without it, so such a set proves nothing."""
    parts = [whole("a", 3, 3), extra("a", "a-0", 0), extra("a", "a-1", 0)]
    others = [whole(f"g{i:02}", 1, 9) for i in range(20)]
    candidates = [*parts, *others]
    found = cheapest(candidates, enough(5), [missing(5, candidates)], most_sets=10)
    assert found is not None
    assert names(found.candidates) == ["a", "g00", "g01"]
    assert found.bound < found.cost


def test_amounts_that_nobody_frees_prove_nothing() -> None:
    gangs = [whole(f"g{i:02}", 1, 2) for i in range(20)]
    idle = Missing(5, {one.name: 0 for one in gangs})
    both = Domain(idle.freed.keys(), (idle, *missing(90, gangs).missing))
    found = cheapest(gangs, enough(10), [both], most_sets=50)
    assert found is not None
    assert found.bound < found.cost


@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=7),
    wanted=st.integers(1, 12),
    scale=st.sampled_from((1, 7, 1_000)),
)
def test_counting_finds_no_more_than_the_cheapest_set_costs(
    sizes: list[tuple[int, int]], wanted: int, scale: int
) -> None:
    gangs = [whole(f"g{i}", members, work) for i, (members, work) in enumerate(sizes)]
    found = cheapest(gangs, enough(wanted), [missing(wanted, gangs, scale)], most_sets=1)
    sets = [some for n in range(len(gangs) + 1) for some in combinations(gangs, n)]
    costs = [
        (sum(one.cost.work for one in some), freed(some), len(some))
        for some in sets
        if freed(some) >= wanted
    ]
    if found is None:
        assert not costs
        return
    assert found.bound <= min(costs) <= found.cost
    assert wanted * scale > victims.MOST_AMOUNTS or found.cost == found.bound


PODS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 4), min_size=1)
Pods = Mapping[str, int]  # of a gang, by domain


def cases(pods: Sequence[tuple[Pods, int]], extra_pods: int) -> list[tuple[Candidate, Pods]]:
    """A candidate for each gang; the first gang has so many extras in its first domain, too."""
    gangs = [
        (whole(f"g{i}", sum(by_domain.values()), work), by_domain)
        for i, (by_domain, work) in enumerate(pods)
    ]
    (domain, first), *_ = pods[0][0].items()
    extras = range(min(extra_pods, first))
    return gangs + [(extra("g0", f"g0-{i}", 1), {domain: 1}) for i in extras]


def domains_of(candidates: Sequence[tuple[Candidate, Pods]], wanted: int) -> Iterator[Domain]:
    for domain in "abc":
        freed = {one.name: pods[domain] for one, pods in candidates if domain in pods}
        yield Domain(freed.keys(), (Missing(wanted, freed),))


@given(
    pods=st.lists(st.tuples(PODS, st.integers(0, 9)), min_size=1, max_size=6),
    extra_pods=st.integers(0, 2),
    wanted=st.integers(1, 12),
    refused=st.booleans(),
    limits=st.sampled_from(((1, 1), (2, 1), (3, 2), (32, 8))),
)
def test_the_domain_with_the_cheapest_victims_is_searched_first(
    pods: list[tuple[Pods, int]],
    extra_pods: int,
    wanted: int,
    refused: bool,  # noqa: FBT001 - a drawn value
    limits: tuple[int, int],
) -> None:
    """Against all sets; if nodes refuse some that counting accepts, the bound still holds."""
    candidates = cases(pods, extra_pods)
    own = {candidate.name: by_domain for candidate, by_domain in candidates}
    need = wanted + refused

    def suffice(some: Sequence[Candidate]) -> int | None:
        sums = [sum(own[one.name].get(domain, 0) for one in some) for domain in "abc"]
        return freed(some) if max(sums) >= need else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(victims, "MOST_COUNTED", limits[0])
        patch.setattr(victims, "MOST_DOMAINS", limits[1])
        found = cheapest(
            [one for one, _ in candidates], suffice, domains_of(candidates, wanted), most_sets=1
        )
    sets = [
        some
        for n in range(len(candidates) + 1)
        for some in combinations([one for one, _ in candidates], n)
        if not victims._has_parts(some)
    ]
    costs = [victims._total(some) for some in sets if suffice(some)]
    if not costs:
        assert found is None
        return
    assert found is not None
    assert found.bound <= min(costs) <= found.cost
    is_exact = not (refused or extra_pods) and limits[0] > 2
    assert not is_exact or found.cost == found.bound == min(costs)
    for spared in found.candidates:
        assert suffice([one for one in found.candidates if one is not spared]) is None


def test_no_victim_is_kept_because_it_would_be_needed_in_another_domain() -> None:
    """Counting takes u and v in b, which do not suffice, and x and y in a: x alone suffices in b.

    The search in b ends with w1 and w2, which cost more.
    """
    gangs: list[tuple[Candidate, Pods]] = [
        (whole("u", 2, 1), {"b": 2}),
        (whole("v", 2, 1), {"b": 2}),
        (whole("x", 3, 90), {"a": 1, "b": 2}),
        (whole("y", 1, 1), {"a": 1}),
        (whole("w1", 2, 80), {"b": 2}),
        (whole("w2", 2, 80), {"b": 2}),
    ]

    def suffice(some: Sequence[Candidate]) -> int | None:
        ended = {*names(some)}
        return 1 if {"x"} <= ended or {"w1", "w2"} <= ended else None

    candidates = [candidate for candidate, _ in gangs]
    found = cheapest(candidates, suffice, domains_of(gangs, 2), most_sets=3)
    assert found is not None
    assert names(found.candidates) == ["x"]


def test_victims_are_searched_in_other_domains_if_nodes_of_the_first_refuse_them() -> None:
    """In a, all must end; in b, two of the dearer gangs suffice. c has too few pods."""
    gangs = [*((whole(f"a{i}", 1, 2), {"a": 1}) for i in range(20))]
    gangs += [*((whole(f"b{i}", 2, 9), {"b": 2}) for i in range(5))]
    gangs += [(whole("c", 3, 1), {"c": 3})]
    own = {candidate.name: by_domain for candidate, by_domain in gangs}

    def suffice(some: Sequence[Candidate]) -> int | None:
        in_a, in_b = (sum(own[one.name].get(domain, 0) for one in some) for domain in "ab")
        return 1 if in_a == 20 or in_b >= 4 else None

    candidates = [candidate for candidate, _ in gangs]
    found = cheapest(candidates, suffice, domains_of(gangs, 4), most_sets=5)
    assert found is not None
    assert {*names(found.candidates)} == {"b0", "b1"}
    assert found.bound.work == 8  # four of the gangs in a, by counting
    anywhere = cheapest(candidates, suffice, most_sets=5)
    assert anywhere is not None
    assert anywhere.cost.work == 40
