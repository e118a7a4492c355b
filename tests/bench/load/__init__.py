"""The load generator: gangs of a size, made at once, followed until they are bound, and removed.

`make load CLUSTER=current` runs it on a cluster of yours; `tests/bench/e2e` makes the same gangs.
"""
