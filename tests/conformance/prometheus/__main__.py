"""`python -m tests.conformance.prometheus`: do all queries and alert rules return data?

The operator runs on a real API server with gangs that start, wait and lose members; Prometheus
scrapes it every second. A part of `make conformance`, and a test of the tier api.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.api.bodies import queue, topology
from tests.harness.controlplane import build, die_with_parent
from tests.harness.controlplane.components import free_ports
from tests.harness.rig import Rig, members, pod_group

from . import queries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 90.0  # seconds until every query has an answer
RACK = "example.com/rack"
ROUNDS = 5.0  # seconds between two gangs, so that rates are rates of something
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: tutti
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def main() -> int:
    """Print each query that has no answer; 0 if there is none."""
    with Rig.start() as rig, prometheus(rig) as address:
        rig.ends_at_rest = False
        rig.nodes(2, cpu=8, memory="16Gi", gpus=8, labels={RACK: "r1"})
        rig.create(topology(RACK))
        quota = {"name": "cpu", "guaranteed": 1, "limit": 100}
        rig.create(queue({"resources": [quota]}, "team"))
        rig.create(pod_group("waits", 90), *members("waits", 90, cpu=1))
        silent = _unanswered(rig, address)
        rules = _get(address, "rules", {})["data"]["groups"][0]["rules"]
        sick = [f"{rule['name']}: {rule.get('lastError')}" for rule in rules if _is_sick(rule)]
    asked = queries.all_of_them()
    for line in (*silent, *sick):
        print(f"no data: {line}")
    print(f"{len(asked) - len(silent)} of {len(asked)} queries return data; {len(rules)} rules run")
    return 1 if silent or sick else 0


def _unanswered(rig: Rig, address: str) -> list[str]:
    """The queries that never return a number while gangs come and go."""
    left = dict(queries.all_of_them())
    started = time.monotonic()
    begun = 0
    while left and (passed := time.monotonic() - started) < PATIENCE:
        if passed >= begun * ROUNDS:
            name, begun = f"short-{begun}", begun + 1
            rig.create(pod_group(name, 2), *members(name, 2, cpu=1, run_seconds=1))
        left = {name: expr for name, expr in left.items() if not _has_data(address, expr)}
        time.sleep(0.5)
    return list(left)


def _has_data(address: str, query: str) -> bool:
    answer = _get(address, "query", {"query": query})["data"]
    numbers = [float(one["value"][1]) for one in answer["result"]]
    return any(not math.isnan(n) for n in numbers)


def _is_sick(rule: dict[str, Any]) -> bool:
    return bool(rule["health"] != "ok")


def _get(address: str, what: str, query: dict[str, str]) -> dict[str, Any]:
    url = f"http://{address}/api/v1/{what}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@contextmanager
def prometheus(rig: Rig) -> Iterator[str]:
    """Let Prometheus scrape the operator; yields where it answers."""
    program = build.binaries(("prometheus",))["prometheus"]
    place: Path = rig.plane.directory / "prometheus"
    place.mkdir()
    config = place / "config.yaml"
    config.write_text(CONFIG.format(rules=queries.RULES, port=rig.operator.port))
    address = f"127.0.0.1:{free_ports('web')['web']}"
    command = [
        *(sys.executable, die_with_parent.__file__, str(os.getpid())),
        *(str(program), f"--config.file={config}", f"--storage.tsdb.path={place / 'data'}"),
        *(f"--web.listen-address={address}", "--log.level=warn"),
    ]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        rig.until(lambda: _is_ready(address), "Prometheus answers")
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=5):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
