"""`python -m tests.conformance.console`: the console in Chromium, on a real cluster and on files.

Every view and every click, by mouse and by keys alone; a gang that comes and goes; an API server
that goes away; names that want to be markup; what axe-core finds; whether people read what the
commands print; how quickly a cluster of 12,000 nodes answers. Prints what is wrong; 0 if nothing
is.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.api.bodies import queue
from tests.harness import operator_pod
from tests.harness.browser.driver import chromium
from tests.harness.builders import Part, gang, node, single, snapshot_of
from tests.harness.console_process import tutti_ui
from tests.harness.proxy import Proxy
from tests.harness.rig import Rig, members, pod, pod_group
from tutti import dump
from tutti.model.decisions import Policy

from . import claim, same_answers, speed, walk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.harness.browser.driver import Page

ZONE = "topology.kubernetes.io/zone"
MARKUP = "<img src=x onerror=hacked=1>"
SCRIPT = '"><svg onload=hacked=2>${hacked=3}'
TURNED = "abc\u202egpj.exe"
LONG = "l" * 253
QUOTA = {"name": "cpu", "guaranteed": 6, "limit": 10}
OURS = {"matchLabels": {"kubernetes.io/metadata.name": "ml"}}
QUEUE_CHANGE = "team.limit.cpu=64"
PREEMPTION = {"TUTTI_PREEMPTION": "Reclaim"}
PERSON = {"kind": "ServiceAccount", "name": "person", "namespace": "ml"}
RBAC = "rbac.authorization.k8s.io"
RIGHTS = (
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "person", "namespace": "ml"},
    },
    {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "person"},
        "subjects": [PERSON],
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    },
)
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "hostile", "namespace": "ml"},
    "involvedObject": {"kind": "PodGroup", "name": "waits", "namespace": "ml"},
    "reason": MARKUP,
    "message": SCRIPT + TURNED,
}
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: added, namespace: ml}
spec: {schedulerName: tutti, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""


def cluster(rig: Rig) -> None:
    """Nodes in two zones, gangs that run and wait, a queue in shadow, and the longest name."""
    for zone in ("a", "b"):
        rig.nodes(3, prefix=f"node-{zone}", cpu=8, memory="32Gi", labels={ZONE: zone})
    rig.create(
        *RIGHTS,
        queue({"resources": [QUOTA], "namespaces": {}}, "team"),
        queue({"resources": [QUOTA], "mode": "Shadow", "namespaces": OURS}, "trial"),
    )
    tried = pod_group("tried", 2)
    tried["spec"]["queue"] = "trial"
    rig.create(tried, *members("tried", 2, cpu=6))
    rig.until_bound("tried", 2)
    rig.create(pod_group("runs", 4), *members("runs", 4, cpu=2))
    rig.until_bound("runs", 4)
    operator_pod.create(rig)
    rig.create(pod_group("waits", 7), *members("waits", 7, cpu=5), EVENT)
    rig.until_waiting("waits", "NotEnoughRoom")
    rig.create(pod_group(LONG[:63], 2), pod(LONG, LONG[:63], cpu=99))


def hostile() -> str:
    """A dump whose names want to be markup, run from right to left, or are as long as may be."""
    parts: list[Part] = [
        node("n1", cpu=4).labelled(**{ZONE: SCRIPT}).tainted(SCRIPT),
        node(MARKUP, cpu=4).labelled(**{ZONE: MARKUP}),
        node(LONG, cpu=1),
        gang("train").of(9, cpu=4),
        gang(SCRIPT).of(2, cpu=1).bound_on(MARKUP, MARKUP),
        gang(LONG).of(2, cpu=4),
        single(TURNED, cpu=64),
    ]
    return dump.write(snapshot_of(*parts), dump.PlannerConfig("tutti", "ilp", Policy(), {}))


@asynccontextmanager
async def opened(*words: str, **environment: str) -> AsyncIterator[Page]:
    """A page that shows the map of a console."""
    with (
        tempfile.TemporaryDirectory() as place,
        tutti_ui(Path(place), *words, **environment) as (link, _),
    ):
        async with chromium() as page:
            await page.resize(1280, 800)
            await page.go(link)
            await page.until("document.querySelector('cluster-map canvas') !== null")
            yield page


async def on_a_cluster(rig: Rig, pictures: Path | None) -> Sequence[str]:
    """Everything, on a real API server behind a proxy that can go away."""
    await asyncio.to_thread(cluster, rig)
    faults: list[str] = []
    with Proxy(rig.plane.server, rig.plane.authority) as proxy:
        token = rig.plane.kubeconfig_for_service_account
        account = await asyncio.to_thread(token, "ml", "person")
        config = await asyncio.to_thread(proxy.kubeconfig, account)
        async with opened("--kubeconfig", str(config), **PREEMPTION) as page:

            async def lives() -> None:
                await walk.show(page, "waiting")
                await asyncio.to_thread(
                    rig.create, pod_group("late", 9), *members("late", 2, cpu=1)
                )
                await page.until("document.body.innerText.includes('ml/late')")
                await asyncio.to_thread(proxy.go_away)
                await page.until("document.querySelector('#away') !== null", 30)
                await page.until("document.querySelector('main').innerText.includes('ml/late')")
                await asyncio.to_thread(proxy.come_back)
                await page.until("document.querySelector('#away') === null", 30)
                await asyncio.to_thread(rig.delete, "podgroups", "late")
                await page.until("!document.body.innerText.includes('ml/late')", 30)

            async def fill_in() -> None:
                await walk.forms(page, "node-a-000", "ml/waits", QUEUE_CHANGE, MANIFEST)

            faults += await walk.checked(page, "clicks", lambda: walk.clicks(page))
            faults += await walk.checked(page, "forms", fill_in)
            faults += await walk.checked(page, "keys", lambda: walk.keys(page))
            faults += await walk.checked(page, "live", lives)
            addresses = walk.views("ml/waits", "node-a-000", QUEUE_CHANGE)
            faults += await walk.look(page, addresses, pictures)
            await asyncio.to_thread(claim.begin, rig)
            faults += await walk.checked(page, "claim", lambda: claim.seen(page))
            faults += await walk.look(page, claim.VIEWS, pictures)
            faults += await walk.checked(page, "its end", lambda: claim.over(page, rig))
            faults += await unchanged(page)
    return faults


async def on_files(pictures: Path | None) -> Sequence[str]:
    """All views of names that no API server takes, but a file may have."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "now.json"
        await asyncio.to_thread(path.write_text, hostile())
        async with opened("-f", str(path)) as page:
            addresses = walk.views("ml/train", "n1", QUEUE_CHANGE)
            del addresses["before-after"]  # there is no queue
            addresses |= {
                "node-markup": walk.views("", MARKUP, "")["node"],
                "gang-markup": walk.views("ml/" + SCRIPT, "", "")["gang"],
                "gang-long": walk.views("ml/" + LONG, "", "")["gang"],
                "more-markup": "what-if?remove=" + quote(MARKUP, safe=""),
            }
            faults = [*await walk.look(page, addresses, pictures), *await unchanged(page)]
    async with chromium() as page:
        return [*faults, *await same_answers.faults(page)]


async def unchanged(page: Page) -> Sequence[str]:
    """Whether some name became markup, or some script of a name ran."""
    faults = list(page.complaints)
    if await page.evaluate("typeof hacked") != "undefined":
        faults.append("a script ran that is part of a name")
    if await page.evaluate("document.querySelectorAll('main img, [onload], [onerror]').length"):
        faults.append("a name became markup")
    return faults


async def main() -> int:
    """Print what is wrong; 0 if nothing is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="write a picture of every view there")
    folder = parser.parse_args().pictures
    places: list[Path | None] = [None, None]
    if folder is not None:
        places = [folder / "cluster", folder / "files"]
        for name in ("cluster", "files"):
            (folder / name).mkdir(parents=True, exist_ok=True)
    faults = [*await on_files(places[1])]
    print(f"on files: {len(faults)} faults", flush=True)
    with await asyncio.to_thread(Rig.start, environment=PREEMPTION) as rig:
        rig.ends_at_rest = False
        faults += await on_a_cluster(rig, places[0])
    print(f"on a cluster too: {len(faults)} faults", flush=True)
    figures = await speed.measure(speed.NODES, speed.WAITING, speed.CHANGES, speed.REPEATS)
    for line in figures.lines():
        print(line)
    faults += figures.faults()
    for fault in faults:
        print(f"FAIL {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
