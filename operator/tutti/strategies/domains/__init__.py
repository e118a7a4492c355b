"""Gangs whose members must be in one domain, or in segments that each are."""
