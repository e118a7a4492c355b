"""The process: what starts it, when a cycle runs, and what a cycle does."""
