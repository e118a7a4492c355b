"""When a cycle runs, and what one cycle does."""
