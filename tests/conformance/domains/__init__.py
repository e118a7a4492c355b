"""Gangs that must be in one domain of the network, placed by three schedulers side by side."""
