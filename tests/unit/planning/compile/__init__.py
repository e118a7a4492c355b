"""Tests of planning.compile."""
