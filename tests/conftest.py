"""Tiers: the quick ones first, each tier's time against its share at the end; and the rights used.

``--tiers unit,cycle`` runs these alone; they need no control plane, and so may run side by side.
A share that is exceeded is a warning, never a failure: machines are noisy.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from .harness import operator_process, rights
from .harness.controlplane import ControlPlane, cluster

# Minutes of all its tests, warm, on two cores; two processes run them side by side, so that all
# tiers together take 45 minutes.
SHARES = {"unit": 30.0, "cycle": 9.0, "docs": 0.5, "api": 26.0, "e2e": 24.5}
HERE = Path(__file__).parent
LEDGER = rights.Ledger()
TOLD = pytest.StashKey[list[str]]()  # of rights

# The examples are the same on every machine: a failure is a defect, not luck.
hypothesis.settings.register_profile("tutti", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("tutti")


def tier_of(path: Path) -> str:
    """The tier of a test file; what lies beside the folders is as quick as a unit test."""
    first = path.relative_to(HERE).parts[0]
    return first if first in SHARES else "unit"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let tiers be chosen by name."""
    parser.addoption(
        "--tiers", default=",".join(SHARES), help="the tiers to run, with commas between them"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tiers asked for, the quick ones first: a simple mistake is seen within seconds."""
    asked, order = _asked(config), list(SHARES)
    left_out = [item for item in items if tier_of(item.path) not in asked]
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(
        (item for item in items if tier_of(item.path) in asked),
        key=lambda item: order.index(tier_of(item.path)),
    )


def _asked(config: pytest.Config) -> frozenset[str]:
    tiers = frozenset(config.option.tiers.split(","))
    if unknown := tiers - SHARES.keys():
        message = f"--tiers: {', '.join(sorted(unknown))} is none of {', '.join(SHARES)}"
        raise pytest.UsageError(message)
    return tiers


def pytest_collection_finish() -> None:
    """Load all of Tutti: hypothesis draws from the constants of what is loaded in a worker."""
    import tutti  # noqa: PLC0415 - before it, coverage counts

    for module in pkgutil.walk_packages(tutti.__path__, "tutti."):
        if module.name != "tutti.__main__":  # which runs the command line
            importlib.import_module(module.name)


def pytest_configure() -> None:
    """Hear from every control plane what the operator did there, and pass SIGINT on.

    A job in the background of a script ignores it, and so would all that is started here.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def look(plane: ControlPlane) -> None:
        if not plane.hosts_mutants:
            LEDGER.read(plane.audit_log)

    cluster.last_looks.append(look)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Compare what the operator did with what the chart grants; a worker of xdist only sends it."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["rights"] = LEDGER.dump()
        return
    if not (LEDGER.used or LEDGER.denied):
        return  # no operator ran
    is_whole = (
        exitstatus == pytest.ExitCode.OK
        and config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and {"api", "e2e"} <= _asked(config)
        and not (config.option.keyword or config.option.markexpr)
    )
    from tutti.kube import gang_sources  # noqa: PLC0415 - before it, coverage counts

    chosen = ",".join(gang_sources.OPTIONAL)
    options = (f"--set=settings.gangSources={{{chosen}}}", "--set=settings.handOver=true")
    may = rights.granted(operator_process.rights(*options))
    faults = rights.faults(LEDGER, may, is_whole=is_whole)
    used = f"{len(LEDGER.used & may)} of {len(may)} that the chart grants were used"
    config.stash[TOLD] = [used, *faults]
    if faults and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take in what the operator did in a worker of xdist."""
    if sent := getattr(node, "workeroutput", {}).get("rights"):
        LEDGER.load(sent)


@pytest.fixture(scope="session", autouse=True)
def _no_cluster_of_the_user() -> None:
    """What the user's shell points at never decides what the tests run against."""
    os.environ.pop("KUBECONFIG", None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what is wrong with the rights, and each tier's tests and minutes against its share."""
    if told := terminalreporter.config.stash.get(TOLD, None):
        terminalreporter.section("rights of the operator")
        terminalreporter.line("\n".join(told))
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                tier = tier_of(terminalreporter.config.rootpath / report.fspath)
                seconds[tier] += report.duration
                tests[tier] += report.when == "call"
    terminalreporter.section("tiers")
    for tier, share in SHARES.items():
        if tests[tier]:
            minutes = seconds[tier] / 60
            warning = f"   longer than its share of {share:.0f} min" if minutes > share else ""
            terminalreporter.line(f"{tier:6} {tests[tier]:5} tests {minutes:6.1f} min{warning}")
