"""The cycle against an in-memory Api."""
