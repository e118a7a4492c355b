"""The Dockerfile says only what `make image-check` carries out, and agrees with the chart."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.harness.judge.audit import AuditEntry
from tests.harness.operator_process import NAMESPACE
from tests.packaging.image import base, dockerfile, installing, root, sizes
from tests.packaging.image.dockerfile import Copy, DockerfileError, Run
from tutti import __version__

ROOT = Path(__file__).parents[2]
STAGES = dockerfile.read((ROOT / "Dockerfile").read_text())
FROM = "FROM debian:trixie-20261005-slim@sha256:" + "a" * 64
END = 'ENTRYPOINT ["python"]'


def test_both_stages_begin_with_the_same_pinned_image() -> None:
    assert [stage.name for stage in STAGES] == ["build", "1"]
    assert len({(stage.suite, stage.digest) for stage in STAGES}) == 1


def test_the_image_starts_what_the_chart_starts_and_as_its_user() -> None:
    text = (ROOT / "charts/tutti/templates/deployment.yaml").read_text()
    found = re.search(r"command: (\[.*\])", text)
    assert found is not None
    assert json.loads(found[1]) == [*STAGES[-1].entrypoint, "run"]
    user, group = (re.search(rf"runAs{who}: (\d+)", text) for who in ("User", "Group"))
    assert user is not None
    assert group is not None
    assert (int(user[1]), int(group[1])) == STAGES[-1].user


def test_the_image_is_built_under_the_version_that_the_chart_asks_for() -> None:
    assert f"tutti:{__version__} .\n" in (ROOT / "Dockerfile").read_text()


def test_an_image_with_more_gets_the_versions_that_are_tested() -> None:
    added = re.findall(r"install '(\S+)'", (ROOT / "docs/install.md").read_text())
    assert added
    assert set(added) <= set((ROOT / "constraints.txt").read_text().splitlines())


def test_everything_that_is_copied_exists_and_reaches_the_builder() -> None:
    """A .dockerignore that leaves everything out but what it names; one folder deep."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    copied = [
        source
        for stage in STAGES
        for step in stage.steps
        if isinstance(step, Copy) and not step.stage
        for source in step.sources
    ]
    assert lines[1] == "*"
    assert sorted(copied) == sorted(kept)
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_holds_what_the_lock_files_pin_and_nothing_that_builds() -> None:
    lines = [str(step) for step in STAGES[0].steps if isinstance(step, Run)]
    installed = [line for line in lines if " install " in line and "pip" in line]
    assert len(installed) == 3
    assert all("--require-hashes" in line or "--no-index" in line for line in installed)
    (copied,) = (step for step in STAGES[-1].steps if isinstance(step, Copy))
    assert (copied.stage, copied.sources, copied.folder) == (
        "build",
        ("/usr/local",),
        "/usr/local/",
    )


def test_lines_that_go_on_are_one_step_without_their_comments() -> None:
    text = f"{FROM}\nRUN a \\\n # why\n && b\n# end\n{END}\n"
    (stage,) = dockerfile.read(text)
    assert stage.steps == (Run("a && b"),)


REFUSED = {
    "an instruction that is not one of the five": f"{FROM}\nENV A=b\n{END}",
    "in lower case": f"{FROM}\nrun true\n{END}",
    "an image without a digest": f"FROM debian:trixie-20261005-slim\n{END}",
    "an image without a date": f"FROM debian:trixie-slim@sha256:{'a' * 64}\n{END}",
    "a step before the first image": f"RUN true\n{FROM}\n{END}",
    "no entrypoint": f"{FROM}\nRUN true",
    "nothing": "",
    "an entrypoint for the shell": f"{FROM}\nENTRYPOINT python",
    "a line that is no shell's": f'{FROM}\nRUN ["true"]\n{END}',
    "a mount for a line": f"{FROM}\nRUN --mount=type=cache,target=/x true\n{END}",
    "files that come with a line": f"{FROM}\nRUN <<EOF\n{END}",
    "a user by name": f"{FROM}\nUSER nobody\n{END}",
    "a line as another user": f"{FROM}\nUSER 1:1\nRUN true\n{END}",
    "a copy as another user": f"{FROM}\nUSER 1:1\nCOPY a /b/\n{END}",
    "a stage that does not exist": f"{FROM}\nCOPY --from=build /a /b/\n{END}",
    "its own stage": f"{FROM} AS build\nCOPY --from=build /a /b/\n{END}",
    "a copy with another owner": f"{FROM}\nCOPY --chown=1:1 a /b/\n{END}",
    "a copy to a file": f"{FROM}\nCOPY a /b\n{END}",
    "a copy of nothing": f"{FROM}\nCOPY /b/\n{END}",
    "a copy without words": f"{FROM}\nCOPY\n{END}",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_carried_out_is_refused(case: str) -> None:
    with pytest.raises(DockerfileError):
        dockerfile.read(REFUSED[case])


def test_a_machine_that_cannot_check_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(base.CannotCheckError, match="needs root"):
        base.clean("trixie")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(base.CannotCheckError, match="apt-get install debootstrap"):
        base.clean("trixie")


def test_a_machine_from_whose_root_nothing_is_reached_cannot_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(_root: Path, line: str) -> None:
        raise root.StepError(f"{line}\nended with 100")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: name)
    monkeypatch.setattr(base, "folder", lambda: tmp_path)
    monkeypatch.setattr(root, "build", fails)
    (tmp_path / "debian-trixie").mkdir()
    with pytest.raises(base.CannotCheckError, match=r"(?s)nothing can be installed.*100"):
        base.clean("trixie")


def test_a_step_added_what_is_new_or_other_than_it_was(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/same").write_text("12345")
    (tmp_path / "other").write_text("1")
    before = sizes.picture(tmp_path)
    (tmp_path / "other").write_text("123")
    (tmp_path / "folder/new").write_text("1234")
    (tmp_path / "link").symlink_to("folder")
    more = sizes.added(before, sizes.picture(tmp_path))
    assert (set(more), sizes.unpacked(more)) == ({"other", "folder/new", "link"}, 7)
    assert 0 < sizes.packed(tmp_path, more) < 10_000


def test_what_is_measured_is_the_documented_install() -> None:
    assert f"$ {installing.HELM}\n" in (ROOT / "docs/install.md").read_text()


BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def _binding(namespace: str, name: str, seconds: float, code: int = 201) -> AuditEntry:
    at = BEGAN + timedelta(seconds=seconds)
    return AuditEntry("u", "create", "pods/binding", "", namespace, name, code, at, answered=at)


REPLICAS = [_binding(NAMESPACE, "tutti-b", 3.0), _binding(NAMESPACE, "tutti-a", 2.0)]
MEMBERS = [_binding(installing.USERS, f"first-{n}", 5.0 + n) for n in range(installing.GANG)]


def test_a_gang_is_bound_when_its_last_member_is_and_counted_from_the_begin_of_helm() -> None:
    took = installing.measured(BEGAN, BEGAN + timedelta(seconds=1), [*REPLICAS, *MEMBERS])
    assert took == (1.0, 2.0, 5.0 + installing.GANG - 1)
    helm, gang, left_out = took.lines()
    assert "helm took 1.0 s; kube-scheduler had a node for a replica after 2.0 s" in helm
    assert "bound 8.0 s after" in gang
    assert "not in it are pulling the image" in left_out


@pytest.mark.parametrize(
    "log",
    [
        [*REPLICAS, *MEMBERS[:-1]],
        [*REPLICAS, *MEMBERS[:-1], _binding(installing.USERS, "first-3", 9.0, code=409)],
        MEMBERS,
    ],
    ids=["a member is missing", "a member was refused", "no replica has a node"],
)
def test_nothing_is_measured_before_all_is_there(log: list[AuditEntry]) -> None:
    assert installing.measured(BEGAN, BEGAN, log) is None
