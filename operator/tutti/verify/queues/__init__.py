"""Plans checked against ``docs/queues.md``, by code that shares nothing with the planner."""
