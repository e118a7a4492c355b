"""An independent answer to which gangs start, in clusters with devices, counters and volumes.

``world`` has the clusters, written from ``docs/devices.md`` and ``docs/storage.md``; CP-SAT says
what is the most that can start, in the order of ``docs/planner.md``. Only ``planner`` knows Tutti.
"""
