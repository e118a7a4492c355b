"""The console's answers to its page: data, streams, and sentences for what makes no sense."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tutti import dump
from tutti.console.observation import Files, Observation, PlanAnswer, WhatIf, WrongQuestion
from tutti.console.planning_jobs import PlanningJobs
from tutti.model.cluster import Snapshot
from tutti.model.keys import GangKey

from ...harness.builders import gang, node, single, snapshot_of
from ...harness.console import console, console_of
from ..cli.test_plan import SETUP

PICTURE = snapshot_of(node("n1", cpu=4), gang("a").of(2, cpu=1), gang("b").of(9, cpu=1))
DUMP = dump.write(PICTURE, SETUP)
GANG = GangKey("ml", "a")


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/api/node?name=none", "there is no node none"),
        ("/api/node", "there is no node "),
        ("/api/gang?name=ml/none", "there is no gang ml/none"),
        ("/api/explain?gang=ml/none", "there is no gang ml/none"),
    ],
)
async def test_what_is_not_there_is_said(path: str, sentence: str) -> None:
    async with console_of(DUMP) as client:
        response = await client.raw(path)
        assert response.status == 422
        assert await response.json() == {"problem": sentence}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"addNodes": [{"count": 1, "like": "n9"}]}, "n9: there is no such node"),
        ({"addNodes": [{"count": 0, "like": "n1"}]}, "between 1 and"),
        ({"addNodes": [{"count": "x", "like": "n1"}]}, "cannot be read"),
        ({"addNodes": "x"}, "cannot be read"),
        ({"addNodes": 7}, "cannot be read"),
        ({"priorities": [{"gang": "ml/none", "priority": 1}]}, "there is no such gang"),
        ({"priorities": [{}]}, "cannot be read"),
        ({"preemption": "Sometimes"}, "cannot be read"),
        ({"objective": ["gangs"]}, "cannot be read"),
        ({"manifest": "a: [b"}, "the manifest"),
        ({"manifest": "kind: Pod"}, "the manifest"),
    ],
)
async def test_a_change_that_makes_no_sense_is_answered_with_a_sentence(
    body: dict[str, Any], words: str
) -> None:
    async with console_of(DUMP) as client:
        assert words in (await client.post("/api/what-if", body))["problem"]


async def test_a_question_about_a_pod_is_not_about_the_pod_group_of_its_name() -> None:
    of = snapshot_of(node("n1", cpu=4), gang("a").of(9, cpu=1), single("a", cpu=9))
    async with console_of(dump.write(of, SETUP)) as client:
        change = {"priorities": [{"gang": "ml/a/Pod", "priority": 7}]}
        plan = (await client.post("/api/what-if", change))["plan"]
        priorities = {row["kind"]: row["priority"] for row in plan["after"]["gangs"]}
        assert priorities == {"PodGroup": 0, "Pod": 7}


async def test_who_says_nothing_or_nonsense_gets_the_whole_map() -> None:
    async with console_of(DUMP) as client:
        for query in ({}, {"since": "x"}, {"since": "-1"}, {"since": "0"}):
            assert (await client.get("/api/map", **query))["whole"]
        assert (await client.get("/api/map", since="1"))["rows"] == []


async def test_changes_come_as_server_sent_events() -> None:
    async with console_of(DUMP) as client:
        response = await client.raw("/api/changes")
        assert response.content_type == "text/event-stream"
        assert await response.content.readline() == b"event: changed\n"
        news = json.loads((await response.content.readline()).removeprefix(b"data: "))
        assert (news["version"], news["missing"]) == (1, [])


async def test_an_explanation_tells_its_progress_line_by_line() -> None:
    async with console_of(DUMP) as client:
        *progress, last = await client.explain("ml/b")
        assert [line["plans"] for line in progress] == list(range(1, len(progress) + 1))
        assert progress
        assert last["answer"]["sentences"][0].startswith("ml/b waits")


class Slow:
    """Answers that wait until a test lets them go."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.plans = 0
        self.has_ended = threading.Event()

    def gangs(self, observation: Observation) -> tuple[dict[str, Any], dict[GangKey, Any]]:
        """See ``Answers.gangs``."""
        raise NotImplementedError(observation)

    def room(self, observation: Observation) -> dict[str, Any]:
        """See ``Answers.room``."""
        raise NotImplementedError(observation)

    def settings(self) -> dict[str, Any]:
        """See ``Answers.settings``."""
        return {}

    def queues(self, observation: Observation) -> dict[str, Any]:
        """See ``Answers.queues``."""
        raise NotImplementedError(observation)

    def plan(self, observation: Observation) -> PlanAnswer:
        """See ``Answers.plan``."""
        self.plans += 1
        return PlanAnswer(
            {
                "version": observation.version,
                "proved": False,
                "levels": [{"gap": 0.0}, {"gap": 0.25}, {"gap": None}],
                "gangs": [{"answer": "starts"}, {"answer": "waits"}, {"answer": "waits"}],
            },
            [],
        )

    def what_if(self, observation: Observation, changes: WhatIf) -> PlanAnswer:
        """See ``Answers.what_if``."""
        raise WrongQuestion(f"{observation.version} {changes}")

    def explain(
        self, _observation: Observation, _gang: GangKey, planned: Callable[[], None]
    ) -> dict[str, Any]:
        """See ``Answers.explain``."""
        try:
            planned()
            self.may_go.wait(10)
            planned()
            return {}
        finally:
            self.has_ended.set()


async def test_a_plan_is_kept_until_a_fresh_one_is_asked_for() -> None:
    answers = Slow()
    jobs = PlanningJobs(answers, lambda: 0.0)
    old, new = (Observation(version, Snapshot(0.0)) for version in (1, 2))
    assert (await jobs.plan(old, is_fresh=False)).version == 1
    assert (await jobs.plan(new, is_fresh=False)).version == 1
    assert (await jobs.plan(new, is_fresh=True)).version == 2
    assert (await jobs.plan(new, is_fresh=True)).version == 2
    assert answers.plans == 2
    assert jobs.last[0] == {
        "takenAt": 0.0,
        "seconds": 0.0,
        "proved": False,
        "gap": 0.25,
        "starts": 1,
        "waits": 2,
    }
    assert len(jobs.last) == 2


async def test_an_explanation_ends_when_its_reader_has_left() -> None:
    """The thread plans no further, and the next question gets its turn."""
    answers = Slow()
    jobs = PlanningJobs(answers, lambda: 0.0)
    told: asyncio.Queue[int] = asyncio.Queue()
    observation = Observation(1, Snapshot(0.0))
    job = asyncio.create_task(jobs.explain(observation, GANG, told.put_nowait))
    assert await told.get() == 1
    job.cancel()
    await asyncio.sleep(0)
    answers.may_go.set()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert answers.has_ended.is_set()
    assert told.empty()
    await jobs.plan(observation, is_fresh=True)
    assert answers.plans == 1


async def test_a_bug_in_an_answer_is_said_and_ends_nothing() -> None:
    class Broken(Slow):
        def explain(self, *_: object) -> dict[str, Any]:
            raise ValueError("a bug")

    async with console(Files("x", PICTURE), Broken()) as client:
        await client.open(client.session.token)
        assert await client.explain("ml/a") == [{"problem": "a bug"}]
        assert (await client.raw("/api/waiting")).status == 500
        assert (await client.raw("/api/about")).status == 200
