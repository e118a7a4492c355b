"""Claims checked against ``docs/preemption.md``, by code that imports nothing of the planner."""
