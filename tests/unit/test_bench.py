"""The benchmark's arithmetic: scenarios, percentiles, the audit log, and what a ratio comes to."""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tutti.reporting.metrics import Metrics

from ..bench.e2e import plays, sizes, usage
from ..bench.e2e.__main__ import main
from ..bench.e2e.accounts import Account, Measured
from ..bench.e2e.contenders import CONTENDERS, quantile
from ..bench.e2e.ledger import Ledger, Write
from ..bench.e2e.plots import picture, write
from ..bench.e2e.scenarios import scenarios
from ..bench.e2e.tables import table_of
from ..bench.e2e.verdicts import plain_values, verdicts
from ..bench.load.figures import percentile
from ..bench.load.gangs import Form, Load, Member, gang_of

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table


def test_the_scenarios_are_those_that_were_asked_for() -> None:
    known = scenarios(1.0)
    assert {
        name: (one.nodes, one.pods, one.bound_before, one.waiting, one.running)
        for name, one in known.items()
    } == {
        "a": (1_000, 3_000, 0, 0, 0),
        "b": (5_000, 10_000, 0, 0, 0),
        "c": (1_000, 1_000, 0, 0, 0),
        "d": (5_000, 8, 50_000, 0, 0),
        "e": (1_000, 3_000, 0, 20_000, 0),
        "f": (1_000, 8, 0, 50_000, 0),
        "g": (500, 1, 0, 0, 4_000),
        "h": (500, 4_000, 0, 0, 4_000),
        "i": (500, 500, 0, 0, 4_000),
        "j": (200, 1_600, 0, 0, 0),
        "k": (200, known["k"].pods, 0, 0, 0),
    }
    assert set(known["a"].sizes) == {8}
    assert (min(known["b"].sizes), max(known["b"].sizes)) == (4, 512)
    assert len(known["c"].sizes) == 1


def test_pods_that_only_wait_come_in_gangs_that_are_never_whole_mixed_with_the_others() -> None:
    waiting = sizes.waiting("r0-", 2_500)
    assert list(waiting.values()) == [1_000, 1_000, 500]
    assert not sizes.waiting("r0-", 0)
    some: list[Any] = list(range(3))
    others: list[Any] = list("abcdefg")
    mixed: list[Any] = list(plays.mixed(some, others))
    assert sorted(map(str, mixed)) == sorted(map(str, [*some, *others]))
    assert mixed[0] == 0
    assert mixed[-1] == "g"
    assert [one for one in mixed if one in others] == others
    assert list(plays.mixed(some, [])) == some


def test_a_percentile_of_a_histogram_is_the_bound_of_its_bucket() -> None:
    metrics = Metrics()
    for seconds in [0.02] * 98 + [0.2, 3.0]:
        metrics.watch_delay(seconds)
    text, name = metrics.text().decode(), "tutti_watch_delay_seconds"
    assert [quantile(text, name, share) for share in (0.5, 0.99, 1.0)] == [0.025, 0.25, 5.0]
    assert math.isnan(quantile(Metrics().text().decode(), name, 0.99))


@pytest.mark.parametrize("scale", [0.001, 0.01, 0.37, 1.0])
def test_every_scale_has_gangs_that_fit_the_nodes(scale: float) -> None:
    for scenario in scenarios(scale).values():
        assert scenario.sizes
        # Gangs that arrive come one after the other.
        most = max(scenario.sizes) if scenario.arrivals else scenario.pods
        assert 0 < most <= scenario.gpus


def test_the_mixed_gangs_are_the_same_in_every_run() -> None:
    assert scenarios(1.0)["b"].sizes == scenarios(1.0)["b"].sizes


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([3.0], 99, 3.0), ([2.0, 1.0], 50, 1.0), (list(range(1, 101)), 99, 99), ([1, 5], 0, 1)],
)
def test_a_percentile_is_one_of_the_values(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == expected


def test_the_percentile_of_nothing_is_no_number() -> None:
    assert math.isnan(percentile([], 50))


def _line(name: str, subresource: str = "", code: int = 201, verb: str = "create") -> bytes:
    about = {"resource": "pods", "name": name} | (
        {"subresource": subresource} if subresource else {}
    )
    entry = {
        "verb": verb,
        "user": {"username": "somebody"},
        "objectRef": about,
        "responseStatus": {"metadata": {}, "code": code},
        "stageTimestamp": "2026-01-01T00:00:01.500000Z",
    }
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def test_the_ledger_reads_whole_lines_only_and_forgets_at_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(_line("before", "binding"))
    ledger = Ledger(path)
    assert ledger.bound == 0
    whole, torn = _line("a-0"), _line("a-0", "binding")
    with path.open("ab") as log:
        log.write(whole + torn[:50])
        log.flush()
        assert (ledger.follow(), ledger.bound) == (1, 0)
        log.write(torn[50:] + _line("a-1", "binding", code=409))
    assert (ledger.follow(), ledger.bound) == (2, 1)
    written = [(write.resource, write.name) for write in ledger.writes()]
    assert written == [("pods", "a-0"), ("pods/binding", "a-0")]
    ledger.close()


def test_bindings_are_handed_out_once_and_none_of_before_the_mark(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"")
    ledger = Ledger(path)
    with path.open("ab") as log:
        log.write(_line("a-0", "binding") + _line("a-1") + _line("a-1", "binding", code=409))
        log.flush()
        ledger.follow()
        assert [write.name for write in ledger.bindings()] == ["a-0"]
        assert list(ledger.bindings()) == []
        log.write(_line("a-2", "binding"))
        log.flush()
        ledger.follow()
        ledger.mark()
        assert list(ledger.bindings()) == []
        log.write(_line("a-3", "binding"))
    ledger.follow()
    assert [write.name for write in ledger.bindings()] == ["a-3"]
    ledger.close()


def test_a_process_has_used_cpu_and_memory() -> None:
    import os  # noqa: PLC0415 - only this test is a process

    mine = usage.of(os.getpid())
    assert mine.cpu_seconds > 0
    assert mine.peak_megabytes > 10


BIG = scenarios(1.0)["a"]
SPENT = usage.Spent(cpu_seconds=1.0, server_cpu_seconds=2.0, peak_megabytes=3.0)


def _account(*writes: Write, scheduler: str = "tutti") -> Account:
    sizes = {"t-g0": 64, "t-g1": 2}
    created = [
        Write("admin", "create", "pods", f"{g}-{i}", i) for g, n in sizes.items() for i in range(n)
    ]
    return Account(
        CONTENDERS[scheduler], sizes, {"uid-0": "t-g0", "uid-1": "t-g1"}, [*created, *writes]
    )


def _ours(resource: str, name: str, at: float = 100.0, verb: str = "create") -> Write:
    (user,) = CONTENDERS["tutti"].users
    return Write(user, verb, resource, name, at)


def test_a_gang_waits_from_its_last_creation_to_its_last_binding() -> None:
    account = _account(_ours("pods/binding", "t-g1-0", 5.0), _ours("pods/binding", "t-g1-1", 3.5))
    one = account.measured(BIG, SPENT)
    assert (one.bound, one.wait_p50) == (2, 4.0)
    assert one.wait_p99 == math.inf, "the other gang was never bound"


def test_writes_are_those_of_the_scheduler_and_go_to_the_gang_they_are_about() -> None:
    account = _account(
        _ours("reservations", "uid-0"),
        _ours("reservations", "uid-0", verb="delete"),
        _ours("podgroups/status", "t-g0", verb="patch"),
        _ours("events", "t-g0.18f0"),
        _ours("events", "t-g0-63.18f0"),
        _ours("pods/binding", "t-g0-7"),
        _ours("reservations", "uid-1"),
        _ours("events", "t-g1.18f0"),
        Write("somebody", "patch", "podgroups/status", "t-g0", 1.0),
    )
    one = account.measured(BIG, SPENT)
    assert one.large_writes_per_pod == 6 / 64
    assert one.writes_per_pod == 8 / BIG.pods
    assert one.writes["create events"] == 3


def test_each_pod_of_low_priority_that_ends_counts_once() -> None:
    scene = scenarios(1.0)["h"]
    account = _account(
        _ours("pods/eviction", "running-1"),
        _ours("pods/eviction", "running-1"),
        _ours("pods", "running-2", verb="delete"),
        _ours("pods", "t-g1-0", verb="delete"),
        Write("somebody", "delete", "pods", "running-3", 1.0),
    )
    assert account.measured(scene, SPENT).ended == 2


def test_nothing_bound_is_no_speed_and_an_endless_wait() -> None:
    one = _account().measured(BIG, SPENT)
    assert (one.bound, one.pods_per_second, one.wait_p50) == (0, 0.0, math.inf)
    start = _account().started(BIG, began=0.0, server_cpu=0.0, cost=usage.Usage(1.0, 2.0))
    assert (start.pods_per_second, start.start_seconds) == (0.0, math.inf)


def test_a_fallen_scheduler_loses_every_ratio() -> None:
    fallen = Measured.fallen("tutti", BIG)
    rounds = [fallen, _one("kube-scheduler", "a", pods_per_second=100.0)]
    assert verdicts(rounds)[0].word == "not reached"
    assert "never" in _text(table_of(BIG, rounds))


def _text(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(table)
    return out.getvalue()


def _one(contender: str, scenario: str, **figures: float) -> Measured:
    return Measured(contender, scenario, pods=8, bound=8, **figures)  # type: ignore[arg-type]


def test_a_ratio_is_of_medians_and_knows_its_side() -> None:
    rounds = [
        *(
            _one("tutti", "a", pods_per_second=n, wait_p99=1.0, cpu_seconds=3.0)
            for n in (90, 200, 1_000)
        ),
        *(_one("kube-scheduler", "a", pods_per_second=n, cpu_seconds=7.5) for n in (80, 80, 1)),
        _one("bind-loop", "a", pods_per_second=320),
        _one("coscheduling", "a", wait_p99=math.inf),
        _one("native-gangs", "a", wait_p99=10.0),
    ]
    speed, share, p99, unmeasured, *_, cpu = verdicts(rounds)
    assert (speed.value, speed.word) == (2.5, "reached, and the aim")
    assert (share.value, share.word) == (0.625, "reached")
    assert (p99.value, p99.word) == (0.1, "reached, and the aim")
    assert (cpu.value, cpu.word) == (0.4, "reached")
    assert unmeasured.word == "not measured"


def test_a_picture_has_a_panel_for_each_figure_and_a_bar_for_each_scheduler(tmp_path: Path) -> None:
    rounds = [
        _one("tutti", "a", pods_per_second=200.0, wait_p99=1.0, watch_delay=0.5),
        _one("coscheduling", "a", pods_per_second=0.0, wait_p99=math.inf),
    ]
    titles = [panel.get_title() for panel in picture(BIG, rounds).axes]
    assert "watch p99 s" not in titles, "only Tutti has it"
    assert "watch p99 s" in [panel.get_title() for panel in picture(BIG, rounds[:1]).axes]
    speed, waiting = picture(BIG, rounds).axes[:2]
    assert (speed.get_title(), waiting.get_title()) == ("pods/s", "p99 s")
    assert len(speed.patches) == len(waiting.patches) == 2
    assert speed.patches[0].get_facecolor() != speed.patches[1].get_facecolor()
    assert [text.get_text() for text in waiting.texts] == ["1.00", "never"]
    (path,) = write([BIG], rounds, tmp_path / "plots")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_where_pods_end_the_table_says_how_many_and_when_all_others_are_bound() -> None:
    scene = scenarios(1.0)["h"]
    text = _text(table_of(scene, [_one("tutti", "h", pods_per_second=2.0, ended=9.0)]))
    assert "694 s by KAI-Scheduler on other machines" in " ".join(text.split())
    assert "all bound s" in text
    assert "4.00" in text
    assert "ended" in text
    assert "9.00" in text
    assert "never" in _text(table_of(scene, [_one("tutti", "h", pods_per_second=0.0)]))


def test_a_ratio_to_a_scheduler_that_binds_nothing_is_not_measured() -> None:
    rounds = [_one("tutti", "a", pods_per_second=1.0), _one("bind-loop", "a", pods_per_second=0.0)]
    assert verdicts(rounds)[1].word == "not measured"


def test_a_gang_that_is_never_bound_reaches_nothing() -> None:
    rounds = [_one("tutti", "a", wait_p99=math.inf), _one("native-gangs", "a", wait_p99=2.0)]
    assert verdicts(rounds)[2].word == "not reached"
    as_json = json.dumps(plain_values(rounds, verdicts(rounds)), allow_nan=False)
    assert json.loads(as_json)["rounds"][0]["wait_p99"] is None


@pytest.mark.parametrize("form", Form)
def test_every_form_of_a_gang_is_one_group_at_most_and_all_its_pods(form: Form) -> None:
    load = Load(form, "ml", Member(gpus=2), {"app": "x"})
    group, pods = load.group("g-1", 3), list(load.pods("g-1", 3))
    assert (group is None) == (form in {Form.PLAIN, Form.KUEUE})
    assert [pod["metadata"]["name"] for pod in pods] == ["g-1-0", "g-1-1", "g-1-2"]
    assert {gang_of(pod["metadata"]["name"]) for pod in pods} == {"g-1"}
    for pod in pods:
        container = pod["spec"]["containers"][0]
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_pods_of_volcano_and_kueue_name_their_group() -> None:
    volcano = next(Load(Form.VOLCANO, "ml", Member(), {"app": "x"}).pods("g", 3))["metadata"]
    assert volcano["annotations"] == {"scheduling.k8s.io/group-name": "g"}
    assert volcano["labels"] == {"app": "x"}
    kueue = next(Load(Form.KUEUE, "ml", Member(), {"app": "x"}).pods("g", 3))["metadata"]
    assert kueue["annotations"] == {"kueue.x-k8s.io/pod-group-total-count": "3"}
    assert kueue["labels"] == {
        "app": "x",
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/pod-group-name": "g",
    }


def test_members_select_nodes_if_they_are_told_to() -> None:
    selector = {"zone": "a"}
    for member, expected in ((Member(), None), (Member(node_selector=selector), selector)):
        pod = next(Load(Form.PLAIN, "ml", member, {}).pods("g", 1))
        assert pod["spec"].get("nodeSelector") == expected


def test_all_users_of_a_scheduler_count() -> None:
    users = sorted(CONTENDERS["kueue"].users)
    assert users == ["kueue", "system:kube-scheduler"]
    writes = [Write(user, "patch", "pods", "t-g0-1", 1.0) for user in users]
    account = _account(*writes, scheduler="kueue")
    assert account.measured(BIG, SPENT).writes_per_pod == 2 / BIG.pods


@pytest.mark.parametrize(
    "arguments",
    [
        ["--scale", "0"],
        ["--scale", "nan"],
        ["--scale", "2"],
        ["--rounds", "0"],
        ["--scenarios", "z"],
        ["--scenarios", ","],
        ["--schedulers", "tutti,slurm"],
        ["--patience", "inf"],
        ["--minutes", "0"],
        ["-o", "csv"],
    ],
)
def test_wrong_use_ends_with_two_before_anything_is_started(arguments: list[str]) -> None:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output
