"""What is planned for: how many nodes, how full, and which gangs wait.

Plain values, so that a process of its own can be told what to measure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from . import kueue_load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .kueue_load import Load

GANGS = 900
MANY_GANGS = 2_500  # of the scene that counts pods planned per second
SIZES = (2, 4, 8, 16, 32, 64)  # members of a gang; each as likely
COPIES = (1, 4, 8)
FULLNESS = (0.5, 0.8)
RACK = 32  # nodes
LARGEST_GANG = 5_000
CROWDED_NODES, CROWDED_GANGS = 5_000, 300
NETWORK_NODES, NETWORK_GANGS = 3_024, 80
PREEMPTION_NODES, PREEMPTION_GANGS = 2_000, 5_000
TOPOLOGY_NODES, FEWER_TOPOLOGY_NODES, TOPOLOGY_GANGS = 12_096, 1_512, 300
TOPOLOGY_FULLNESS = (0.7, 0.85, 0.95)
FEW_RACKS_NODES, FEW_RACKS_GANGS = 864, 21  # as many gangs to a node as above
MOST_NODES = 100_000
BOUND_ON_A_NODE, MILLION_GANGS = 10, 5_000
MOST_PORTS = 2_000
PORT_PODS = 1_000
FURTHER_MEMBERS = 20_000
TEMPLATE_MEMBERS = 5_000  # the most that a PodGroup may declare
_LEAST_NODES, _LEAST_GANGS = 16, 6


class Shapes(StrEnum):
    """Which shapes the waiting members have; each as likely."""

    EIGHT = "8"  # the most frequent ones that ask for several GPUs
    SEVERAL_GPUS = "13"  # all that ask for several GPUs, of which openb has 13
    ALL = "all"  # all of the list
    MANY = "64"  # invented; most of them without a GPU
    SINGLE = "single"  # those that ask for one GPU
    PAIR = "pair"  # the most frequent one with the fewest GPUs above one


class Twist(StrEnum):
    """What makes a scene hard."""

    NONE = ""
    DISTINCT = "distinct"  # no two nodes have the same room
    RACKS = "racks"  # every gang may use the nodes of one rack only
    CPU = "cpu"  # bound pods without GPUs use most of the CPU
    GENERATED = "generated"  # nodes and pods, however many
    MILLION = "million"  # the same, with ten bound pods on each node
    RULES = "rules"  # every fifth gang says where its own members may be together
    UNLIKE = "unlike"  # no two members ask for the same, no two nodes have the same room
    PORTS = "ports"  # one more pod wants very many host ports
    PORT_EACH = "port each"  # very many more pods, each with a host port of its own
    PRIORITIES = "priorities"  # like UNLIKE, and every gang has a priority of its own
    RESOURCES = "resources"  # like UNLIKE, and every gang asks for a resource of its own
    FURTHER = "further"  # gangs that need one member, and have very many
    INVENTED = "invented"  # three more pods, each with very many resources that no node has
    LONG_SPECS = "long specs"  # more pods, each with thousands of node terms, tolerations or values
    TEMPLATES = "templates"  # gangs of which one member exists, and a template for very many
    NETWORK = "network"  # racks in blocks in zones, and gangs that prefer one rack
    TOPOLOGY = "topology"  # the same, with gangs in one rack, in segments, and anywhere
    FEW_RACKS = "few racks"  # the same in 48 racks
    QUEUES = "queues"  # a tree of queues, in whose leaves all gangs are
    PREEMPTION = "preemption"  # a full cluster, and a gang that a guarantee covers
    DEVICES = "devices"  # half of the GPUs are devices, which half of the gangs claim
    KUEUE = "kueue"  # gangs come, run and end, as in a benchmark of Kueue


@dataclass(frozen=True, slots=True)
class Scene:
    """One cluster and what waits for it."""

    name: str
    title: str
    nodes: int
    full: float  # of its GPUs
    shapes: Shapes = Shapes.EIGHT
    gangs: int = GANGS
    sizes: tuple[int, ...] = SIZES
    twist: Twist = Twist.NONE
    load: str = ""  # of Kueue, by name
    scale: float = 1.0  # so much of that load

    @classmethod
    def of(cls, plain: Mapping[str, object]) -> Scene:
        """The scene that ``plain`` wrote down."""
        made: dict[str, object] = {**plain, "sizes": tuple(plain["sizes"])}  # type: ignore[arg-type]
        made |= {"shapes": Shapes(str(plain["shapes"])), "twist": Twist(str(plain["twist"]))}
        return cls(**made)  # type: ignore[arg-type]

    @property
    def plain(self) -> dict[str, object]:
        """The scene as JSON can have it; commits before there were loads know all others."""
        fields = asdict(self)
        return fields if self.load else {n: v for n, v in fields.items() if n not in _OF_LOADS}


_OF_LOADS = ("load", "scale")


def grid(listed: int, scale: float) -> tuple[Scene, ...]:
    """All sizes, half and four fifths full, with few, more and all shapes.

    ``listed`` is the number of nodes in the list, of which so many copies are made.
    """
    scenes = []
    for copies in COPIES:
        for full in FULLNESS:
            for shapes in (Shapes.EIGHT, Shapes.SEVERAL_GPUS, Shapes.ALL):
                name = f"x{copies}/{full * 100:.0f}/{shapes}"
                nodes = _nodes(listed * copies, scale)
                title = f"{nodes} nodes, {full:.0%} full, {_WORDS[shapes]}"
                scenes.append(Scene(name, title, nodes, full, shapes, _gangs(GANGS, scale)))
    return tuple(scenes)


def hard(listed: int, scale: float) -> tuple[Scene, ...]:
    """The scenes in which something is out of the ordinary."""
    nodes, gangs = _nodes(listed * COPIES[-1], scale), _gangs(GANGS, scale)
    many, one = _nodes(MOST_NODES, scale), max(SIZES[-1], round(LARGEST_GANG * scale))
    eight, half = Shapes.EIGHT, FULLNESS[0]
    return (
        Scene(
            "distinct",
            "no two nodes have the same room",
            nodes,
            half,
            eight,
            gangs,
            twist=Twist.DISTINCT,
        ),
        Scene(
            "64-shapes",
            "64 shapes, most without a GPU",
            nodes,
            half,
            Shapes.MANY,
            gangs,
            twist=Twist.CPU,
        ),
        Scene("one-gang", f"one gang of {one}", nodes, half, Shapes.PAIR, 1, (one,)),
        Scene("uncontended", "room for all", nodes, 0.0, Shapes.SINGLE, gangs),
        Scene(
            "racks",
            f"every gang in one rack of {RACK} nodes",
            nodes,
            half,
            eight,
            gangs,
            twist=Twist.RACKS,
        ),
        Scene("100k", f"{many} generated nodes", many, half, eight, gangs, twist=Twist.GENERATED),
    )


def unlike(scale: float) -> tuple[Scene, ...]:
    """The scenes in which next to nothing is alike, so that little can be taken together."""

    def scene(title: str, name: str, nodes: int, gangs: int, full: float = FULLNESS[0]) -> Scene:
        some, nodes = _gangs(gangs, scale), _nodes(nodes, scale)
        return Scene(name, title, nodes, full, gangs=some, sizes=(1,), twist=Twist.UNLIKE)

    plain = "pods without a gang, no two alike"
    gangs = scene("60 gangs of 41 members, no two alike", "unlike-gangs", 500, 60)
    title = f"400 gangs, and a pod that wants {MOST_PORTS:,} host ports"
    wanting = scene(title, "host-ports", 500, 400)
    each = scene(f"400 gangs, and {PORT_PODS:,} pods with a host port each", "port-each", 500, 400)
    members = max(SIZES[-1], round(FURTHER_MEMBERS * scale))
    further = scene(f"a gang that needs one of its {members:,} members", "further", 1_000, 1)
    title = "400 gangs, and 3 pods that want 20,000 resources each that no node has"
    invented = scene(title, "invented-resources", 2_000, 400)
    title = "400 gangs, and 60 pods with up to 40,000 node terms, tolerations or values each"
    long_specs = scene(title, "long-specs", 1_000, 400)
    absent = max(SIZES[-1], round(TEMPLATE_MEMBERS * scale))
    title = f"1,000 gangs of {absent:,} members that do not exist yet but for one"
    templates = scene(title, "templates", 500, 1_000)
    return (
        scene(f"1,000 {plain}", "plain/1000", 100, 1_000),
        scene(f"1,500 {plain}", "plain/1500", 150, 1_500),
        scene(f"500 {plain}, on 50 empty nodes", "plain/equal", 50, 500, full=0.0),
        replace(gangs, sizes=(41,)),
        replace(wanting, sizes=SIZES, twist=Twist.PORTS),
        replace(each, sizes=SIZES, twist=Twist.PORT_EACH),
        replace(
            scene(
                "1,000 pods, no two alike, each of a priority of its own", "priorities", 100, 1_000
            ),
            twist=Twist.PRIORITIES,
        ),
        replace(
            scene(
                "1,000 pods, no two alike, each with a resource of its own", "resources", 100, 1_000
            ),
            twist=Twist.RESOURCES,
        ),
        replace(further, gangs=1, sizes=(members,), twist=Twist.FURTHER),
        replace(invented, sizes=SIZES, twist=Twist.INVENTED),
        replace(long_specs, sizes=SIZES, twist=Twist.LONG_SPECS),
        replace(templates, sizes=(absent,), twist=Twist.TEMPLATES),
    )


def ruled(listed: int, scale: float) -> Scene:
    """The large scene with rules between the members of a fifth of the gangs."""
    return Scene(
        "rules",
        "a fifth of the gangs apart by node, in one zone, in their driver's, or spread over zones",
        _nodes(listed * COPIES[-1], scale),
        FULLNESS[0],
        Shapes.EIGHT,
        _gangs(GANGS, scale),
        twist=Twist.RULES,
    )


def many(listed: int, scale: float) -> Scene:
    """Many equal gangs of 8 on empty nodes: what a plan costs for each pod."""
    return Scene(
        "gangs-of-8",
        "2,500 gangs of 8, and room for all",
        _nodes(listed * COPIES[-1], scale),
        0.0,
        Shapes.SINGLE,
        _gangs(MANY_GANGS, scale),
        (8,),
    )


def million(listed: int, scale: float) -> tuple[Scene, ...]:
    """A million bound pods and thousands of gangs; the second scene has fewer nodes."""
    gangs = _gangs(MILLION_GANGS, scale)
    sizes = {"million": MOST_NODES, "million/base": listed * COPIES[-1]}
    return tuple(
        Scene(
            name,
            f"{count} generated nodes with {BOUND_ON_A_NODE} bound pods each, {gangs:,} gangs",
            count,
            FULLNESS[0],
            gangs=gangs,
            twist=Twist.MILLION,
        )
        for name, count in ((name, _nodes(nodes, scale)) for name, nodes in sizes.items())
    )


def queued(listed: int, scale: float) -> Scene:
    """The large scene with all gangs in the leaves of a tree of queues, many of them at a limit."""
    return Scene(
        "queues",
        "100 queues of 3 levels, at least half of them at a limit",
        _nodes(listed * COPIES[-1], scale),
        FULLNESS[0],
        Shapes.EIGHT,
        _gangs(GANGS, scale),
        twist=Twist.QUEUES,
    )


def claiming(listed: int, scale: float) -> Scene:
    """The large scene with GPUs as devices on half of the nodes, for half of the gangs."""
    return Scene(
        "devices",
        "GPUs as devices on half of the nodes, a claim for each member of half of the gangs",
        _nodes(listed * COPIES[-1], scale),
        FULLNESS[0],
        Shapes.EIGHT,
        _gangs(GANGS, scale),
        twist=Twist.DEVICES,
    )


def networked(scale: float) -> Scene:
    """Racks that are partly used, and small and large gangs that prefer one of them."""
    return Scene(
        "network",
        "racks in blocks in zones, partly used; small and large gangs that prefer one rack",
        _nodes(NETWORK_NODES, scale),
        0.0,
        gangs=_gangs(NETWORK_GANGS, scale),
        twist=Twist.NETWORK,
    )


def required(scale: float) -> tuple[Scene, ...]:
    """Racks that gangs fill to a degree; the last scene has fewer nodes."""
    sizes = [(TOPOLOGY_NODES, full) for full in TOPOLOGY_FULLNESS]
    sizes.append((FEWER_TOPOLOGY_NODES, TOPOLOGY_FULLNESS[1]))
    return tuple(
        Scene(
            f"topology/{nodes}/{full * 100:.0f}",
            f"{full:.0%} of the GPUs used; a third of the gangs in one rack, a third in segments",
            _nodes(nodes, scale),
            full,
            gangs=_gangs(TOPOLOGY_GANGS, scale),
            twist=Twist.TOPOLOGY,
        )
        for nodes, full in sizes
    )


def few_racks(scale: float) -> tuple[Scene, ...]:
    """The same in 48 racks, and as many gangs to a node; few enough for a program over racks."""
    return tuple(
        replace(
            scene,
            name=f"topology/{FEW_RACKS_NODES}/{scene.full * 100:.0f}",
            nodes=_nodes(FEW_RACKS_NODES, scale),
            gangs=_gangs(FEW_RACKS_GANGS, scale),
            twist=Twist.FEW_RACKS,
        )
        for scene in required(scale)[:-1]
    )


def preempting(scale: float) -> Scene:
    """A full cluster in which two queues borrow, and a gang of 64 that a guarantee covers."""
    gangs = _gangs(PREEMPTION_GANGS, scale)
    return Scene(
        "preemption",
        f"{gangs:,} gangs run on all GPUs, and a gang of 64 waits that a guarantee covers",
        _nodes(PREEMPTION_NODES, scale),
        1.0,
        gangs=gangs,
        twist=Twist.PREEMPTION,
    )


def crowded(scale: float) -> Scene:
    """Many nodes that others' pods stand on, one of which keeps apart from some."""
    return Scene(
        "crowded",
        "ten pods of others on each node; a fifth of the gangs with rules",
        _nodes(CROWDED_NODES, scale),
        0.0,
        Shapes.EIGHT,
        _gangs(CROWDED_GANGS, scale),
        twist=Twist.RULES,
    )


def kueue(load: Load, scale: float, name: str) -> Scene:
    """The load of Kueue's benchmark, or so much of it."""
    part = load.scaled(scale)
    queues = part.cohorts * part.queues
    return Scene(
        name,
        f"{part.workloads:,} gangs come to {queues} queues in {part.cohorts} cohorts, and end",
        _nodes(kueue_load.NODES, scale),
        0.0,
        gangs=part.workloads,
        sizes=(1,),
        twist=Twist.KUEUE,
        load=load.name,
        scale=scale,
    )


def kueue_loads(scale: float) -> tuple[Scene, ...]:
    """One cohort of Kueue's baseline; and, only where they are named, its whole loads."""
    cohort = scale / kueue_load.BASELINE.cohorts
    return (
        kueue(kueue_load.BASELINE, cohort, "kueue"),
        kueue(kueue_load.BASELINE, scale, "kueue/15000"),
        kueue(kueue_load.LARGE_SCALE, scale, "kueue/50000"),
    )


def small(nodes: int) -> Scene:
    """A scene small enough for a program with a variable per pod and node."""
    title = f"{nodes} nodes, half full, small gangs"
    return Scene(
        f"small/{nodes}", title, nodes, FULLNESS[0], Shapes.EIGHT, max(3, nodes // 4), (2, 3, 4)
    )


def _nodes(count: int, scale: float) -> int:
    return max(_LEAST_NODES, round(count * scale))


def _gangs(count: int, scale: float) -> int:
    return max(_LEAST_GANGS, round(count * scale))


_WORDS: Mapping[Shapes, str] = {
    Shapes.EIGHT: "8 shapes of several GPUs",
    Shapes.SEVERAL_GPUS: "all shapes of several GPUs",
    Shapes.ALL: "all shapes of the list",
}
