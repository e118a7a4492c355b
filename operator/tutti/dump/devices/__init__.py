"""Devices and the claims for them in dumps."""
