"""The order in which claims are counted."""

from tutti.filters.devices.bundles import Bundle
from tutti.model.devices.claims import ClaimName, DeviceClaim, Selection
from tutti.model.keys import Uid
from tutti.state.devices import turns
from tutti.state.devices.turns import Ask, Wants


def ask(name: str, *selections: str, created: float = 0.0, is_gated: bool = False) -> Ask:
    """What a claim asks for; ``name`` has its namespace."""
    space, own = name.split("/")
    claim = DeviceClaim(ClaimName(space, own), Uid(name))
    return Ask(claim, created, is_gated, Wants(tuple(map(Selection, selections))))


def names(asks: list[Ask]) -> list[str]:
    return [str(of.claim.key) for of in turns.in_turns(asks)]


def test_namespaces_take_turns_whatever_the_age_of_their_claims() -> None:
    greedy = [ask(f"greedy/{i}", f"s{i}", created=float(i)) for i in range(3)]
    modest = [ask(f"modest/{i}", f"t{i}", created=100.0 + i) for i in range(2)]
    expected = ["greedy/0", "modest/0", "greedy/1", "modest/1", "greedy/2"]
    assert names([*modest, *greedy]) == names([*greedy[::-1], *modest]) == expected


def test_a_claim_with_many_selections_waits_for_as_many_turns() -> None:
    greedy = ask("greedy/all", *(f"s{i}" for i in range(256)))
    modest = [ask(f"modest/{i}", f"t{i}", created=9.0) for i in range(3)]
    assert names([greedy, *modest])[-1] == "greedy/all"


def test_what_a_namespace_has_asked_for_takes_no_further_turn() -> None:
    asks = [ask("a/0", "s"), ask("a/1", "s", "t", created=1.0), ask("b/0", "u", created=2.0)]
    assert names(asks) == ["a/0", "b/0", "a/1"]
    assert names([*asks, ask("a/2", "s", created=3.0)]) == ["a/0", "b/0", "a/1", "a/2"]


def test_expressions_take_turns_though_tutti_cannot_evaluate_them() -> None:
    greedy = [ask(f"greedy/{i}", created=float(i)) for i in range(3)]
    greedy = [of._replace(wants=Wants(texts=frozenset({str(i)}))) for i, of in enumerate(greedy)]
    modest = ask("modest/0", "t", created=9.0)
    assert names([*greedy, modest]) == ["greedy/0", "modest/0", "greedy/1", "greedy/2"]


def test_bundles_and_claims_for_admin_access_take_turns_like_selections() -> None:
    device = Selection("s")
    tied = [Wants((device,), bundles=(Bundle(((device, i + 2),)),)) for i in range(3)]
    pairs = [ask(f"a/{i}")._replace(wants=wants) for i, wants in enumerate(tied)]
    seen = [Wants(administered=((device, i + 1),)) for i in range(2)]
    watch = [ask(f"b/{i}")._replace(wants=wants) for i, wants in enumerate(seen)]
    others = [ask(f"c/{i}", f"t{i}", created=9.0) for i in range(3)]
    expected = ["b/0", "c/0", "a/0", "b/1", "c/1", "a/1", "c/2", "a/2"]
    assert names([*pairs, *watch, *others]) == expected


def test_claims_that_are_gated_come_last_and_take_no_turn() -> None:
    gated = [ask(f"a/gated{i}", f"g{i}", is_gated=True) for i in range(2)]
    assert names([*gated, ask("a/0", "s", created=9.0)]) == ["a/0", "a/gated0", "a/gated1"]


def test_of_claims_of_one_age_the_name_decides() -> None:
    assert names([ask("b/0", "s"), ask("a/1", "t"), ask("a/0", "u")]) == ["a/0", "b/0", "a/1"]


def test_only_asks_that_do_not_fit_beside_earlier_ones_are_left_out() -> None:
    asks = [ask("a/0", "s"), ask("b/0", "t", "u", "v"), ask("c/0", "s", "w"), ask("d/0", "x")]
    kept = turns.within(asks, lambda wants: wants.selections, 2)
    assert [str(of.claim.key) for of in kept] == ["a/0", "c/0"]
