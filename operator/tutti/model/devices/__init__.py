"""Devices of dynamic resource allocation (DRA) and the claims of pods for them.

``inventory`` has the devices and their classes, ``claims`` the claims and allocations, ``extended``
the claims that stand for extended resources.
"""
