"""Builders of pods that request extended resources, as ``decode_member`` reads them."""

from dataclasses import replace

from tutti.model.cluster import Member
from tutti.model.devices.extended import ContainerRequests, amounts

from .builders import GangBuilder

GPU = "nvidia.com/gpu"


def container(
    position: int = 0,
    name: str = "main",
    *,
    is_short_lived: bool = False,
    beside: tuple[str, ...] = ("cpu", "memory"),
    **counts: int,
) -> ContainerRequests:
    """A container that requests so many ``gpu`` or other resources of nvidia.com."""
    wanted = {f"nvidia.com/{resource}": count for resource, count in counts.items()}
    names = tuple(sorted((*beside, *wanted)))
    return ContainerRequests(
        position, name, names, tuple(sorted(wanted.items())), is_short_lived=is_short_lived
    )


def requesting(gang: GangBuilder, *containers: ContainerRequests) -> GangBuilder:
    """The gang, each member of which has these containers; without any, one that wants a GPU."""
    wanted = containers or (container(gpu=1),)

    def ask(member: Member) -> Member:
        shape = replace(member.shape, requests=member.shape.requests + amounts(wanted))
        return replace(member, shape=shape, extended_requests=wanted)

    return gang.where(ask)
