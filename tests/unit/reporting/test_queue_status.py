"""What Queues say of themselves."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tutti.model.decisions import QueueUse
from tutti.model.keys import GangKey, Uid
from tutti.model.queues import Queue, QueueMode, Stop
from tutti.model.resources import NOTHING, Resources
from tutti.queues.tree import Fault, Finding, QueueTree
from tutti.reporting import queue_status
from tutti.reporting.queue_status import ConditionType, QueueCondition

GPU = "nvidia.com/gpu"
ML = Queue("ml", Uid("ml-1"), guaranteed=((GPU, 16),))
VISION = Queue("vision", Uid("vision-1"), parent="ml", limits=((GPU, 48),))


def said(name: str, *queues: Queue, **more: Any) -> dict[str, QueueCondition]:
    tree, faults = QueueTree.of(queues), more.pop("faults", ())
    options = {"is_empty": True, **more}
    queue_conditions = queue_status.conditions(tree, name, faults, **options)
    return {condition.type.value: condition for condition in queue_conditions}


SENTENCES = {
    Finding("root", Fault.RESERVED_NAME): (
        "root is the built-in queue above all others: create it under another name"
    ),
    Finding("q", Fault.UNKNOWN_PARENT, ("ml",)): (
        "its parent ml does not exist, so no gang starts here: create queue ml, or name another "
        "queue in spec.parent"
    ),
    Finding("q", Fault.CYCLE, ("ml",)): (
        "its parent ml is also below it, so no gang starts here: name another queue in "
        "spec.parent of one of them"
    ),
    Finding("q", Fault.CHILDREN_EXCEED_PARENT, ("cpu",), 2500, 2000): (
        "its children guarantee 2500m cpu together, and it guarantees 2: raise its guarantee, or "
        "lower theirs"
    ),
    Finding("q", Fault.EXCEEDS_PARENT, ("cpu",), 2500, 2000): (
        "with it, the children of its parent would guarantee 2500m cpu together, and the parent "
        "guarantees 2: lower its guarantee, or raise that of the parent"
    ),
    Finding("q", Fault.EXCEEDS_CLUSTER, (GPU,), 24, 16): (
        "the queues below root guarantee 24 nvidia.com/gpu together, and all nodes have 16: add "
        "nodes, or lower guarantees"
    ),
    Finding("q", Fault.LIMIT_BELOW_GUARANTEE, (GPU,), 24, 16): (
        "its limit of 16 nvidia.com/gpu is below its guarantee of 24: raise the limit, or lower "
        "the guarantee"
    ),
    Finding("q", Fault.OMITS_RESOURCE, ("cpu",)): (
        "it guarantees no amount of cpu, which other queues guarantee, so it covers no gang that "
        "requests cpu, except by what its children guarantee: add an amount, which may be 0"
    ),
    Finding("q", Fault.UNREADABLE, ("spec.namespaces",)): (
        "spec.namespaces cannot be read, so an amount there counts as 0 and a selector selects no "
        "namespace: correct it"
    ),
}


@pytest.mark.parametrize(("fault", "sentence"), SENTENCES.items())
def test_each_fault_has_a_sentence_that_says_what_repairs_it(fault: Finding, sentence: str) -> None:
    assert queue_status.sentence(fault) == sentence


def test_faults_make_a_queue_invalid_and_the_first_is_the_reason() -> None:
    faults = (
        Finding("vision", Fault.LIMIT_BELOW_GUARANTEE, (GPU,), 24, 16),
        Finding("vision", Fault.OMITS_RESOURCE, ("cpu",)),
    )
    valid = said("vision", ML, VISION, faults=faults)["Valid"]
    assert (valid.holds, valid.reason) == (False, "LimitBelowGuarantee")
    assert valid.message.count(";") == 1
    valid = said("vision", ML, VISION)["Valid"]
    assert (valid.holds, valid.reason) == (True, "Declared")


@pytest.mark.parametrize(
    ("changed", "reason", "words"),
    [
        ({"is_terminating": True}, "Deleting", "goes once no gang is charged"),
        ({"stop": Stop.HOLD}, "Held", "gangs that run go on"),
        ({"stop": Stop.DRAIN}, "Draining", "created after the drain began"),
        ({"parent": "nowhere"}, "Held", "its parent cannot be used"),
    ],
)
def test_a_queue_says_why_it_starts_nothing(
    changed: dict[str, Any], reason: str, words: str
) -> None:
    accepting = said("vision", ML, replace(VISION, **changed))["Accepting"]
    assert (accepting.holds, accepting.reason) == (False, reason)
    assert words in accepting.message
    assert "above it" not in accepting.message
    below = said("vision", replace(ML, **changed), VISION)["Accepting"]
    assert (below.holds, below.reason) == (False, reason)
    assert below.message.startswith("queue ml above it: ")


def test_a_queue_accepts_gangs_itself_or_below() -> None:
    assert said("vision", ML, VISION)["Accepting"].message == "gangs start here"
    parent = said("ml", ML, VISION)["Accepting"]
    assert (parent.holds, parent.message) == (True, "gangs start in the queues below it")


def test_a_queue_says_whether_it_is_empty() -> None:
    assert said("ml", ML)["Empty"].holds
    assert not said("ml", ML, is_empty=False)["Empty"].holds


def test_only_a_queue_in_shadow_says_what_it_would_have_stopped() -> None:
    gangs = [GangKey("ml", name) for name in "abcdefg"]
    assert "WouldStop" not in said("vision", ML, VISION, beyond=gangs)
    shadow = replace(VISION, mode=QueueMode.SHADOW)
    would = said("vision", ML, shadow)["WouldStop"]
    assert (would.holds, would.reason) == (False, "WithinLimit")
    would = said("vision", ML, shadow, beyond=gangs)["WouldStop"]
    assert (would.holds, would.reason) == (True, "BeyondLimit")
    assert would.message.endswith("stopped ml/a, ml/b, ml/c, ml/d, ml/e, 2 more")


USE = QueueUse(
    "vision",
    charged=Resources.of({GPU: 40, "cpu": 1500, "pods": 5}),
    covered=Resources.of({GPU: 16}),
    borrowed=Resources.of({GPU: 24}),
    waiting=3,
    share=Fraction(129, 1000),
)
EMPTY = QueueCondition(ConditionType.EMPTY, holds=False, reason="Charged", message="x" * 900)


def status(observed: Any, *conditions: QueueCondition, at: str = "noon") -> dict[str, Any]:
    queue = replace(VISION, guaranteed=(("memory", 1 << 30),))
    made = queue_status.status(
        queue, USE, conditions, observed, generation=4, scheduler="tutti", at=at
    )
    return dict(made)


def test_a_status_has_the_figures_of_what_is_named_or_used() -> None:
    made = status({})
    assert (made["waiting"], made["share"]) == (3, "12%")
    assert made["use"] == "0/- memory, 40/48 nvidia.com/gpu"
    assert [entry["name"] for entry in made["resources"]] == ["cpu", "memory", GPU, "pods"]
    assert made["resources"][2] == {
        "name": GPU,
        "charged": "40",
        "covered": "16",
        "borrowed": "24",
    }
    assert made["resources"][0]["charged"] == "1500m"


def test_a_condition_keeps_the_time_of_its_last_turn() -> None:
    first = status({}, EMPTY)
    (line,) = first["conditions"]
    assert (line["lastTransitionTime"], line["status"], len(line["message"])) == (
        "noon",
        "False",
        800,
    )
    assert status(first, EMPTY, at="later") == first
    turned = status(first, replace(EMPTY, holds=True), at="later")
    assert turned["conditions"][0]["lastTransitionTime"] == "later"
    torn: Any = {"conditions": [{"type": "Empty", "status": "False"}, "?"]}
    assert status(torn, EMPTY, at="now")["conditions"][0]["lastTransitionTime"] == "now"


def test_only_a_condition_that_turns_is_news() -> None:
    first = status({}, EMPTY)
    assert queue_status.is_news(first, {})
    assert not queue_status.is_news({**first, "waiting": 9}, first)
    assert queue_status.is_news(status(first, replace(EMPTY, reason="Other")), first)


def test_a_queue_of_which_a_plan_says_nothing_uses_nothing() -> None:
    assert queue_status.percent(queue_status.NO_USE) == "0%"
    assert queue_status.NO_USE.charged == NOTHING
