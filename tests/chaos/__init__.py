"""Faults, replicas, long lives and mutants: the operator broken on purpose."""
