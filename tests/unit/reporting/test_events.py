"""Events about pods that wait for nothing: which pods get one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tutti.model.applications import ApplicationPod
from tutti.model.cluster import Phase
from tutti.model.keys import ApiKind, GangKey
from tutti.reporting.events import SEVERAL_GANGS, STARTS_ALONE, notices_of

from ...harness.builders import gang, single

if TYPE_CHECKING:
    from ...harness.builders import GangBuilder

DRIVER, EXECUTOR = ApplicationPod("spark-1", "driver"), ApplicationPod("spark-1", "executor")
OTHER = GangKey("ml", "b")


def reasons(of: GangBuilder, *declared: GangKey) -> list[str]:
    return [notice.reason for notice in notices_of(of.made, lambda key: key in declared)]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (single("d", cpu=1).each(application=DRIVER), [STARTS_ALONE]),
        (single("d", cpu=1).each(application=DRIVER, phase=Phase.RUNNING), []),
        (single("d", cpu=1).each(application=DRIVER, size_unknown_because="not read yet"), []),
        (single("e", cpu=1).each(application=EXECUTOR), []),
        (gang("a").of(1, cpu=1).each(application=DRIVER), []),
        (single("p", cpu=1), []),
    ],
    ids=["driver", "it runs", "it waits", "executor", "with a PodGroup", "any pod"],
)
def test_a_driver_that_gets_no_podgroup_is_told_until_it_runs(
    of: GangBuilder, said: list[str]
) -> None:
    assert reasons(of) == said


def test_a_second_gang_is_named_only_where_it_exists() -> None:
    both = gang("a").of(1, cpu=1).each(other_gangs=(OTHER,))
    assert reasons(both) == []
    assert reasons(both, OTHER) == [SEVERAL_GANGS]
    assert reasons(replace(both).each(phase=Phase.SUCCEEDED), OTHER) == []


def test_two_gangs_of_one_name_are_told_apart_by_their_apis() -> None:
    other = GangKey("ml", "a", ApiKind("scheduling.x-k8s.io", "PodGroup"))
    (notice,) = notices_of(gang("a").of(1, cpu=1).each(other_gangs=(other,)).made, lambda _: True)
    assert notice.message == (
        "The pod is a member of PodGroup a of tutti.dev. It also names PodGroup a of "
        "scheduling.x-k8s.io, which does not count it: a pod is in one gang."
    )
    alone = single("p", cpu=1).each(other_gangs=(other,))
    (notice,) = notices_of(alone.made, lambda _: True)
    assert notice.message.startswith("The pod is a member of Pod p. It also names")


@pytest.mark.parametrize(
    ("kind", "setting"),
    [
        (ApiKind("scheduling.volcano.sh", "PodGroup"), "podgroups.scheduling.volcano.sh"),
        (ApiKind("scheduling.x-k8s.io", "PodGroup"), "podgroups.scheduling.x-k8s.io"),
        (ApiKind("ray.io", "RayCluster"), "rayclusters.ray.io"),
        (ApiKind("jobset.x-k8s.io", "JobSet"), "jobsets.jobset.x-k8s.io"),
    ],
)
def test_a_pod_whose_kind_of_gang_is_turned_off_is_told_which_setting_turns_it_on(
    kind: ApiKind, setting: str
) -> None:
    unread = GangKey("ml", "pi", kind)
    alone = single("p", cpu=1).each(unread_gang=unread)
    (notice,) = notices_of(alone.made, lambda _: False)
    assert notice.reason == STARTS_ALONE
    assert f"names {kind.kind} pi of {kind.group}" in notice.message
    assert f"{setting} to settings.gangSources" in notice.message
    assert reasons(alone.each(phase=Phase.RUNNING)) == []
    assert reasons(gang("a").of(1, cpu=1).each(unread_gang=unread)) == []
