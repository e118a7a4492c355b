"""Conformance: the public answers compared with independent ones."""
