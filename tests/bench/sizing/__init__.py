"""How much memory one replica takes to know a cluster: the figures of docs/operations.md."""
