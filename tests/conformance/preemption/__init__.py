"""What ``docs/preemption.md`` says, stated once more by enumeration, and attacked.

``rules``, ``plans``, ``instances`` and ``attacks`` import nothing of Tutti. ``planner`` holds what
Tutti claims beside them. ``python -m tests.conformance.preemption`` runs thousands.
"""
