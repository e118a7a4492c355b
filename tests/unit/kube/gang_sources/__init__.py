"""Tests of kube.gang_sources."""
