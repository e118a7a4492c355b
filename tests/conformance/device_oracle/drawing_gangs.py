"""The gangs of a random cluster, and the claims of their pods."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from .world import DeviceClaim, Gang, Pod, Request, Tie, Volume, VolumeClaim, Wanted, World

if TYPE_CHECKING:
    from random import Random

MODELS = ("red", "green", "blue")
PARTITIONS = {"full": 4, "half": 2, "quarter": 1}  # slices of the memory of one GPU


class Features(NamedTuple):
    """What a cluster shows: devices, counters of them, volumes, and limits of volumes."""

    devices: bool
    counters: bool
    volumes: bool
    limits: bool
    is_plain: bool  # claims name classes and counts alone

    @property
    def are_shares_known(self) -> bool:
        """Whether the pages say what share of the devices a gang requests."""
        return not self.counters and (self.is_plain or not self.devices)


class Drawing(NamedTuple):
    """What gangs are drawn with."""

    chance: Random
    shows: Features
    kinds: list[str]  # of devices
    divided: list[str]  # kinds of which devices consume counters


def with_gangs(chance: Random, shows: Features, empty: World) -> World:
    """The cluster with gangs that wait."""
    made = empty
    kinds = sorted({device.kind for device in empty.devices})
    divided = sorted({device.kind for device in empty.devices if device.consumes})
    draw = Drawing(chance, shows, kinds, divided)
    for number in range(chance.choice((3, 4, 5, 6, 7, 9))):
        made = _with_gang(draw, made, f"g{number}")
    made = _with_claims_for_one(chance, made)
    return _with_shared_volumes(chance, made) if shows.volumes and shows.limits else made


def _with_shared_volumes(chance: Random, world: World) -> World:
    """Several pods of any gangs name a claim that has a volume, whose driver has limits."""
    claims, gangs = dict(world.volume_claims), {gang.name: [*gang.pods] for gang in world.gangs}
    volumes = [*world.volumes]
    for number in range(chance.choice((0, 0, 1, 2))):
        name = f"shared-{number}"
        volumes.append(_own(chance, world, f"own-{name}", "disk", 10))
        claims[name] = VolumeClaim("disk", 10, volumes[-1].name, is_bound=True)
        gang = chance.choice([*gangs])
        for of in {gang, chance.choice([*gangs])}:
            gangs[of] = [
                pod if pod.is_blocked else replace(pod, volumes=(*pod.volumes, name))
                for pod in gangs[of]
            ]
    some = tuple(replace(gang, pods=tuple(gangs[gang.name])) for gang in world.gangs)
    used = {name for gang in some for pod in gang.pods for name in pod.volumes}
    claims = {name: claim for name, claim in claims.items() if name in used}
    return replace(world, gangs=some, volume_claims=claims, volumes=tuple(volumes))


def _with_claims_for_one(chance: Random, world: World) -> World:
    """Some claims are for one pod, and other pods name them, too, of any gang."""
    claims, gangs = dict(world.volume_claims), {gang.name: [*gang.pods] for gang in world.gangs}
    for _ in range(chance.choice((0, 1, 2)) if claims else 0):
        own = chance.choice([*claims])
        claims[own] = replace(claims[own], is_for_one=True)
        for _ in range(chance.choice((1, 2))):
            name = chance.choice([*gangs])
            i = chance.randrange(len(gangs[name]))
            pod = gangs[name][i]
            if not (pod.is_blocked or any(claims[of].is_for_one for of in pod.volumes)):
                gangs[name][i] = replace(pod, volumes=(*pod.volumes, own))
    some = tuple(replace(gang, pods=tuple(gangs[gang.name])) for gang in world.gangs)
    return replace(world, gangs=some, volume_claims=claims)


def _with_gang(draw: Drawing, world: World, name: str) -> World:
    chance = draw.chance
    count = chance.choice((1, 1, 2, 2, 2, 3, 3, 4))
    is_elastic = count > 1 and chance.random() < 0.25
    need = count - (chance.randint(1, count - 1) if is_elastic else 0)
    flavour = _flavour(draw)
    sizes = (1, 1, 2, 2, 3) if flavour == "plain" else (0, 0, 1, 1, 2)
    pods = [Pod(chance.choice(sizes))] * count
    if flavour in ("devices", "both"):
        world, pods = _with_devices(draw, world, name, pods, may_share=count > 1)
        if chance.random() < 0.2:
            world, pods = _with_more_devices(draw, world, name, pods)
    if flavour in ("volumes", "both"):
        world, pods = _with_volumes(chance, world, name, pods)
    least = {}
    if flavour != "plain" and count > 1 and chance.random() < 0.2:  # the first leads
        pods = [replace(pod, role="lead" if i == 0 else "rest") for i, pod in enumerate(pods)]
        least = {"lead": 1, "rest": need - 1}
    if chance.random() < 0.05:
        pods[-1] = replace(pods[-1], devices=(), volumes=(), is_blocked=True)
    priority = chance.choice((0, 0, 0, 1, 2))
    made = replace(world, gangs=(*world.gangs, Gang(name, priority, need, tuple(pods), least)))
    made = replace(made, claims={k: v for k, v in made.claims.items() if made.sharers(k)})
    return _with_device_of_its_own(chance, made) if chance.random() < 0.1 else made


def _with_device_of_its_own(chance: Random, world: World) -> World:
    """One claim has a device already."""
    names = [name for name, claim in world.claims.items() if not claim.is_admin and not claim.own]
    free = [device for device in world.devices if not (device.is_held or device.is_broken)]
    if not (names and free):
        return world
    name, own = chance.choice(names), chance.choice(free)
    claim = DeviceClaim((Request((Wanted(own.kind),)),), own=own.name)
    devices = tuple(replace(d, is_held=d.is_held or d is own) for d in world.devices)
    return replace(world, devices=devices, claims={**world.claims, name: claim})


def _flavour(draw: Drawing) -> str:
    has_devices, has_volumes = bool(draw.kinds), draw.shows.volumes
    flavours = ["plain"]
    flavours += ["devices"] * 4 * has_devices
    flavours += ["volumes"] * (2 if has_devices else 4) * has_volumes
    flavours += ["both"] * 2 * (has_devices and has_volumes)
    return draw.chance.choice(flavours)


def _with_devices(
    draw: Drawing, world: World, name: str, pods: list[Pod], *, may_share: bool
) -> tuple[World, list[Pod]]:
    """Claims for devices, alike for all pods but the first, or one that pods share."""
    chance, pattern = draw.chance, _claim(draw)
    if may_share and chance.random() < 0.25:
        shared, sharing = f"{name}-shared", chance.randint(2, len(pods))
        found = [replace(p, devices=(shared,) * (i < sharing)) for i, p in enumerate(pods)]
        return replace(world, claims={**world.claims, shared: pattern}), found
    has_first_alone = chance.random() < 0.15
    first = _claim(draw) if chance.random() < 0.25 else pattern
    claims, found = dict(world.claims), []
    for i, pod in enumerate(pods):
        if i and has_first_alone:
            found.append(pod)
            continue
        claims[f"{name}-{i}-d"] = pattern if i else first
        found.append(replace(pod, devices=(f"{name}-{i}-d",)))
    return replace(world, claims=claims), found


def _with_more_devices(
    draw: Drawing, world: World, name: str, pods: list[Pod]
) -> tuple[World, list[Pod]]:
    """One more claim for each pod; none of a pod may be for admin access then."""
    pattern, claims = _claim(draw), dict(world.claims)
    if pattern.is_admin or any(claims[of].is_admin for pod in pods for of in pod.devices):
        return world, pods
    claims |= {f"{name}-{i}-e": pattern for i in range(len(pods))}
    more = [replace(pod, devices=(*pod.devices, f"{name}-{i}-e")) for i, pod in enumerate(pods)]
    return replace(world, claims=claims), more


def _claim(draw: Drawing) -> DeviceClaim:
    chance = draw.chance
    weighed = [*draw.kinds, *draw.divided, *draw.divided]
    kinds = [chance.choice(weighed) for _ in range(chance.choice((1, 1, 2)))]
    requests = tuple(_request(draw, kind) for kind in kinds)
    is_admitted = not ({*kinds} & {*draw.divided} or any(len(r.options) > 1 for r in requests))
    if not draw.shows.are_shares_known and is_admitted and chance.random() < 0.08:
        return DeviceClaim(requests, is_admin=True)
    if draw.shows.is_plain or chance.random() < 0.5:
        return DeviceClaim(requests)
    return DeviceClaim(requests, (_tie(chance, requests),))


def _request(draw: Drawing, kind: str) -> Request:
    chance = draw.chance
    count = chance.choice((1, 1, 1, 2, 2, 3))
    if draw.shows.is_plain:
        return Request((Wanted(kind),), count)
    if kind in draw.divided:
        is_exact = chance.random() < 0.8
        models = (chance.choice((*PARTITIONS,)),) if is_exact else ("half", "quarter")
        return Request((Wanted(kind, models),), chance.choice((1, 1, 1, 2)))
    some = Wanted(kind, _models(chance))
    drawn = chance.random()
    if drawn < 0.18:
        return Request((some,), None)
    if drawn < 0.33:
        return Request((some, Wanted(kind, _models(chance))))
    return Request((some,), count)


def _models(chance: Random) -> tuple[str, ...]:
    if chance.random() < 0.5:
        return ()
    return tuple(sorted(chance.sample(MODELS, chance.randint(1, 2))))


def _tie(chance: Random, requests: tuple[Request, ...]) -> Tie:
    """For all requests, for one of them, or for one option of a request."""
    if chance.random() < 0.3:
        return Tie("port", is_distinct=True)
    if chance.random() < 0.7:
        return Tie("root")
    part = chance.randrange(len(requests))
    several = len(requests[part].options) > 1
    option = chance.randrange(2) if several and chance.random() < 0.5 else None
    return Tie(chance.choice(("root", "port")), ((part, option),), chance.random() < 0.3)


def _with_volumes(
    chance: Random, world: World, name: str, pods: list[Pod]
) -> tuple[World, list[Pod]]:
    """One or two claims for volumes for each pod; a few have theirs."""
    claims, volumes = dict(world.volume_claims), [*world.volumes]
    of, size = chance.choice(("local", "disk", "disk", "mixed")), chance.choice((10, 10, 20, 50))
    times, found = chance.choice((1, 1, 1, 2)), []
    for i, pod in enumerate(pods):
        own = []
        for j in range(times):
            claim = f"{name}-{i}-v{j}"
            own.append(claim)
            claims[claim] = VolumeClaim(of, size)
            if chance.random() < 0.12:
                volume = _own(chance, world, f"own-{claim}", of, size)
                volumes.append(volume)
                is_bound = of != "local" or chance.random() < 0.5
                claims[claim] = VolumeClaim(of, size, volume.name, is_bound)
            elif of != "local" and chance.random() < 0.08:
                selected = chance.randrange(len(world.nodes))
                claims[claim] = VolumeClaim(of, size, selected=selected)
        found.append(replace(pod, volumes=tuple(own)))
    return replace(world, volume_claims=claims, volumes=tuple(volumes)), found


def _own(chance: Random, world: World, name: str, of: str, size: int) -> Volume:
    """A volume that a claim has already, or that is kept for it."""
    driver = world.classes[of].driver
    if of == "disk":
        zone = chance.choice([node.zone for node in world.nodes])
        return Volume(name, of, size, None, zone, is_taken=True, driver=driver)
    return Volume(name, of, size, chance.randrange(len(world.nodes)), is_taken=True)
