"""The devices of plans, checked by code that imports nothing of the planner."""
