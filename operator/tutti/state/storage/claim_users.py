"""The pods that name claims, also pods of other schedulers, and the claims that each pod names."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

from ...model.cluster import BoundBy, ForeignPod, Member
from ...model.keys import NodeName, Uid
from ...model.volumes import ClaimKey

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def drop(index: dict[K, set[V]], key: K, value: V) -> None:
    """Remove a value from an index, and its key if that was the last value."""
    values = index.get(key, set())
    values.discard(value)
    if not values:
        index.pop(key, None)


@dataclass(frozen=True, slots=True)
class ClaimUser:
    """A pod that names claims and is not over."""

    claims: tuple[ClaimKey, ...]
    node: NodeName | None
    bound_by: BoundBy | None  # None for foreign pods
    created: float = 0.0  # in seconds since the epoch; of foreign pods it is not read
    is_gated: bool = False  # other controllers hold it back by scheduling gates
    name: str = ""  # of foreign pods it is not read

    @property
    def yields(self) -> bool:
        """Whether its claims keep no claims of others from being modelled."""
        return self.is_gated or self.bound_by is not BoundBy.TUTTI

    @classmethod
    def of(cls, pod: Member | ForeignPod | None) -> Self | None:
        """The claim user of a pod; None if the pod names no claim or is over."""
        if pod is None or not pod.claims:
            return None
        bound_by: BoundBy | None = None
        created, is_gated, name = 0.0, False, ""
        if isinstance(pod, ForeignPod):
            space = pod.namespace
        elif pod.is_over:
            return None
        else:
            space, bound_by = pod.key.namespace, pod.bound_by
            created, is_gated, name = pod.created, pod.gated, pod.key.name
        claims = tuple(ClaimKey(space, name) for name in pod.claims)
        return cls(claims, pod.node, bound_by, created, is_gated, name)


class ClaimUsers:
    """The claim users, by pod and by claim."""

    def __init__(self) -> None:
        self._pods: dict[Uid, ClaimUser] = {}
        self._by_claim: dict[ClaimKey, set[Uid]] = {}
        self._with_node: dict[ClaimKey, set[Uid]] = {}
        self._of_kube_scheduler: dict[ClaimKey, set[Uid]] = {}
        self.has_been_ours = False  # whether a pod of our scheduler has ever named a claim

    def get(self, uid: Uid) -> ClaimUser | None:
        """The pod as it was last put; None if it is not here."""
        return self._pods.get(uid)

    def put(self, uid: Uid, new: ClaimUser | None) -> None:
        """Replace a pod by ``new``; None removes it."""
        old = self._pods.pop(uid, None)
        for key in old.claims if old is not None else ():
            drop(self._by_claim, key, uid)
            drop(self._with_node, key, uid)
            drop(self._of_kube_scheduler, key, uid)
        if new is not None:
            self._pods[uid] = new
            self.has_been_ours |= new.bound_by is not None
            for key in new.claims:
                self._by_claim.setdefault(key, set()).add(uid)
                if new.node is not None:
                    self._with_node.setdefault(key, set()).add(uid)
                if new.bound_by is BoundBy.KUBE_SCHEDULER:
                    self._of_kube_scheduler.setdefault(key, set()).add(uid)

    def uids(self, keys: Iterable[ClaimKey]) -> set[Uid]:
        """The pods that name one of these claims."""
        return set(self._naming(keys))

    def other_users(self, keys: Iterable[ClaimKey], than: Uid) -> Iterator[ClaimUser]:
        """The other pods that name one of these claims, each once."""
        passed_uids = {than}
        for uid in self._naming(keys):
            if uid not in passed_uids:
                passed_uids.add(uid)
                yield self._pods[uid]

    def with_node(self, key: ClaimKey, than: Uid) -> list[ClaimUser]:
        """The other pods that name this claim and have a node."""
        return [self._pods[uid] for uid in self._with_node.get(key, ()) if uid != than]

    def is_of_kube_scheduler(self, key: ClaimKey) -> bool:
        """Whether a pod that Tutti plans and kube-scheduler binds names this claim."""
        return key in self._of_kube_scheduler

    def few(self, keys: Iterable[ClaimKey], most: int) -> set[Uid] | None:
        """The pods that name one of these claims; None if more than ``most`` do."""
        uids: set[Uid] = set()
        for uid in self._naming(keys):
            uids.add(uid)
            if len(uids) > most:
                return None
        return uids

    def _naming(self, keys: Iterable[ClaimKey]) -> Iterator[Uid]:
        return (uid for key in keys for uid in self._by_claim.get(key, ()))

    def nodes(self, uids: Iterable[Uid]) -> set[NodeName]:
        """The nodes of these pods."""
        return {node for uid in uids if (node := self._pods[uid].node) is not None}

    def named_by_us(self, *bound_by: BoundBy) -> set[ClaimKey]:
        """The claims of pods that Tutti plans, of those that one of these schedulers binds."""
        return {
            key for user in self._pods.values() if user.bound_by in bound_by for key in user.claims
        }

    def ours(self, key: ClaimKey) -> list[ClaimUser]:
        """The pods that Tutti plans and that name this claim."""
        users = (self._pods[uid] for uid in self._naming([key]))
        return [user for user in users if user.bound_by is not None]

    def named(self) -> list[ClaimKey]:
        """Every claim that a pod names."""
        return list(self._by_claim)
