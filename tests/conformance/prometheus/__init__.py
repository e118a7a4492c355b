"""A real Prometheus scrapes the running operator, and everything that asks it gets an answer."""
