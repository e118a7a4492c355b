"""An application as a gang: whose pods there are, under which names."""

import json

import pytest

from tutti import dump
from tutti.dump.load import snapshot_of
from tutti.spark import BadProperty, app, gang_name, manifests

SIZES = {"spark.executor.instances": "3", "spark.executor.cores": "2"}


def kinds(properties: dict[str, str], scheduler: str = "tutti") -> list[str]:
    found = manifests(app(properties), "a", "ml", scheduler)
    return [each["metadata"]["name"] for each in found if each["kind"] == "Pod"]


def test_it_is_read_as_one_gang_of_two_roles() -> None:
    objects = manifests(app(SIZES), "a", "ml", "tutti")
    text = dump.Text("x", json.dumps({"kind": "List", "items": objects}).encode())
    (gang,) = snapshot_of(dump.read([text])).gangs
    assert [(role.name, role.min_member) for role in gang.roles] == [("driver", 1), ("executor", 3)]
    assert sorted((m.key.name, m.role, m.is_driver) for m in gang.members) == [
        ("a-driver", "driver", True),
        ("a-exec-1", "executor", False),
        ("a-exec-2", "executor", False),
        ("a-exec-3", "executor", False),
    ]
    amounts = dict(gang.members[1].shape.requests.amounts)
    assert (amounts["cpu"], amounts["memory"]) == (2000, 1408 * 2**20)


def test_only_what_is_left_to_the_scheduler_is_there() -> None:
    executors = ["a-exec-1", "a-exec-2", "a-exec-3"]
    named = {**SIZES, "spark.kubernetes.scheduler.name": "tutti"}
    assert kinds(named) == ["a-driver", *executors]
    assert kinds({**named, "spark.kubernetes.driver.scheduler.name": "other"}) == executors
    assert kinds({**named, "spark.kubernetes.executor.scheduler.name": "other"}) == ["a-driver"]
    assert kinds({**SIZES, "spark.submit.deployMode": "client"}) == executors
    assert kinds({"spark.dynamicAllocation.enabled": "true"}) == ["a-driver"]
    assert not manifests(app(named), "a", "ml", "other")


def test_a_gang_has_an_end() -> None:
    most = app({"spark.executor.instances": "4999"})
    assert len(manifests(most, "a", "ml", "tutti")) == 5001
    with pytest.raises(BadProperty, match="at most 5,000 members"):
        manifests(app({"spark.executor.instances": "5000"}), "a", "ml", "tutti")


@pytest.mark.parametrize(
    ("said", "taken", "name"),
    [
        ("Nightly ETL", (), "nightly-etl"),
        ("Nightly ETL", ("nightly-etl", "nightly-etl-2"), "nightly-etl-3"),
        ("", (), "spark"),
        ("日本", (), "spark"),
        ("-a_" * 40, (), "a-" * 25 + "a"),
    ],
)
def test_the_gang_has_the_applications_name(said: str, taken: tuple[str, ...], name: str) -> None:
    assert gang_name(app({"spark.app.name": said}), taken) == name


def test_pods_carry_the_labels_that_properties_give_them() -> None:
    """Each part its own; none comes before what says whose they are."""
    given = {
        "spark.kubernetes.executor.label.team": "etl",
        "spark.kubernetes.executor.label.spark-role": "x",
    }
    pods = [
        manifest["metadata"]["labels"] for manifest in manifests(app(given), "a", "ml", "tutti")[1:]
    ]
    own = {"tutti.dev/pod-group": "a"}
    assert pods == [
        {**own, "spark-role": "driver", "tutti.dev/role": "driver"},
        *[{**own, "team": "etl", "spark-role": "executor", "tutti.dev/role": "executor"}] * 2,
    ]
