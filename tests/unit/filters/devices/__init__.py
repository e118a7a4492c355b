"""Tests of devices and the claims for them."""
