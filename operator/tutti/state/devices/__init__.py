"""Devices, their classes, and the claims of pods for them, as the cluster state knows them."""
