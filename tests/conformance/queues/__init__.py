"""What ``docs/queues.md`` says, stated once more by enumeration, and attacked.

``reference``, ``plans``, ``histories`` and ``charges`` import nothing of Tutti. ``comparing`` holds
what ``tutti.queues`` answers beside them, and ``planner`` whole plans.
``python -m tests.conformance.queues`` runs thousands.
"""
