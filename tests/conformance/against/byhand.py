"""Twenty gangs thought out by hand, with the idea of each."""

from __future__ import annotations

from .cases import GANG, HOST, ZONE, Ask, Case, Ground, Kind, Other, Role, Rule

APART = (Rule(Ask.APART, HOST),)
BESIDE_DRIVER = (Rule(Ask.NEAR, ZONE, "role", "driver"),)
EVEN = (Rule(Ask.EVEN, ZONE),)


def _row(prefix: str, zone: str, *cpus: int, gpus: int = 0) -> tuple[Ground, ...]:
    return tuple(Ground(f"{prefix}{i}", zone, cpu, gpus) for i, cpu in enumerate(cpus))


def _team(number: int, workers: int, cpu: int) -> tuple[Role, Role]:
    name = f"driver-{number}"
    beside = (Rule(Ask.NEAR, ZONE, "role", name),)
    return Role(name, 1, cpu=1), Role(f"worker-{number}", workers, cpu=cpu, rules=beside)


CASES = (
    # Room for everyone.
    Case("eight-on-four", Kind.EASY, _row("n", "a", 4, 4, 4, 4), (Role("m", 8),)),
    Case("eight-apart", Kind.EASY, _row("n", "a", *[4] * 8), (Role("m", 8, rules=APART),)),
    # The large member needs the node that looks best to the small ones.
    Case(
        "small-before-big",
        Kind.APART,
        _row("n", "a", 8, 4, 4, 4),
        (Role("small", 3, cpu=2, rules=APART), Role("big", 1, cpu=8, rules=APART)),
    ),
    # The only GPU is where those who need none would go as well.
    Case(
        "gpu-comes-last",
        Kind.APART,
        (*_row("n", "a", 4, 4, 4), Ground("g", "a", 16, 1)),
        (Role("plain", 3, rules=APART), Role("gpu", 1, gpus=1, rules=APART)),
    ),
    # Two nodes are closed by others' anti-affinity, the rest has to do.
    Case(
        "others-about",
        Kind.APART,
        _row("n", "a", 8, 8, 8, 4, 4, 4),
        (Role("small", 3, cpu=2, rules=APART), Role("big", 1, cpu=6, rules=APART)),
        tuple(Other(name, app="shy", rules=APART) for name in ("n0", "n1")),
    ),
    # Each size has one node.
    Case(
        "three-sizes-of-gpus",
        Kind.ROLES,
        (Ground("n0", gpus=8), Ground("n1", gpus=4), Ground("n2", gpus=2)),
        (Role("two", 1, gpus=2), Role("four", 1, gpus=4), Role("eight", 1, gpus=8)),
    ),
    # 4 + 4 and 5 + 3, but not 4 + 3 and 4 + 5.
    Case(
        "exact-fit",
        Kind.ROLES,
        _row("n", "a", 8, 8),
        (Role("four", 2, cpu=4), Role("five", 1, cpu=5), Role("three", 1, cpu=3)),
    ),
    # Those without GPUs must leave the CPUs of the node that has them.
    Case(
        "cpus-beside-gpus",
        Kind.ROLES,
        (Ground("n0", cpu=8), Ground("g0", cpu=8, gpus=4)),
        (Role("plain", 4, cpu=2), Role("gpu", 4, cpu=2, gpus=1)),
    ),
    # The emptiest node, best for the driver, is in the zone that is too small for the workers.
    Case(
        "driver-first",
        Kind.ZONE,
        (*_row("a", "a", 8), *_row("b", "b", 4, 4, 4, 4)),
        (Role("driver", 1, cpu=1), Role("worker", 4, cpu=3, rules=BESIDE_DRIVER)),
    ),
    # The zone with most CPUs has no GPUs for the workers.
    Case(
        "driver-away-from-gpus",
        Kind.ZONE,
        (*_row("a", "a", 32, 32), *_row("b", "b", 8, 8, gpus=2)),
        (Role("driver", 1, cpu=2), Role("worker", 4, cpu=2, gpus=1, rules=BESIDE_DRIVER)),
    ),
    # Two teams of which each zone can take one.
    Case(
        "two-drivers",
        Kind.ZONE,
        (*_row("a", "a", 12), *_row("b", "b", 9)),
        (
            Role("driver-1", 1, cpu=1),
            Role("driver-2", 1, cpu=1),
            _team(1, 3, 2)[1],
            _team(2, 4, 2)[1],
        ),
    ),
    # Room for four in one zone, for eight in another, for six in the third: 4/4/4.
    Case(
        "twelve-over-three",
        Kind.SPREAD,
        (*_row("a", "a", 1, 1, 1, 1), *_row("b", "b", 8), *_row("c", "c", 3, 3)),
        (Role("m", 12, rules=EVEN),),
    ),
    # Four of the small ones are all that zone a can take.
    Case(
        "two-sizes-over-three",
        Kind.SPREAD,
        (*_row("a", "a", 4), *_row("b", "b", 10), *_row("c", "c", 10)),
        (Role("small", 6, rules=EVEN), Role("big", 6, cpu=3, rules=EVEN)),
    ),
    # Others of the same app count, too.
    Case(
        "spread-with-others",
        Kind.SPREAD,
        (*_row("a", "a", 6), *_row("b", "b", 5), *_row("c", "c", 6)),
        (Role("small", 2, rules=EVEN), Role("big", 3, cpu=4, rules=EVEN)),
        (Other("a0", app=GANG), Other("b0", app=GANG)),
    ),
    # The helper has no rule, and must keep off the only node of the third zone all the same.
    Case(
        "helper-in-the-way",
        Kind.DOMAINS,
        (*_row("a", "a", 8), *_row("b", "b", 8), *_row("c", "c", 4)),
        (
            Role("helper", 1),
            Role("m", 3, cpu=4, rules=(Rule(Ask.EVEN, ZONE, "role", "m", min_domains=3),)),
        ),
        (Other("a0", cpu=3), Other("b0", cpu=3)),
    ),
    # Four hosts at least, of which each size fits some.
    Case(
        "four-hosts",
        Kind.DOMAINS,
        _row("n", "a", 2, 2, 6, 6),
        (
            Role("small", 2, cpu=2, rules=(Rule(Ask.EVEN, HOST, min_domains=4),)),
            Role("big", 2, cpu=6, rules=(Rule(Ask.EVEN, HOST, min_domains=4),)),
        ),
    ),
    # The one who needs no port must take the node where the port is taken.
    Case(
        "port-is-taken",
        Kind.PORTS,
        _row("n", "a", 4, 4, 4, 4),
        (Role("big", 1, cpu=4), Role("listener", 3, port=8080)),
        (Other("n3", port=8080),),
    ),
    # Two services on one port, of which one needs GPUs.
    Case(
        "port-and-gpus",
        Kind.PORTS,
        (*_row("n", "a", 4, 4), *_row("g", "a", 16, 16, gpus=1)),
        (Role("plain", 2, port=8080), Role("gpu", 2, gpus=1, port=8080)),
    ),
    # One per node, all in the driver's zone; the zone with the largest nodes has too few.
    Case(
        "apart-in-one-zone",
        Kind.MIXED,
        (*_row("a", "a", 16, 16, 16), *_row("b", "b", 4, 4, 4, 4, 4)),
        (
            Role("driver", 1, rules=APART),
            Role("worker", 4, rules=(*APART, *BESIDE_DRIVER)),
        ),
    ),
    # Ports, GPUs and zones together.
    Case(
        "all-at-once",
        Kind.MIXED,
        (
            *_row("a", "a", 8, 8),
            *_row("b", "b", 4, 4),
            *_row("g", "b", 8, gpus=2),
            *_row("c", "c", 6, 6),
        ),
        (
            Role("plain", 3, cpu=2, port=9000, rules=EVEN),
            Role("gpu", 1, cpu=6, gpus=2, rules=EVEN),
            Role("big", 2, cpu=6, rules=EVEN),
        ),
        (Other("c0", port=9000),),
    ),
)
