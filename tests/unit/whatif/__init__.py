"""Tests of whatif."""
