"""kube-scheduler binds ordinary pods at full speed onto the nodes where gangs start.

The kubelets turn away what is too much, Jobs recreate it, and Tutti repairs the gangs. Other nodes
take gangs only: there nothing is ever too much.
"""

from __future__ import annotations

from tests.conformance.collisions import OWN, Load, beside_tutti, two_kube_schedulers

LOAD = Load()
SMALL = Load(gangs=10, own_gangs=2, ordinary=80, nodes=2)


def test_gangs_start_beside_kube_scheduler_on_no_room_seen_taken_and_all_are_whole_in_the_end() -> (
    None
):
    with beside_tutti(LOAD) as run:
        run.play()
        found = run.judge()
        print(found)
        assert run.verdict is not None
        assert not run.verdict.violations, run.verdict.summary()
        assert found.visible == 0
        assert run.completed() == LOAD.gangs + LOAD.own_gangs
        run.rig.until(lambda: run.phases() == {"Finished"}, "every PodGroup says so")
        assert found.bindings >= (LOAD.gangs + LOAD.own_gangs) * LOAD.members
        assert not [
            collision for collision in run.verdict.collisions if collision.subject.startswith(OWN)
        ]
        assert not [node for _, node, _ in run.kubelet.rejected if node.startswith(OWN)]


def test_collisions_of_two_kube_schedulers_are_counted_in_the_same_way() -> None:
    with two_kube_schedulers(SMALL) as run:
        run.play()
        found = run.judge()
        print(found)
        assert run.completed() == SMALL.gangs + SMALL.own_gangs
        assert found.bindings >= (SMALL.gangs + SMALL.own_gangs) * SMALL.members
        assert found.ordinary == SMALL.ordinary
