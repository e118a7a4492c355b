"""Tests, from the pure core to a real control plane."""
