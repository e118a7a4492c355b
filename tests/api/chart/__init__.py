"""The chart as the real Helm renders it, and what the real API server makes of that."""
