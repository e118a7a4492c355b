"""Plans checked against ``docs/queues.md``, by code that imports nothing of the planner."""
