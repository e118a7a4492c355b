"""Plans with queues, judged stage by stage by CP-SAT and by a checker of their own.

``planner`` alone knows Tutti; the other modules import nothing of it.
Unlike ``tests.conformance.queues``, which enumerates, this has room for more gangs, for unequal
pods, extras that wait, lost members and starved gangs. ``python -m tests.conformance.queue_oracle``
runs thousands.
"""
