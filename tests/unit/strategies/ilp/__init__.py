"""Tests of strategies.ilp."""
