"""What pages list is what there is: reasons, fields, versions, and a site without dead links."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import yaml

from ..harness.controlplane import pins
from . import reasons, reference, site
from .reference import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

DOCS = ROOT / "docs"


def test_the_reference_is_what_the_crds_say() -> None:
    """`python -m tests.docs.reference` writes it again."""
    assert reference.PAGE.read_text() == reference.written()


def test_the_reference_has_every_field_that_users_write() -> None:
    page = reference.PAGE.read_text()
    for field in ("minMember", "onPartial", "absentMemberTimeoutSeconds", "nodeSelector"):
        assert f"| `{field}` |" in page
    assert "- the gang has no size: set minMember, or roles that each set theirs" in page
    assert "- `roles`: two roles have the same name: give each role a name of its own" in page


def test_every_reason_is_explained_and_no_other() -> None:
    page = (DOCS / "troubleshooting.md").read_text()
    explained = re.findall(r"(?m)^### (\w+)$", page)
    assert len(explained) == len(set(explained))
    assert set(explained) == reasons.known()


def test_reasons_are_found_wherever_they_are_given() -> None:
    """Enums, literals, names of literals, defaults, and what functions of reasons answer."""
    found = reasons.known()
    assert found >= {"NotEnoughRoom", "NodeLost", "Whole", "UnknownRole"}
    assert found >= {"LargerThanDeclared", "Released", "SchedulerError", "Unschedulable"}


def test_the_queues_of_the_guide_are_those_of_its_example() -> None:
    """Which `tutti queue` and `tutti plan` read, as tests/docs/test_commands.py shows."""
    guide, example = (
        (DOCS / name).read_text() for name in ("queues-for-teams.md", "queues/cluster.yaml")
    )
    (block,) = re.findall(r"(?ms)^```yaml\n(.*?)^```", guide)
    written = list(yaml.safe_load_all(block))
    objects = yaml.safe_load_all(example)
    queues = {part["metadata"]["name"]: part for part in objects if part["kind"] == "Queue"}
    assert [queues[part["metadata"]["name"]] for part in written] == written


def test_the_queues_of_other_projects_have_the_quotas_of_ours() -> None:
    """On the page for those who come from them; ours is one of the example that commands read."""
    theirs, ours = re.findall(r"(?ms)^```yaml\n(.*?)^```", (DOCS / "coming-from.md").read_text())
    (queue,) = yaml.safe_load_all(ours)
    assert queue in yaml.safe_load_all((DOCS / "queues/cluster.yaml").read_text())
    (quota,) = queue["spec"]["resources"]
    kueue, kai, volcano, yunikorn = yaml.safe_load_all(theirs)
    (flavor,) = kueue["spec"]["resourceGroups"][0]["flavors"]
    (nominal,) = flavor["resources"]
    assert nominal["nominalQuota"] == quota["guaranteed"]
    assert nominal["nominalQuota"] + nominal["borrowingLimit"] == quota["limit"]
    gpu = kai["spec"]["resources"]["gpu"]
    assert (gpu["quota"], gpu["limit"]) == (quota["guaranteed"], quota["limit"])
    assert gpu["overQuotaWeight"] == volcano["spec"]["weight"] == queue["spec"]["weight"]
    (leaf,) = yunikorn["partitions"][0]["queues"][0]["queues"][0]["queues"]
    for guaranteed, most in (
        (volcano["spec"]["deserved"], volcano["spec"]["capability"]),
        (leaf["resources"]["guaranteed"], leaf["resources"]["max"]),
    ):
        assert guaranteed == {quota["name"]: quota["guaranteed"]}
        assert most == {quota["name"]: quota["limit"]}


def test_the_versions_are_those_that_are_pinned() -> None:
    page = (DOCS / "versions.md").read_text()
    told = re.findall(r"(?m)^\| (1\.\d+) \| (v[\d.]+) \|", page)
    kubernetes = [pins.pins_for(minor)[0].version for minor in pins.KNOWN_K8S]
    assert told == list(zip(pins.KNOWN_K8S, kubernetes, strict=True))


def test_links_into_the_checkout_are_words_on_the_site(caplog: pytest.LogCaptureFixture) -> None:
    """Those between pages stay, up a folder too; one that leads nowhere is a warning."""
    kept = "[a](../planner.md), [b](https://example.com/../x), [c](0001.md#d), [e](#f)"
    assert site.without_ways_out(kept, "decisions/0002.md") == kept
    out = "[`d`](../Makefile), [e](../charts/tutti/values.yaml#f)"
    assert site.without_ways_out(out, "install.md") == "`d`, e"
    assert caplog.text == ""
    assert site.without_ways_out("[g](../nowhere)", "install.md") == "g"
    assert "install.md links to ../nowhere, which does not exist" in caplog.text


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Strictly: every page is in the navigation, and every link and anchor leads somewhere."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "reference.html").exists()
