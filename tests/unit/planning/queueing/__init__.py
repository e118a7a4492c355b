"""Tests of ``tutti.planning.queueing``."""
