"""Whole clusters: gangs, examples, demo, wheel."""
