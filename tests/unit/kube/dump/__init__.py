"""Dumps: what is written can be read, and whatever else is read ends in one line."""
