"""What the limits of a queue in shadow would have stopped."""

from dataclasses import replace

from tutti.model.queues import QueueMode
from tutti.model.resources import Resources
from tutti.queues.cover import QueuedGang
from tutti.queues.shadow import stopped
from tutti.queues.tree import QueueTree

from .builders import amounts, queue, queued


def found(*running: QueuedGang, mode: QueueMode = QueueMode.SHADOW) -> dict[str, list[str]]:
    """The names of the stopped gangs; queue r has a limit of 10 GPUs, and v is below it."""
    top = replace(queue("r", limits=amounts(gpu=10, pods=3)), mode=mode)
    tree = QueueTree.of([top, queue("v", "r"), queue("n")])
    charges = {
        gang.key: Resources.total((gang.minimum, *(extra for _, extra in gang.extras)))
        for gang in running
    }
    gangs = stopped(tree, running, charges)
    return {name: [gang.name for gang in gone] for name, gone in gangs.items()}


def test_gangs_that_exceed_a_limit_when_they_start_are_stopped_and_use_nothing_of_it() -> None:
    gangs = [
        queued("late", "v", started=4.0, gpu=2),
        queued("large", "v", started=2.0, gpu=6),
        queued("first", "v", started=1.0, gpu=6, cpu=99),
        queued("fits", "v", started=3.0, gpu=4),
        queued("none", "v", started=5.0, cpu=1),
        queued("other", "n", started=0.0, gpu=50),
    ]
    assert found(*gangs) == {"r": ["large", "late"]}


def test_extras_beyond_a_limit_stop_no_gang_and_use_nothing_of_it() -> None:
    grown = queued("grown", "v", started=1.0, gpu=2)
    extras = tuple((f"p{i}", Resources.of({"gpu": n})) for i, n in enumerate((3, 9, 1)))
    fits = queued("fits", "v", started=2.0, gpu=4)
    assert found(replace(grown, extras=extras), fits) == {"r": []}
    assert found(replace(grown, extras=extras), queued("fits", "v", started=2.0, gpu=5)) == {
        "r": ["fits"]
    }


def test_each_resource_counts() -> None:
    gangs = [queued(name, "v", started=1.0, pods=1) for name in "abcd"]
    assert found(*gangs) == {"r": ["d"]}


def test_queues_whose_quotas_count_say_nothing() -> None:
    assert found(queued("a", "v", started=1.0, gpu=99), mode=QueueMode.ACTIVE) == {}
