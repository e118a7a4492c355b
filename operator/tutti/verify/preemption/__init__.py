"""Claims checked against ``docs/preemption.md``, by code that shares nothing with the planner."""
