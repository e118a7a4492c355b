"""Jobs that have no pods yet, as a plan includes them: with the pods that they need.

The templates of a job say how many pods it has, so a tenant can have any number of them. Small jobs
are in every plan; the larger ones share a number of pods, in turn.
"""

from dataclasses import dataclass, replace

from ..gang import demand, slots
from ..kube.gang_sources import GangObject
from ..model.cluster import Gang, Role, Snapshot
from ..model.resources import Resources

SMALL_PODS = 200  # a job that needs no more is in each plan in which it has its turn
# Of larger jobs, and of jobs that count as if they had their pods, in one plan. A larger gang
# cannot have a Reservation, because etcd does not take such an object.
MOST_PODS = 50_000


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A gang without pods, with the roles of its job; a job without roles has only its totals."""

    group: GangObject
    gang: Gang
    roles: tuple[Role, ...]
    pods: int  # as ``pods_needed`` says


class PodBudget:
    """How many large jobs a plan may still have, and how many pods of them; one in any case."""

    def __init__(self, pods: int, most_large: int) -> None:
        """``pods`` is how many pods of jobs the plan has in any case.

        The plan has at most ``most_large`` large jobs.
        """
        self._pods = pods
        self._most_large = most_large
        self._large = 0

    def takes(self, pods: int) -> bool:
        """Whether a job of so many pods is in the plan; then it counts."""
        if pods > SMALL_PODS:
            if self._large == self._most_large:
                return False
            if self._large and self._pods + pods > MOST_PODS:
                return False
            self._large += 1
            self._pods += pods
        return True


def most_pods(snapshot: Snapshot) -> int:
    """The most pods of a job that a plan may place."""
    return min(MOST_PODS, sum(node.offers("pods") for node in snapshot.nodes))


def pods_needed(gang: Gang, roles: tuple[Role, ...]) -> int:
    """How many pods a job needs; none if its roles have fewer, so that no plan includes it."""
    gang = replace(gang, roles=roles)
    number = sum(slots.absent(gang, {}).values())
    return number if demand.min_members(gang) <= number else 0


def pods_in_plan(pods: int, most: int) -> int:
    """How many pods a plan includes for a job that needs so many; none if that is over ``most``."""
    return pods if pods <= most else 0


def with_pods(job: WaitingJob, most: int) -> Gang | None:
    """The gang of a job with the pods that it needs; None if no plan includes it."""
    if not pods_in_plan(job.pods, most):
        return None
    gang = replace(job.gang, roles=job.roles)
    numbers, by_name = slots.absent(gang, {}), {role.name: role for role in job.roles}
    pods = [
        pod
        for role, n in numbers.items()
        for pod in slots.placeholders(replace(gang, roles=(by_name[role],)), role, n)
    ]
    untyped = tuple(replace(role, template=None) for role in job.roles)
    return replace(gang, roles=untyped, members=tuple(pods))


def free_room(snapshot: Snapshot) -> Resources:
    """The sum of free room over all ready, schedulable nodes; negative amounts count as zero."""
    return Resources.total(
        Resources(tuple((name, n) for name, n in (node.allocatable - node.used).amounts if n > 0))
        for node in snapshot.nodes
        if node.ready and not node.unschedulable
    )
