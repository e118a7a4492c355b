"""Drivers of Spark that wait: their configuration is read, and their PodGroup made, once."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tutti.kube import errors
from tutti.model.applications import ApplicationPod, ConfigMapKey
from tutti.model.cluster import Member, Phase
from tutti.model.decisions import Assignment
from tutti.model.keys import GangKey, NodeName, PodKey
from tutti.spark.pod_group_creator import FIRST_SECONDS, LONGEST_SECONDS, PodGroupCreator

from ..harness.builders import NAMESPACE, member, node, shape
from ..harness.fakes import Clock, Crash, FakeCluster, Fault, Life

APP = "spark-1"
CONF, TEMPLATE = "drv-conf-map", "drv-podspec-conf-map"
WHOLE = GangKey(NAMESPACE, APP)
OWN = {"spark-role": "executor", "spark-exec-id": "0", "spark-exec-resourceprofile-id": "0"}
ALONE = {"spark.executor.instances": "2", "spark.kubernetes.scheduler.name": "tutti"}


def driver(name: str = "drv", app: str = APP, **changes: Any) -> Member:
    spark = ApplicationPod(app, "driver", ConfigMapKey(CONF, "spark.properties"))
    made = member(name, shape(cpu=1), role="driver")
    return replace(made, application=spark, is_driver=True, **changes)


def executor(number: int, **marks: str) -> Member:
    said = tuple(sorted((f"tutti.dev/{name}", value) for name, value in marks.items()))
    made = member(f"exec-{number}", shape(cpu=1), role="executor")
    return replace(made, application=ApplicationPod(APP, "executor", annotations=said))


class Played:
    """A cluster with one node, and an operator that declares gangs."""

    def __init__(self, *, is_declaring: bool = True) -> None:
        self.cluster, self.clock = FakeCluster(), Clock()
        self.cluster.add(node("n1", cpu=8, memory=64))
        self.is_declaring = is_declaring
        self.life = self.begin()

    def begin(self) -> Life:
        """Begin a new life of the operator."""
        self.life = Life(self.cluster, self.clock, is_declaring=self.is_declaring)
        return self.life

    def keep(self, properties: Mapping[str, str], name: str = CONF) -> None:
        """Create or replace the driver's ConfigMap."""
        text = "".join(f"{key}={value}\n" for key, value in properties.items())
        self.cluster.config_maps[NAMESPACE, name] = {"spark.properties": text}

    async def submit(self, member: Member) -> None:
        """Create a pod, and let the operator see it."""
        self.cluster.add_pod(replace(member, created=self.clock.now))
        self.life.watch.catch_up()
        await self.life.turn()

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, with a turn at the end."""
        self.clock.now += seconds
        await self.life.turn()

    def pod(self, name: str = "drv") -> Member:
        """One pod as it is."""
        return self.cluster.pods[PodKey(NAMESPACE, name)]


async def test_a_driver_gets_the_podgroup_that_its_configuration_says() -> None:
    played = Played()
    played.keep({**ALONE, "spark.executor.cores": "3"})
    await played.submit(driver())
    body = played.cluster.declared[WHOLE]
    assert body["spec"]["roles"][1] == {
        "name": "executor",
        "minMember": 2,
        "template": {"resources": {"cpu": "3", "memory": "1408Mi"}, "labels": OWN},
    }
    assert body["metadata"]["ownerReferences"][0]["uid"] == played.pod().uid
    calls = list(played.cluster.calls)
    assert calls[:2] == ["read_text", "declare"]
    await played.life.settle()
    assert played.cluster.calls.count("read_text") == 1
    assert played.cluster.calls.count("declare") == 1


async def test_a_driver_whose_executors_are_not_ours_starts_in_the_same_cycle() -> None:
    played = Played()
    played.keep({"spark.kubernetes.driver.scheduler.name": "tutti"})
    await played.submit(driver())
    assert played.pod().node == NodeName("n1")
    assert played.cluster.broken == []


async def test_a_configmap_that_is_not_there_yet_is_waited_for() -> None:
    played = Played()
    await played.submit(driver())
    assert played.pod().node is None
    assert played.cluster.declared == {}
    played.keep({})
    await played.pass_by(FIRST_SECONDS / 2)
    assert played.cluster.calls.count("read_text") == 1
    await played.pass_by(FIRST_SECONDS / 2)
    assert WHOLE in played.cluster.declared
    await played.life.settle()
    assert played.pod().node == NodeName("n1")


async def test_tries_become_rarer_and_never_end() -> None:
    played = Played()
    await played.submit(driver())
    for _ in range(600):
        await played.pass_by(1.0)
    tries = played.cluster.calls.count("read_text")
    assert 600 / LONGEST_SECONDS <= tries <= 600 / LONGEST_SECONDS + 10
    assert await played.life.turn() is not None  # the next try is due some time


async def test_the_driver_says_why_it_waits_and_again_when_that_changes() -> None:
    played = Played()
    await played.submit(driver())
    await played.pass_by(5.0)
    said = played.pod().scheduled_condition
    assert said.reason == "WaitingForConfiguration"
    assert said.message == f"ConfigMap {CONF} does not exist yet"
    played.keep({**ALONE, "spark.executor.memory": "1.5g"})
    for _ in range(3):
        await played.pass_by(LONGEST_SECONDS)
    said = played.pod().scheduled_condition
    assert said.message.startswith(f"ConfigMap {CONF}: spark.executor.memory=1.5g: is not a size")
    assert played.pod().node is None


async def test_a_gated_driver_is_left_alone_until_its_gates_are_gone() -> None:
    played = Played()
    played.keep({})
    await played.submit(driver(gates=("spark",)))
    await played.life.settle()
    assert "read_text" not in played.cluster.calls
    played.cluster.change_pod("drv", gates=())
    played.life.watch.catch_up()
    await played.life.settle()
    assert played.pod().node == NodeName("n1")


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({"other": "x"}, f"ConfigMap {CONF} has no text spark.properties"),
        ({"spark.properties": "a=\\u12"}, f"ConfigMap {CONF}: line 1: \\u12 is no character"),
        (
            {
                "spark.properties": "spark.executor.instances=5000\n"
                "spark.kubernetes.scheduler.name=tutti"
            },
            "executors=5000: a gang has at most 5,000 members",
        ),
    ],
)
async def test_a_configmap_that_cannot_be_used_is_said(kept: dict[str, str], said: str) -> None:
    played = Played()
    played.cluster.config_maps[NAMESPACE, CONF] = kept
    await played.submit(driver())
    await played.pass_by(5.0)
    assert played.pod().scheduled_condition.message == said
    assert played.pod().node is None


async def test_a_driver_that_mounts_nothing_is_told_to_name_a_podgroup() -> None:
    played = Played()
    await played.submit(replace(driver(), application=ApplicationPod(APP, "driver")))
    await played.pass_by(5.0)
    assert played.pod().scheduled_condition.message.endswith("name a PodGroup for its pods")


async def test_a_pod_template_is_read_from_its_own_configmap() -> None:
    played = Played()
    file = {"spark.kubernetes.executor.podTemplateFile": "/opt/spark/pod-template/x.yml"}
    played.keep({**ALONE, **file})
    spark = replace(driver().application, template=ConfigMapKey(TEMPLATE, "podspec-configmap-key"))  # type: ignore[type-var]
    await played.submit(replace(driver(), application=spark))
    await played.pass_by(5.0)
    assert played.pod().scheduled_condition.message == f"ConfigMap {TEMPLATE} does not exist yet"
    text = "kind: Pod\nspec: {tolerations: [{key: spot, operator: Exists}]}"
    played.cluster.config_maps[NAMESPACE, TEMPLATE] = {"podspec-configmap-key": text}
    await played.pass_by(LONGEST_SECONDS)
    role = played.cluster.declared[WHOLE]["spec"]["roles"][1]
    assert role["template"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]


REFUSALS = {
    "read_text": f"ConfigMap {CONF} cannot be read: no rights",
    "declare": f"PodGroup {APP} cannot be made: no rights",
}


@pytest.mark.parametrize("call", REFUSALS)
async def test_a_refusal_is_said_and_tried_again_later(call: str) -> None:
    played = Played()
    played.keep({})
    refused = Fault(errors.Refused("no rights", status=403))
    played.cluster.fault = lambda _, name: refused if name == call else None
    await played.submit(driver())
    await played.pass_by(5.0)
    assert played.pod().scheduled_condition.message == REFUSALS[call]
    played.cluster.fault = lambda _number, _name: None
    await played.pass_by(LONGEST_SECONDS)
    await played.life.settle()
    assert played.pod().node == NodeName("n1")


@pytest.mark.parametrize("call", ["read_text", "declare"])
async def test_a_server_that_is_away_ends_the_cycle(call: str) -> None:
    played = Played()
    played.keep({})
    away = Fault(errors.Unavailable("no answer"))
    played.cluster.fault = lambda _, name: away if name == call else None
    await played.submit(driver())
    assert [str(problem) for problem in played.life.problems] == ["no answer"]
    played.cluster.fault = lambda _number, _name: None
    await played.life.settle()
    assert played.pod().node == NodeName("n1")


@pytest.mark.parametrize("is_committed", [False, True])
async def test_whoever_dies_at_the_creation_is_followed_by_one_who_ends_it(
    *, is_committed: bool
) -> None:
    """Once it is there, it is not made again."""
    played = Played()
    played.keep({})
    played.cluster.fault = lambda _, name: (
        Fault(Crash(), is_committed) if name == "declare" else None
    )
    with pytest.raises(Crash):
        await played.submit(driver())
    played.cluster.fault = lambda _number, _name: None
    await played.begin().settle()
    assert played.pod().node == NodeName("n1")
    assert played.cluster.calls.count("declare") == (1 if is_committed else 2)
    assert played.cluster.broken == []


async def test_a_podgroup_that_the_watch_has_not_shown_yet_is_waited_for() -> None:
    played = Played()
    played.keep({})
    lost = Fault(errors.Unavailable("the answer was lost", status=504), is_committed=True)
    played.cluster.fault = lambda _, name: lost if name == "declare" else None
    played.cluster.add_pod(driver())
    played.life.watch.catch_up("pending")
    await played.life.cycle.begin(played.life.term)
    await played.life.cycle.run_once(played.life.term)
    played.cluster.fault = lambda _number, _name: None
    played.clock.now += FIRST_SECONDS
    await played.life.cycle.run_once(played.life.term)
    assert played.cluster.calls.count("declare") == 2  # the second met the first
    await played.life.settle()
    assert played.pod().node == NodeName("n1")


async def test_the_podgroup_of_another_driver_is_in_the_way_until_it_is_gone() -> None:
    played = Played()
    played.keep({})
    await played.submit(driver("first"))
    await played.life.settle()
    played.cluster.delete_pod("first")
    await played.submit(driver("second"))
    await played.pass_by(5.0)
    assert played.pod("second").scheduled_condition.message == (
        f"there is a PodGroup {APP} already, and it is not this pod's"
    )
    played.cluster.delete_group(APP)  # as the garbage collector does
    await played.pass_by(LONGEST_SECONDS)
    await played.life.settle()
    assert played.pod("second").node == NodeName("n1")


async def test_executors_of_client_mode_are_a_gang_by_their_annotation() -> None:
    """Without one, each starts by itself."""
    played = Played()
    await played.submit(executor(1, executors="3"))
    assert played.cluster.declared[WHOLE]["spec"]["roles"] == [
        {
            "name": "executor",
            "minMember": 3,
            "template": {"resources": {"cpu": "1000m"}, "labels": {"spark-exec-id": "0"}},
        }
    ]
    await played.submit(executor(2, executors="3"))
    assert played.pod("exec-1").gang.name == "exec-1"  # nothing is written on the pods
    await played.submit(executor(3, executors="3"))
    await played.life.settle()
    assert [played.pod(f"exec-{n}").node for n in (1, 2, 3)] == [NodeName("n1")] * 3
    assert played.cluster.broken == []
    single = Played()
    await single.submit(executor(1))
    assert single.pod("exec-1").node == NodeName("n1")


async def test_where_nothing_is_declared_nothing_is_read_and_a_driver_starts_alone() -> None:
    played = Played(is_declaring=False)
    await played.submit(driver())
    await played.life.settle()
    assert played.pod().node == NodeName("n1")
    assert {"read_text", "declare"}.isdisjoint(played.cluster.calls)


async def test_a_driver_that_starts_alone_is_told_so_once() -> None:
    played = Played(is_declaring=False)
    await played.submit(driver())
    await played.life.settle()
    await played.pass_by(60.0)
    told = [event for event in played.cluster.events.values() if event["reason"] == "StartsAlone"]
    assert [one["involvedObject"]["name"] for one in told] == ["drv"]
    assert "spark.enabled" in told[0]["message"]


async def test_a_driver_that_runs_before_the_report_is_told_so_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played(is_declaring=False)
    bind = FakeCluster.bind

    async def bind_and_run(cluster: FakeCluster, assignment: Assignment) -> None:
        await bind(cluster, assignment)
        cluster.run_pods()
        played.life.watch.catch_up()

    monkeypatch.setattr(FakeCluster, "bind", bind_and_run)
    await played.submit(driver())
    await played.life.settle()
    assert played.pod().phase is Phase.RUNNING
    told = [event["reason"] for event in played.cluster.events.values()]
    assert told == ["StartsAlone"]


async def test_a_driver_that_gets_a_podgroup_is_not_told_that_it_starts_alone() -> None:
    played = Played()
    played.keep(ALONE)
    await played.submit(driver())
    await played.life.settle()
    assert "StartsAlone" not in {event["reason"] for event in played.cluster.events.values()}


async def test_a_pod_that_names_two_gangs_is_told_in_which_it_is() -> None:
    played = Played()
    for name in ("mine", APP):
        group = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"minMember": 1}}
        await played.cluster.declare(NAMESPACE, group)
    played.life.watch.catch_up()
    both = replace(
        executor(1), application=None, group="mine", other_gangs=(GangKey(NAMESPACE, APP),)
    )
    await played.submit(both)
    await played.life.settle()
    (told,) = [
        event for event in played.cluster.events.values() if event["reason"] == "SeveralGangs"
    ]
    started = "The pod is a member of PodGroup mine of tutti.dev. It also names"
    assert told["message"].startswith(started)


async def test_an_explicit_podgroup_of_the_applications_name_is_taken_as_it_is() -> None:
    played = Played()
    group = {"metadata": {"name": APP, "namespace": NAMESPACE}, "spec": {"minMember": 1}}
    await played.cluster.declare(NAMESPACE, group)
    played.life.watch.catch_up()
    await played.submit(driver())
    assert played.pod().node == NodeName("n1")
    assert "read_text" not in played.cluster.calls


async def test_many_drivers_take_turns() -> None:
    played = Played()
    for number in range(150):
        name = f"drv-{number:03}"
        played.cluster.add_pod(driver(name, app=f"spark-{number}"))
    played.life.watch.catch_up()
    assert await played.life.turn() == 0.0
    assert played.cluster.calls.count("read_text") == 100
    await played.life.turn()
    assert played.cluster.calls.count("read_text") == 150


async def test_drivers_that_fail_for_ever_keep_no_new_driver_from_its_podgroup() -> None:
    """They mount no ConfigMap that could be read, are older, and are due again and again."""
    played = Played()
    for number in range(250):
        name = f"bad-{number:03}"
        app = ApplicationPod(name, "driver", ConfigMapKey("none", "spark.properties"))
        played.cluster.add_pod(replace(driver(name), application=app))
    for _ in range(4):
        played.life.watch.catch_up()
        await played.life.turn()
        played.clock.now += 60.0
    played.keep(ALONE)
    new = replace(driver(), created=played.clock.now)
    played.cluster.add_pod(new)
    played.life.watch.catch_up()
    await played.life.turn()
    assert GangKey(NAMESPACE, APP) in played.cluster.groups


async def test_new_drivers_keep_no_driver_from_its_podgroup_that_was_tried_too_early() -> None:
    """A driver is tried before its ConfigMap comes, and drivers that fail come and go for ever."""
    played = Played()
    await played.submit(driver())
    for turn in range(3):
        played.keep(ALONE)
        for number in range(120):
            name = f"bad-{turn}-{number:03}"
            app = ApplicationPod(name, "driver", ConfigMapKey("none", "spark.properties"))
            played.cluster.add_pod(replace(driver(name), application=app))
        played.clock.now += 60.0
        played.life.watch.catch_up()
        await played.life.turn()
    assert GangKey(NAMESPACE, APP) in played.cluster.groups


def slow() -> tuple[Played, PodGroupCreator, asyncio.Event]:
    """A driver that waits, whom a declarer without patience sees, and what lets calls end."""
    played, answer = Played(), asyncio.Event()
    played.keep(ALONE)

    async def pause(_number: int, _is_committed: bool) -> None:  # noqa: FBT001 - as it is called
        await answer.wait()

    played.cluster.pause = pause
    played.cluster.add_pod(driver())
    played.life.watch.catch_up()
    declarer = PodGroupCreator(
        played.life.state,
        played.cluster,
        scheduler="tutti",
        clock=played.clock,
        in_flight=4,
        patience=0.0,
    )
    return played, declarer, answer


async def test_a_cycle_does_not_wait_for_whoever_takes_long() -> None:
    """What was begun goes on beside it, is not begun again, and is heard of later."""
    played, declarer, answer = slow()
    while "read_text" not in played.cluster.calls:
        await declarer.declare()
    for _ in range(3):
        await declarer.declare()
        assert declarer.next_retry() == 0.0
    assert played.cluster.calls.count("read_text") == 1
    played.cluster.fault = lambda _, name: (
        Fault(errors.Unavailable("no answer")) if name == "declare" else None
    )
    answer.set()

    async def hear() -> None:
        while True:
            await declarer.declare()

    with pytest.raises(errors.Unavailable, match="no answer"):
        await hear()
    assert played.cluster.declared == {}


async def test_what_goes_on_beside_cycles_is_left_to_the_next_leader(
    caplog: pytest.LogCaptureFixture,
) -> None:
    played, declarer, answer = slow()
    declarer.forget()  # nothing
    while "read_text" not in played.cluster.calls:
        await declarer.declare()
    declarer.forget()
    answer.set()
    going_on = asyncio.all_tasks() - {asyncio.current_task()}
    assert going_on
    await asyncio.wait(going_on)
    assert played.cluster.declared == {}
    assert caplog.records == []


class Counted(ThreadPoolExecutor):
    """Threads that know how many at a time were asked for."""

    asked = most = 0

    def submit(self, *call: Any, **about: Any) -> Future[Any]:
        """Count those that have not answered yet."""
        self.asked += 1
        self.most = max(self.most, self.asked)
        made: Future[Any] = super().submit(*call, **about)
        made.add_done_callback(self._answered)
        return made

    def _answered(self, _made: Future[Any]) -> None:
        self.asked -= 1


async def test_large_texts_take_one_thread_at_a_time() -> None:
    """Whoever plans needs one as well."""
    played, threads = Played(), Counted()
    asyncio.get_running_loop().set_default_executor(threads)
    # None of them is read within the moment that it takes to ask for the next.
    played.keep({**ALONE, **{f"x{n}": "y" * 40 for n in range(1_000)}})
    for number in range(5):
        played.cluster.add_pod(driver(f"drv-{number}", app=f"spark-{number}"))
    played.life.watch.catch_up()
    while len(played.cluster.declared) < 5:
        await played.life.turn()
    assert threads.most == 1


APART = """
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - {topologyKey: rack, labelSelector: {matchLabels: {team: etl}}}
"""
EVEN = """
  topologySpreadConstraints:
    - maxSkew: 1
      minDomains: 2
      topologyKey: rack
      whenUnsatisfiable: DoNotSchedule
      labelSelector: {matchLabels: {spark-role: executor}}
      matchLabelKeys: [team]
"""


@pytest.mark.parametrize("rule", [APART, EVEN])
async def test_rules_of_a_pod_template_hold_for_the_room_of_executors_to_come(rule: str) -> None:
    """They are told by labels that a property gives them, and that Spark does."""
    own = {
        "podTemplateFile": "/x.yml",
        "label.team": "etl",
        "node.selector.pool": "x",
    }
    played = Played()
    more = {f"spark.kubernetes.executor.{name}": value for name, value in own.items()}
    played.keep({**ALONE, **more})
    played.cluster.config_maps[NAMESPACE, TEMPLATE] = {"x.yml": f"kind: Pod\nspec:{rule}"}
    spark = replace(driver().application, template=ConfigMapKey(TEMPLATE, "x.yml"))  # type: ignore[type-var]
    for name in ("n2", "n3"):
        played.cluster.add(node(name, cpu=8, memory=64).labelled(rack="a", pool="x"))
    await played.submit(replace(driver(), application=spark))
    await played.life.settle()
    assert played.pod().node is None
    played.cluster.add(node("n4", cpu=8, memory=64).labelled(rack="b", pool="x"))
    played.life.watch.catch_up()
    for _ in range(2):
        await played.life.turn()
    assert played.pod().node is not None
    (held,) = played.cluster.reservations.values()
    on = {slot.node: slot.count for slot in held.slots}
    assert sorted(on.values()) == [1, 1]
    assert NodeName("n4") in on
