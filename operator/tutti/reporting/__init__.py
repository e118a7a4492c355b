"""Reports to users and monitoring: conditions, Events, metrics, logs and probes."""
