"""Some gangs of a round as objects: made, completed, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...harness.controlplane.api import collection
from ..load.gangs import SCHEDULERS, Form, Load, Member
from .changes import completion
from .scenarios import FEW, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..load.gangs import Manifest
    from .contenders import Contender
    from .sizes import Sizes
    from .stage import Stage

_LABELS = {"app": "bench"}


class Play:
    """The gangs of one scheduler in one round."""

    def __init__(
        self, stage: Stage, contender: Contender, sizes: Sizes, priority_class: str = ""
    ) -> None:
        self._stage = stage
        self._form = contender.form
        self._sizes = sizes
        self._all = sizes.all
        self._priority_class = priority_class
        self._is_made = False

    def make(self) -> None:
        """Create gang by gang, each group right before its pods, as users do."""
        self._is_made = True
        made = [manifest for name, _ in self._sizes.in_turn() for manifest in self.manifests(name)]
        self._stage.create(mixed(made, self._others()))

    def members(self, name: str) -> Sequence[str]:
        """The names of a gang's pods."""
        return [f"{name}-{i}" for i in range(self._all[name])]

    def group(self, name: str) -> Manifest | None:
        """The gang's group; None where the scheduler reads none."""
        return self._load(name).group(name, self._all[name])

    def manifests(self, name: str) -> Iterator[Manifest]:
        """The gang's group, if any, and its pods."""
        if (group := self.group(name)) is not None:
            yield group
        yield from self._load(name).pods(name, self._all[name])

    def complete(self) -> None:
        """End all pods without an error; they stay."""
        self._stage.write(completion(pod) for name in self._all for pod in self.members(name))

    def remove(self) -> None:
        """Delete what was made."""
        if self._is_made:
            sizes = self._all
            pods = [pod for name in sizes for pod in self.members(name)]
            groups = [name for name, n in sizes.items() if n > 1]
            self._stage.remove(groups, pods, self._form)
            self._is_made = False

    def group_uids(self) -> Mapping[str, str]:
        """The gangs by their PodGroups' uids: some objects are named by those."""
        group = Load(self._form, NAMESPACE, Member(), _LABELS).group("any", 1)
        if group is None:
            return {}
        listed = self._stage.plane.request("GET", collection(group))["items"]
        return {each["metadata"]["uid"]: each["metadata"]["name"] for each in listed}

    def _load(self, name: str) -> Load:
        # A pod alone needs no PodGroup.
        is_alone = self._all[name] == 1
        return Load(
            Form.PLAIN if is_alone else self._form,
            NAMESPACE,
            Member(node_selector=FEW if name in self._sizes.never else {}),
            _LABELS,
            SCHEDULERS[self._form],
            priority_class=self._priority_class,
        )

    def _others(self) -> list[Manifest]:
        """The pods that only wait, each gang's group before them."""
        load = Load(Form.TUTTI, NAMESPACE, Member(), _LABELS)
        made = (
            one
            for name, n in self._sizes.waiting.items()
            for one in (load.group(name, n + 1), *load.pods(name, n))
        )
        return [one for one in made if one is not None]


def mixed(some: Sequence[Manifest], others: Sequence[Manifest]) -> Iterator[Manifest]:
    """All of both, evenly mixed, each in its order."""
    share = len(others) / max(1, len(some))
    for i, one in enumerate(some):
        yield one
        yield from others[round(i * share) : round((i + 1) * share)]
