"""What people and monitoring are told: conditions, Events, metrics, logs and probes."""
