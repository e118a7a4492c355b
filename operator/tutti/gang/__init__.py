"""What a gang is and needs, computed from the Snapshot for planning, checks and commit."""
