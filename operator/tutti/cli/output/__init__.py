"""What the commands print, and the data behind it."""
