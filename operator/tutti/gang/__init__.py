"""What a gang is and needs, worked out from the Snapshot; planning, checks and commit share it."""
