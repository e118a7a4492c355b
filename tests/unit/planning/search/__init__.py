"""Tests of planning.search."""
