"""Tests of loop."""
