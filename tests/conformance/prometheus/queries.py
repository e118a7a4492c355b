"""What the chart asks Prometheus: the queries of its dashboard and of its alert rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILES = Path(__file__).parents[3] / "charts" / "tutti" / "files"
RULES = FILES / "rules.yaml"
ALERTS = Path(__file__).with_name("alerts.yaml")  # when each of them fires
INTERVAL = "20s"  # for Grafana's own variable
ANY_JOB = ".+"  # for the dashboard's own: all releases
_THRESHOLD = re.compile(r"\s*(==|<|>)\s*[\d.]+$")


def of_dashboard() -> Iterator[tuple[str, str]]:
    """The panels' titles and queries, as Grafana would send them."""
    for panel in json.loads((FILES / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            expr = target["expr"].replace("$__rate_interval", INTERVAL)
            yield panel["title"], expr.replace("$job", ANY_JOB)


def of_rules() -> Iterator[tuple[str, str]]:
    """The alerts' names and expressions."""
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def all_of_them() -> Mapping[str, str]:
    """Every query, without the threshold that keeps a healthy cluster from answering it."""
    found = [*of_dashboard(), *of_rules()]
    return {f"{name}: {expr}": _THRESHOLD.sub("", expr) for name, expr in found}


def metrics() -> set[str]:
    """The names of all metrics that are asked for."""
    words = re.compile(r"\b(?:tutti|process)_[a-z_]+")
    return {name for expr in all_of_them().values() for name in words.findall(expr)}
