"""/metrics of the running operator, as promtool sees it; test_scrape.py has a Prometheus."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conformance.prometheus import queries
from tests.harness.controlplane import build
from tests.harness.rig import Rig, members, pod_group

from .bodies import queue, topology

if TYPE_CHECKING:
    from collections.abc import Sequence

RACK = "example.com/rack"


def promtool(*arguments: str, given: str = "") -> str:
    """What promtool finds to criticise."""
    program = build.binaries(("promtool",))["promtool"]
    command: Sequence[str] = [str(program), *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def scraped() -> str:
    """What is told once a gang has started and another waits."""
    with Rig.start() as rig:
        rig.ends_at_rest = False
        rig.nodes(1, cpu=4, memory="16Gi", gpus=8, labels={RACK: "r1"})
        rig.create(topology(RACK))
        quota = {"name": "cpu", "guaranteed": 1, "limit": 100}
        rig.create(queue({"resources": [quota]}, "team"))
        rig.create(pod_group("zebra", 2), *members("zebra", 2, cpu=1))
        rig.create(pod_group("waits", 9), *members("waits", 9, cpu=1))
        rig.until_bound("zebra", 2)
        rig.until_waiting("waits", "NotEnoughRoom")
        # A cycle writes conditions first, and its metrics of queues last.
        waiting = 'tutti_queue_waiting_gangs{queue="root"} 1.0'
        rig.until(lambda: waiting in rig.operator.probe("metrics"), "queues are measured")
        text = rig.operator.probe("metrics")
        assert rig.operator.probe("readyz") == "ok"
        return text


def test_promtool_has_nothing_to_say_about_the_metrics(scraped: str) -> None:
    assert promtool("check", "metrics", given=scraped) == ""


def test_a_real_cluster_is_told_as_it_is(scraped: str) -> None:
    lines = set(scraped.splitlines())
    assert 'tutti_gangs{state="started"} 1.0' in lines
    assert 'tutti_gangs{state="waiting"} 1.0' in lines
    assert 'tutti_waiting_gangs{reason="NotEnoughRoom"} 1.0' in lines
    assert 'tutti_bindings_total{result="bound"} 2.0' in lines
    assert "tutti_gang_time_to_bind_seconds_count 1.0" in lines
    assert 'tutti_resource_allocated{resource="cpu",unit="core"} 2.0' in lines
    assert "tutti_lease_held 1.0" in lines
    assert 'tutti_queue_waiting_gangs{queue="root"} 1.0' in lines
    assert 'tutti_queue_limit{queue="team",resource="cpu",unit="core"} 100.0' in lines
    about = f'level="{RACK}",resource="nvidia.com/gpu",topology="network"'
    assert f'tutti_topology_largest_free{{{about},unit="integer"}} 8.0' in lines
    assert f"tutti_topology_largest_whole_nodes{{{about}}} 1.0" in lines


def test_no_name_of_anybody_is_told(scraped: str) -> None:
    """No labels per gang, pod, node or namespace: few series, and nothing to read from them.

    Queues, Topologies and levels have labels: administrators choose their names.
    """
    assert not any(name in scraped for name in ("zebra", "node-000", '"ml"'))
    assert len(scraped.splitlines()) < 500


def test_whatever_dashboard_and_alerts_ask_for_is_told(scraped: str) -> None:
    told = {line.split("{")[0].split(" ")[0] for line in scraped.splitlines()}
    assert queries.metrics() <= told


def test_the_dashboard_can_show_one_release_of_several() -> None:
    """Whatever it asks for, it asks of those that are chosen."""
    for title, expr in queries.of_dashboard():
        asked = re.findall(r"\b(?:tutti|process)_[a-z_]+", expr)
        assert expr.count(f'{{job=~"{queries.ANY_JOB}"') == len(asked), title


def test_the_alert_rules_are_sound() -> None:
    assert "FAIL" not in promtool("check", "rules", str(queries.RULES))


def test_each_alert_fires_for_the_release_that_is_in_trouble_and_for_no_other() -> None:
    """Two releases, one that vanishes, and none, as alerts.yaml beside the queries plays them."""
    assert "SUCCESS" in promtool("test", "rules", str(queries.ALERTS))
    played = set(re.findall(r'alertname="(\w+)"', queries.ALERTS.read_text()))
    assert played == {name for name, _ in queries.of_rules()}
