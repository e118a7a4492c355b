"""Checks of plans and Reservations, by code that imports nothing of the planner.

Both use the rules of one pod on one node (``filters``) and what a gang is (``gang``). These have
checks from outside: kube-scheduler itself (``tests/conformance/differential``) and a brute force.
"""
