"""CEL selectors of devices: which devices kube-scheduler selects, and which Tutti.

Each expression is in a claim of its own on a real API server, and pods that name it ask the real
kube-scheduler, by the harness of ``tests.conformance.differential``. Each node has one device.
"""
