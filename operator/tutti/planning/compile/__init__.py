"""From a Snapshot to the numbers of a Problem."""
