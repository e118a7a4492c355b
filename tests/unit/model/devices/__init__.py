"""Tests of the model of devices."""
