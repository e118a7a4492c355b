"""Tests of sources.spark."""
