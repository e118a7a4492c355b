"""The devices of plans, checked by code that shares nothing with the planner."""
