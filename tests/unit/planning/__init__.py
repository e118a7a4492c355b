"""Planning, tried on values alone."""
