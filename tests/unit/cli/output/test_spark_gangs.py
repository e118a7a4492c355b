"""``tutti plan --spark-properties``: would it start now, what is missing, what is unreadable."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tutti import cli, dump
from tutti.model.decisions import Policy

from ....harness.builders import Part, gang, node, snapshot_of

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "spark.md"
EXAMPLES = re.findall(
    r"^```console\n\$ tutti ([^\n]*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
)
SETUP = dump.PlannerConfig("tutti", "ilp", Policy(), {})
PROPERTIES = """# as spark-submit reads it
spark.app.name                   Nightly ETL
spark.executor.instances         3
spark.executor.cores             2
spark.executor.memory            4g
spark.kubernetes.scheduler.name  tutti
spark.kubernetes.resource.type   java
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "spark.properties"
    made.write_text(PROPERTIES)
    return made


def run(*words: object, parts: tuple[Part, ...] = ()) -> Result:
    text = dump.write(snapshot_of(*parts), SETUP)
    given = ["plan", "-f", "-", *map(str, words)]
    return CliRunner().invoke(cli.main, given, input=text, catch_exceptions=False)


def big(name: str = "n1", cpu: int = 8) -> Part:
    return node(name, cpu=cpu, memory=64)


def refused(*words: object) -> str:
    result = run(*words, parts=(big(),))
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    return line


def test_it_starts_where_there_is_room(file: Path) -> None:
    result = run("--spark-properties", file, "-n", "etl", parts=(big(),))
    assert (result.exit_code, result.stderr) == (0, "")
    line = result.stdout.splitlines()[1].split()
    assert line == ["etl/nightly-etl", "new", "-", "starts:", "4", "on", "n1"]
    assert "waits" not in result.stdout


def test_it_waits_as_a_whole_and_what_is_missing_is_said(file: Path) -> None:
    result = run("--spark-properties", file, parts=(big(cpu=6), gang("b").of(9, cpu=1)))
    assert result.exit_code == 0
    assert "default/nightly-etl  new     -       waits: NotEnoughRoom" in result.stdout
    advice = result.stdout.partition("default/nightly-etl waits: NotEnoughRoom\n")[2]
    assert "3 with 2 cpu, 4505Mi memory each" in advice
    assert "2 more nodes like n1 (proved: with 1 it does not start)" in advice
    assert "ml/b waits" not in result.stdout  # it waited before, too


def test_programs_get_the_same_as_data(file: Path) -> None:
    result = run("-o", "json", "--spark-properties", file, parts=(big(cpu=6),))
    told = json.loads(result.stdout)
    (change,) = told["difference"]
    assert (change["gang"], change["change"]) == ("default/nightly-etl", "new")
    (after,) = told["after"]["gangs"]
    assert (after["answer"], after["reason"], after["needed"]) == ("waits", "NotEnoughRoom", 4)


def test_what_is_set_over_the_file_counts(file: Path) -> None:
    one = ("--spark-conf", "spark.executor.instances=1")
    assert "starts: 2 on n1" in run("--spark-properties", file, *one, parts=(big(),)).stdout
    least = (*one, "--spark-conf", "spark.executor.minMemoryOverhead=60g")
    assert "waits" in run("--spark-properties", file, *least, parts=(big(),)).stdout
    older = (*least, "--spark-version", "3.5.9")
    assert "starts" in run("--spark-properties", file, *older, parts=(big(),)).stdout
    space = ("--spark-conf", "spark.kubernetes.namespace=jobs")
    assert "jobs/nightly-etl" in run("--spark-properties", file, *space, parts=(big(),)).stdout


def test_equal_names_stay_apart(file: Path) -> None:
    twice = ("--spark-properties", file) * 2
    there = gang("nightly-etl").of(1, cpu=1)
    result = run(*twice, "-n", "ml", parts=(big(cpu=32), there))
    for name in ("ml/nightly-etl-2  new", "ml/nightly-etl-3  new"):
        assert name in result.stdout
    assert "ml/nightly-etl " not in result.stdout


def test_what_the_answer_rests_on_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text(
        "spark.dynamicAllocation.enabled=true\n"
        "spark.dynamicAllocation.maxExecutors=1500\n"
        "spark.executor.instances=1\n"
        "spark.kubernetes.executor.scheduler.name=other\n"
        "spark.kubernetes.driver.podTemplateFile=/t.yaml\n"
    )
    result = run("--spark-properties", file, parts=(big(),))
    said = [line.removeprefix(f"{file}: ") for line in result.stderr.splitlines()]
    assert said == [
        "spark.kubernetes.resource.type is not set: counted as an application for the JVM",
        "no scheduler is set for the driver: planned as pods of tutti",
        "spark.kubernetes.driver.podTemplateFile: the plan ignores what it adds to the driver",
        "the scheduler of the executors is other: not planned",
        "1 executors at first; dynamic allocation may ask for 1,500",
    ]
    assert "starts: 1 on n1" in result.stdout


def test_a_driver_elsewhere_is_no_pod(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_text("spark.submit.deployMode=client\nspark.dynamicAllocation.enabled=true\n")
    one = ("--spark-conf", "spark.executor.instances=1")
    result = run("--spark-properties", file, *one, parts=(big(),))
    assert "spark.submit.deployMode=client: only its executors are planned" in result.stderr
    assert "1 executors at first; dynamic allocation may ask for any number" in result.stderr
    assert "starts: 1 on n1" in result.stdout


def test_what_cannot_be_read_is_named(file: Path, tmp_path: Path) -> None:
    wrong = ("--spark-properties", file, "--spark-conf", "spark.executor.memory=1.5g")
    assert f"{file}: spark.executor.memory=1.5g: is not a size" in refused(*wrong)
    many = ("--spark-properties", file, "--spark-conf", "spark.executor.instances=5000")
    assert f"{file}: executors=5000: a gang has at most 5,000 members" in refused(*many)
    absent = tmp_path / "absent"
    assert f"{absent}: No such file" in refused("--spark-properties", absent)
    binary = tmp_path / "binary"
    binary.write_bytes(b"a=\xff")
    assert f"{binary}: is not text: byte 2" in refused("--spark-properties", binary)
    binary.write_text("a=\\u1")
    assert f"{binary}: line 1" in refused("--spark-properties", binary)
    other = ("--spark-conf", "spark.kubernetes.scheduler.name=other")
    line = refused("--spark-properties", file, *other)
    assert f"{file}: no pod of it goes to tutti" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--spark-conf", "executor.memory=1g"), "write it as spark.name=value"),
        (("--spark-conf", "spark.executor.memory"), "write it as spark.name=value"),
        (("--spark-version", "four"), "write it as 4.0 or 3.5.9"),
    ],
)
def test_an_option_that_says_nothing_is_refused(
    file: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in refused("--spark-properties", file, *words)


def test_what_is_said_of_no_application_is_refused() -> None:
    for words in (("--spark-conf", "spark.a=b"), ("--spark-version", "4.0")):
        assert "--spark-conf and --spark-version need --spark-properties" in refused(*words)


def test_beside_an_application_the_gangs_of_all_namespaces_are_shown(file: Path) -> None:
    """There -n says where the application would be."""
    there = gang("b").of(1, cpu=1)
    result = run("-o", "json", "-n", "etl", "--spark-properties", file, parts=(big(), there))
    told = json.loads(result.stdout)["after"]["gangs"]
    assert {one["gang"] for one in told} == {"etl/nightly-etl", "ml/b"}


@pytest.mark.parametrize(("line", "output"), EXAMPLES)
def test_the_page_shows_what_the_command_says(
    line: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(cli.main, line.split(), prog_name="tutti")
    assert result.output == output


def test_the_page_has_an_answer_and_a_refusal() -> None:
    assert len(EXAMPLES) == 2
