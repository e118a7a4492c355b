"""Gangs whose members must be in one domain, beside an independent solver and a brute force."""
