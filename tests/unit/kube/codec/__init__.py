"""Tests of kube.codec."""
