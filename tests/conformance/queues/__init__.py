"""What ``docs/queues.md`` says, stated once more by enumeration, and attacked.

``reference``, ``plans`` and ``histories`` import nothing of Tutti. ``comparing`` holds what the
package ``tutti.queues`` answers beside it. ``python -m tests.conformance.queues`` runs thousands.
"""
