"""A brute force over small clusters that shares no code with the project.

Manifests go in; the public JSON of ``tutti plan`` and ``tutti explain`` is judged. Nothing below
imports ``tutti`` but ``running.py``, which calls the command line. All amounts are exact: integers
for room, fractions for values.

What "best" means
=================

*Room.* A node offers its allocatable (cpu in thousandths, the rest in whole units, rounded up) less
what the pods with that ``nodeName`` ask for that are not over. A pod takes its requests, one of
``pods``, and its host ports. It goes to a node that its selector, its required node affinity and
its tolerations allow, and with everybody on a node its required rules about pods hold as for
kube-scheduler's filters if it came last. What pods would rather have decides nothing here.

*Gangs.* A gang starts with at least ``need`` pods = max(minMember, sum of the roles' minMember, 1),
at least minMember and at most maxMember of every role among them, or with none.

*The order.* Two plans are compared coordinate by coordinate:

1. repairs: by priority from the top, of how many lost members the started gangs get rid (more for
   one gang and no less for any other of that priority or above is better); which members replace
   them is no part of the proof: the oldest of those that the plan places;
2. then, priority by priority from the top,
   a. whether the first of the priority starts: of its gangs that have waited for
      ``starvation_seconds`` the longest waiting one that has a place in the cluster without any
      member of gangs;
   b. the sum of the values of the gangs that start;
   c. the further members of started and starting gangs. Which of them is no part of the proof: the
      same pods count as equally good, and a plan is compared only with plans that place them too.

*Value.* By the objective: ``gangs`` 1, ``members`` need, ``resources`` the largest share of any
resource's cluster total (``pods`` is one; host ports are none) that the needed members ask for,
times 1 + wait / ``age_seconds`` in steps of a quarter, at most 17. The needed members are the
oldest that satisfy the roles. A gang waits since it was created, or since the oldest of its waiting
members was, whichever is later.

*Held room.* Where a first does not start, room is held for it: seats c(n) on the nodes, ``need`` in
all, no more than the cluster without members of gangs has on n, that minimise the sum of
max(0, c(n) - f(n)), f in 1024ths of a member on what repairs and higher priorities leave, equal
ones by the nodes' names. Gangs of the same or a lower priority get none of it. That is for the
first such gang from the top.

What is a violation
===================

``unlawful``: a placement breaks room, selector, taint, rule between pods, minMember or maxMember.
``not-best``: a plan that says ``proved`` is less than another one in the order, by more than 1e-9
of a level's value. ``left-out-gang``, ``-extra``, ``-repair``: it fits beside the plan as given,
which says ``proved`` or that there is no room. ``units``: the JSON changes when every quantity, or
one, is written in another unit that is equal. ``value``: the admitted values that are reported are
not in the ratio of the exact ones (by one, and by 1e-6). ``explain``: it contradicts the plan, or a
proved number of members with room is not the number. ``crash``, ``work``: no answer, or none within
the limits.

``nudged/`` stands before what is wrong once a pod asks for one byte less, and was not before.

After a slash stands how the plan is beaten: ``level`` (no other round came before), ``border``
(repairs, further members, held room or another such round came before), ``maxmember`` (only with
younger members in the place of older ones of the same role). After a plus stands what is in the
case: ``rules`` (between pods; docs/planner.md says what is not reached), ``large`` (amounts whose
sum comes to 2^50).

What is not judged: Reservations, templates of absent members, volumes, and the room after a hold
that wishes may have moved pods under (counted as ``skipped``).
"""
