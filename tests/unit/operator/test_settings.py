"""Settings: every default is a promise, and every mistake gets one sentence."""

import pytest
from click.testing import CliRunner

from tutti import cli
from tutti.model.decisions import Mode
from tutti.operator.settings import Settings, SettingsError
from tutti.strategies.problem import Budget


def test_the_defaults_are_as_promised() -> None:
    assert Settings().model_dump() == {
        "scheduler_name": "tutti",
        "namespaces": (),
        "gang_sources": ("podgroups.scheduling.k8s.io",),
        "strategy": "ilp",
        "budget_seconds": 30.0,
        "budget_nodes": 500,
        "objective": "resources",
        "age_seconds": 3600.0,
        "starvation_seconds": 3600.0,
        "usage_half_life_seconds": 0,
        "preemption": "Off",
        "evictions_per_cycle": 500,
        "evictions_per_hour": 2000,
        "mode": "active",
        "bindings_per_cycle": 0,
        "dump_directory": "",
        "bind_volumes": True,
        "volume_seconds": 600.0,
        "identity": "",
        "lease_namespace": "",
        "hand_over": False,
        "spark_enabled": True,
        "devices_enabled": True,
        "bindings_in_flight": 64,
        "probe_port": 8080,
        "log_format": "auto",
        "log_level": "info",
    }


def test_variables_set_their_fields_and_others_are_none_of_our_business() -> None:
    chosen = Settings.from_environment(
        {"TUTTI_STRATEGY": "bestfit", "TUTTI_BUDGET_SECONDS": "2.5", "HOME": "/", "TUTTIX": "1"}
    )
    assert chosen == Settings(strategy="bestfit", budget_seconds=2.5)


@pytest.mark.parametrize(
    ("told", "meant"),
    [("", ()), (" ", ()), ("ml", ("ml",)), ("ml,etl", ("ml", "etl")), ("ml, etl", ("ml", "etl"))],
)
def test_several_namespaces_stand_between_commas(told: str, meant: tuple[str, ...]) -> None:
    assert Settings.from_environment({"TUTTI_NAMESPACES": told}).namespaces == meant


def test_the_list_of_settings_shows_each_as_it_is_set() -> None:
    lines = CliRunner().invoke(cli.main, ["settings"]).output.splitlines()
    shown = dict(line.split("=", 1) for line in lines if line.startswith("TUTTI_"))
    assert Settings.from_environment(shown) == Settings()
    assert len(shown) == len(Settings.model_fields)


WRONG = {
    "TUTTI_STRATEGIE": ("ilp", "TUTTI_STRATEGIE is not a setting; the nearest is TUTTI_STRATEGY"),
    "TUTTI_PROBEPORT": ("1", "TUTTI_PROBEPORT is not a setting; the nearest is TUTTI_PROBE_PORT"),
    "TUTTI_STRATEGY": (
        "bestfitt",
        "not one of bestfit, firstfit, flow, ilp, ilp-highs, spread; did you mean bestfit?",
    ),
    "TUTTI_BUDGET_SECONDS": ("soon", "TUTTI_BUDGET_SECONDS: 'soon' is not valid"),
    "TUTTI_BINDINGS_IN_FLIGHT": ("0", "TUTTI_BINDINGS_IN_FLIGHT: '0' is not valid"),
    "TUTTI_PROBE_PORT": ("65536", "TUTTI_PROBE_PORT: '65536' is not valid"),
    "TUTTI_LOG_LEVEL": ("loud", "TUTTI_LOG_LEVEL: 'loud' is not valid"),
    "TUTTI_OBJECTIVE": ("money", "Input should be 'resources', 'gangs' or 'members'"),
    "TUTTI_AGE_SECONDS": ("0", "TUTTI_AGE_SECONDS: '0' is not valid"),
    "TUTTI_STARVATION_SECONDS": ("nan", "TUTTI_STARVATION_SECONDS: 'nan' is not valid"),
    "TUTTI_PREEMPTION": ("On", "Input should be 'Off', 'Reclaim' or 'Full'"),
    "TUTTI_EVICTIONS_PER_CYCLE": ("-1", "TUTTI_EVICTIONS_PER_CYCLE: '-1' is not valid"),
    "TUTTI_EVICTIONS_PER_HOUR": ("x", "TUTTI_EVICTIONS_PER_HOUR: 'x' is not valid"),
    "TUTTI_MODE": ("off", "Input should be 'active', 'shadow' or 'paused'"),
    "TUTTI_BINDINGS_PER_CYCLE": ("-1", "TUTTI_BINDINGS_PER_CYCLE: '-1' is not valid"),
    "TUTTI_SCHEDULER_NAME": ("No Name", "TUTTI_SCHEDULER_NAME: 'No Name' is not valid"),
    "TUTTI_NAMESPACES": ("ml,,etl", "TUTTI_NAMESPACES: '' is not valid"),
}


@pytest.mark.parametrize("variable", WRONG)
def test_a_wrong_variable_gets_one_sentence_that_names_it(variable: str) -> None:
    value, sentence = WRONG[variable]
    with pytest.raises(SettingsError) as wrong:
        Settings.from_environment({variable: value})
    (said,) = wrong.value.sentences
    assert sentence in said


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "601", ""])
def test_a_budget_that_is_no_time_to_wait_is_refused(value: str) -> None:
    with pytest.raises(SettingsError):
        Settings.from_environment({"TUTTI_BUDGET_SECONDS": value})


def test_several_mistakes_are_all_told_at_once() -> None:
    wrong = {variable: value for variable, (value, _) in WRONG.items()}
    result = CliRunner().invoke(cli.main, ["run"], env=wrong)
    assert result.exit_code == cli.WRONG_INPUT
    lines = result.stderr.splitlines()
    assert len(lines) == len(WRONG)
    assert all(line.startswith("tutti run: TUTTI_") for line in lines)
    assert result.stdout == ""


def test_the_budget_of_a_search_is_chosen_by_two_settings() -> None:
    """Time is the last safety net; with the same nodes the same input has the same answer."""
    chosen = Settings.from_environment({"TUTTI_BUDGET_NODES": "7", "TUTTI_BUDGET_SECONDS": "2"})
    assert chosen.budget == Budget(nodes=7, seconds=2.0)
    assert Settings().budget == Budget()
    with pytest.raises(SettingsError, match="TUTTI_BUDGET_NODES"):
        Settings.from_environment({"TUTTI_BUDGET_NODES": "0"})


def test_pods_of_a_tutti_that_is_the_default_scheduler_are_handed_over_to_nobody() -> None:
    name = {"TUTTI_SCHEDULER_NAME": "default-scheduler"}
    assert Settings.from_environment(name).scheduler_name == "default-scheduler"
    with pytest.raises(SettingsError, match="TUTTI_SCHEDULER_NAME cannot be default-scheduler"):
        Settings.from_environment({**name, "TUTTI_HAND_OVER": "true"})


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode != Mode.SHADOW])
def test_only_a_shadow_looks_at_the_pods_that_kube_scheduler_binds(mode: Mode) -> None:
    """Both would bind them; its Lease has another name, so the election does not notice it."""
    name = {"TUTTI_SCHEDULER_NAME": "default-scheduler"}
    with pytest.raises(SettingsError) as wrong:
        Settings.of_operator({**name, "TUTTI_MODE": mode.value})
    (said,) = wrong.value.sentences
    assert said == (
        "TUTTI_SCHEDULER_NAME: kube-scheduler binds the pods of default-scheduler, and with "
        f"TUTTI_MODE={mode} Tutti would bind them, too; set TUTTI_MODE=shadow, or give Tutti "
        "another name"
    )
    assert Settings.of_operator({**name, "TUTTI_MODE": "shadow"}).mode == Mode.SHADOW
    assert Settings.from_environment(name).scheduler_name == "default-scheduler"
    with pytest.raises(SettingsError, match="would bind them, too"):
        Settings.of_operator(name)
