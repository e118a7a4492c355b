"""The rules between pods in the oracle's program, word by word as they are defined.

Every kind of pod on every node has a flag that says whether any is there; if so, each rule of it
holds for one of them, which is itself left out of what it counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ortools.sat.python import cp_model

    from .case import Balance, Bond, Case, Kind


class Placed(NamedTuple):
    """How many pods of a kind are on a node."""

    kind: Kind
    node: int
    number: cp_model.IntVar


def add_rules(model: cp_model.CpModel, case: Case, placed: Sequence[Placed]) -> None:
    """Let the rules of every kind hold wherever it is."""
    if case.companies:
        rules = _Rules(model, case, placed)
        for each in placed:
            rules.add(each)
        for kind, node in case.promised:
            rules.add_promised(kind, node)


class _Rules:
    def __init__(self, model: cp_model.CpModel, case: Case, placed: Sequence[Placed]) -> None:
        self._model, self._case = model, case
        newcomers: list[list[Any]] = [[0 for _ in company.there] for company in case.companies]
        for each in placed:
            for company in each.kind.joins:
                place = case.companies[company].place[each.node]
                if place >= 0:
                    newcomers[company][place] += each.number
        self._newcomers = newcomers

    def add(self, one: Placed) -> None:
        """Let the rules of the kind hold if it is on the node."""
        model = self._model
        is_here = model.new_bool_var("")
        model.add(one.number >= 1).only_enforce_if(is_here)
        model.add(one.number == 0).only_enforce_if(is_here.negated())
        self._add(one.kind, one.node, is_here)

    def add_promised(self, kind: Kind, node: int) -> None:
        """Let the rules of one hold who is there already, and counted among those."""
        self._add(kind, node, self._model.new_constant(1))

    def _add(self, kind: Kind, node: int, is_here: cp_model.IntVar) -> None:
        for company in kind.shuns:
            place = self._place(company, node)
            if place >= 0:
                others = self._newcomers[company][place] - self._itself(kind, company)
                self._model.add(others == 0).only_enforce_if(is_here)
        for bond in kind.bonds:
            self._add_bond(kind, node, bond, is_here)
        for balance in kind.balances:
            self._add_balance(kind, node, balance, is_here)

    def _add_bond(self, kind: Kind, node: int, bond: Bond, is_here: cp_model.IntVar) -> None:
        model = self._model
        if any(self._place(company, node) < 0 for company in bond.companies):
            model.add(is_here == 0)
            return
        has_others, is_alone = model.new_bool_var(""), model.new_bool_var("")
        model.add_bool_or([is_here.negated(), has_others, is_alone])
        for company in bond.companies:
            itself, place = self._itself(kind, company), self._place(company, node)
            all_of_them = sum(self._all(company))
            model.add(self._all_in(company, place) - itself >= 1).only_enforce_if(has_others)
            model.add(all_of_them - itself == 0).only_enforce_if(is_alone)
        if not bond.or_alone:
            model.add(is_alone == 0)

    def _add_balance(
        self, kind: Kind, node: int, balance: Balance, is_here: cp_model.IntVar
    ) -> None:
        company, model = balance.company, self._model
        itself, own = self._itself(kind, company), self._place(company, node)
        if own < 0:
            model.add(is_here == 0)
            return
        others = self._all_in(company, own) - itself
        if balance.against_nobody:
            model.add(others + itself <= balance.most).only_enforce_if(is_here)
            return
        for place, there in enumerate(self._all(company)):
            rest = there - itself if place == own else there
            model.add(others + itself - rest <= balance.most).only_enforce_if(is_here)

    def _place(self, company: int, node: int) -> int:
        return self._case.companies[company].place[node]

    def _itself(self, kind: Kind, company: int) -> int:
        return int(company in kind.joins)

    def _all_in(self, company: int, place: int) -> Any:
        return self._newcomers[company][place] + self._case.companies[company].there[place]

    def _all(self, company: int) -> Iterator[Any]:
        for place in range(len(self._case.companies[company].there)):
            yield self._all_in(company, place)
