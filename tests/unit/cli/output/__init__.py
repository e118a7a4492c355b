"""Tests of cli.output."""
